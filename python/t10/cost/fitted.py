"""Models fitted to the instruction-set simulator (T10 §4.3.1): a table of coefficients by class of operators.

`data/ipu-fit.json` comes with T10; `t10 profile` makes it and others like it. Coefficients are thousandths of a cycle,
whole numbers, so that the search and numpy give the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from t10.core.expression import OperatorSpec
from t10.cost.classes import OperatorClass, Step, class_of
from t10.errors import InputError

TABLE = "ipu-fit.json"
PER_CYCLE = 1000
KEPT_OPERATORS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class FitTable:
    """Coefficients by class key, regime and feature; `digest` differs whenever any of them does."""

    classes: Mapping[str, Mapping[str, Mapping[str, int]]]
    digest: str

    def predicted(self, spec: OperatorSpec, step: Step, boxes: Any) -> Any | None:
        """Return the modelled cycles of a step over boxes (n, axes); None for classes without a model."""
        one = _class_of(spec, step)
        model = self.classes.get(one.key)
        return _by_regime(model, one.regimes(boxes), one.features(boxes)) if model else None

    def epilogue(self, spec: OperatorSpec, n_slots: Any, runs: Any) -> Any | None:
        """Return the modelled cycles of an epilogue on `n_slots` (n,) elements; None for classes without a model.

        `runs` (n,) of them lie in one row that all operands walk evenly.
        """
        one = _class_of(spec, "epilogue")
        model = self.classes.get(one.key)
        return (
            _by_regime(model, one.run_regimes(n_slots, runs), one.of_runs(n_slots, runs)) if model else None
        )


def _by_regime(
    model: Mapping[str, Mapping[str, int]], regimes: list[tuple[str, Any]], features: Mapping[str, Any]
) -> Any | None:
    """Return the cycles of the first regime that holds and has a model; None where none has."""
    where: Any = np.where  # also of what records formulas
    result: Any = None
    for name, condition in reversed(regimes):
        if name in model:
            total = _total(model[name], features)
            result = total if result is None else where(condition, total, result)
    return result


def _total(coefficients: Mapping[str, int], features: Mapping[str, Any]) -> Any:
    """Return whole cycles, at least one."""
    total: Any = 0
    for name, value in coefficients.items():
        total = total + value * features[name]
    return np.maximum(-(-total // PER_CYCLE), 1)


@lru_cache(maxsize=KEPT_OPERATORS)
def _class_of(spec: OperatorSpec, step: Step) -> OperatorClass:
    return class_of(spec, step)


@lru_cache(maxsize=1)
def bundled_table() -> FitTable:
    """Return the table that comes with T10."""
    file = resources.files("t10.cost") / "data" / TABLE
    return _parsed(file.read_text(encoding="utf-8"), TABLE) if file.is_file() else FitTable({}, "none")


def read_table(path: str | Path) -> FitTable:
    """Return a table that `t10 profile` wrote; raises `InputError` for a file that is none."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read fitted costs {path}: {error}") from error
    return _parsed(text, str(path))


def _parsed(text: str, source: str) -> FitTable:
    try:
        document = json.loads(text)
        classes = {
            str(key): {
                str(regime): {str(name): int(value) for name, value in values.items()}
                for regime, values in each["coefficients"].items()
            }
            for key, each in document["classes"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{source} holds no fitted costs ({type(error).__name__}: {error})",
            hint="`t10 profile` writes such files",
        ) from None
    return FitTable(classes, sha256(text.encode()).hexdigest()[:16])
