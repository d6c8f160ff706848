"""Models fitted to the instruction-set simulator (T10 §4.3.1): a table of coefficients by class of operators.

`data/ipu-fit.json` comes with T10; `t10 profile` makes it and others like it. Coefficients are thousandths of a cycle,
whole numbers, so that the search and numpy give the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from t10.core.expression import OperatorSpec
from t10.cost.classes import OperatorClass, Step, class_of
from t10.cost.formula import Formula
from t10.cost.trace import trace_table
from t10.cost.ways import Coefficients, least
from t10.errors import InputError

TABLE = "ipu-fit.json"
KEPT_OPERATORS = 4096


@dataclass(frozen=True, slots=True, eq=False)
class FitTable:
    """Coefficients by class key, way and feature; `digest` differs whenever any of them does.

    All products of the same types run the same code: where a product's axes lie otherwise than those of the operator
    that its class was measured on (`layouts`), ways that were not seen there have the coefficients of another class
    (`shared`, by types). `formulas` keeps what was traced for questions about single boxes.
    """

    classes: Mapping[str, Coefficients]
    digest: str
    layouts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    shared: Mapping[str, Coefficients] = field(default_factory=dict[str, Coefficients], repr=False)
    formulas: dict[tuple[str, str], Formula] = field(
        default_factory=dict[tuple[str, str], Formula], repr=False
    )

    def predicted(self, spec: OperatorSpec, step: Step, boxes: Any) -> Any | None:
        """Return the modelled cycles of a step over boxes (n, axes); None for classes without a model."""
        one = _class_of(spec, step)
        model = self._model(one)
        if not model:
            return None
        if is_single(boxes):
            return self._one(one, len(spec.axes), boxes, lambda table: least(model, one.ways(table)))
        return least(model, one.ways(boxes))

    def epilogue(self, spec: OperatorSpec, n_slots: Any, runs: Any) -> Any | None:
        """Return the modelled cycles of an epilogue on `n_slots` (n,) elements; None for classes without a model.

        `runs` (n,) of them lie in one row that all operands walk evenly.
        """
        one = _class_of(spec, "epilogue")
        model = self.classes.get(one.key)
        if not model:
            return None

        def question(table: Any) -> Any:
            return least(model, one.ways_of_runs(table[:, 0], table[:, 1]))

        if is_single(n_slots) and is_single(runs):
            return self._one(one, 2, np.stack([n_slots, runs], axis=1), question)
        return least(model, one.ways_of_runs(n_slots, runs))

    def _model(self, one: OperatorClass) -> Coefficients | None:
        """Return the coefficients of a class; None where there are none."""
        own = self.classes.get(one.key)
        if not own or one.matrix is None or self.layouts.get(one.key) == one.layout:
            return own
        return {**self.shared.get(one.types, {}), **own}

    def _one(self, one: OperatorClass, n_columns: int, row: Any, question: Callable[[Any], Any]) -> Any:
        """Return what a question gives for one row, as a formula that is traced once."""
        key = (one.key, one.layout)
        if key not in self.formulas:
            if len(self.formulas) >= KEPT_OPERATORS:
                self.formulas.clear()
            self.formulas[key] = trace_table(question, n_columns)
        return np.array([int(self.formulas[key].evaluate_one(row[0].tolist()))], np.int64)


def is_single(table: Any) -> bool:
    """Return whether a column or table is an array of one row, and nothing that records formulas."""
    return type(table) is np.ndarray and len(table) == 1


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
        classes = {str(key): _coefficients(each["coefficients"]) for key, each in document["classes"].items()}
        layouts = {str(key): str(each["layout"]) for key, each in document["classes"].items()}
        shared = {str(types): _coefficients(each) for types, each in document["shared"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{source} holds no fitted costs ({type(error).__name__}: {error})",
            hint="`t10 profile` writes such files",
        ) from None
    return FitTable(classes, sha256(text.encode()).hexdigest()[:16], layouts, shared)


def _coefficients(values: Mapping[str, Mapping[str, int]]) -> Coefficients:
    return {str(way): {str(name): int(value) for name, value in each.items()} for way, each in values.items()}
