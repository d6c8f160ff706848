"""Models fitted to the instruction-set simulator (T10 §4.3.1): a table of coefficients by class of operators.

`data/ipu-fit.json` comes with T10; `t10 profile` makes it and others like it. Coefficients are thousandths of a cycle,
whole numbers, so that the search and numpy give the same bits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec
from t10.cost.classes import OperatorClass, Step, class_of
from t10.cost.combine import Boxes
from t10.cost.kernel_variants import Coefficients, least
from t10.cost.recorder import Recording
from t10.cost.trace import record_table, replayed, traced_rows
from t10.errors import InputError

TABLE = "ipu-fit.json"
KEPT_OPERATORS = 4096
KEPT_SINGLES = 1 << 16
Question = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class FitTable:
    """Coefficients by class key, variant and feature; `digest` differs whenever any of them does.

    All products of the same types run the same code: where a product's axes lie otherwise than those of the operator
    that its class was measured on (`layouts`), variants that were not seen there have the coefficients of another class
    (`shared`, by types). `recordings` keeps what was traced: operators of a class and layout have the same formula.
    `singles` keeps what it gave for single boxes, by class, layout and box.
    """

    classes: Mapping[str, Coefficients]
    digest: str
    layouts: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    shared: Mapping[str, Coefficients] = field(default_factory=dict[str, Coefficients], repr=False)
    recordings: dict[tuple[str, str], Recording | None] = field(
        default_factory=dict[tuple[str, str], "Recording | None"], repr=False
    )
    singles: dict[tuple[str | int, ...], int] = field(
        default_factory=dict["tuple[str | int, ...]", int], repr=False
    )

    def predicted(self, spec: OperatorSpec, step: Step, boxes: Any) -> Any | None:
        """Return the modelled cycles of a step over boxes (n, axes); None for classes without a model.

        The numbers of `question`, whose formula is traced once and then evaluated or replayed.
        """
        columns = [boxes[:, axis] for axis in range(len(spec.axes))]
        return self._answer(spec, step, columns, boxes)

    def epilogue(self, spec: OperatorSpec, n_slots: Any, runs: Any) -> Any | None:
        """Return the modelled cycles of an epilogue on `n_slots` (n,) elements; None for classes without a model.

        `runs` (n,) of them lie in one row that all operands walk evenly.
        """
        return self._answer(spec, "epilogue", [n_slots, runs], Boxes(n_slots, runs))

    def question(self, spec: OperatorSpec, step: Step) -> Question | None:
        """Return what gives the modelled cycles of a step, the least of its variants; None for classes without a model.

        It takes boxes (n, axes), or of an epilogue elements and runs (n, 2): numbers, or what records formulas.
        """
        one = _class_of(spec, step)
        model = self._model(one)
        if not model:
            return None
        if step == "epilogue":
            return lambda table: least(model, one.variants_of_runs(table[:, 0], table[:, 1]))
        return lambda table: least(model, one.variants(table))

    def _model(self, one: OperatorClass) -> Coefficients | None:
        """Return the coefficients of a class; None where there are none."""
        own = self.classes.get(one.key)
        if not own or one.matrix is None or self.layouts.get(one.key) == one.layout:
            return own
        return {**self.shared.get(one.types, {}), **own}

    def _answer(self, spec: OperatorSpec, step: Step, columns: Sequence[Any], table: Any) -> Any | None:
        """Return the cycles of a step for `columns` (n,) of a table."""
        rows = traced_rows(columns)
        if not rows and not are_arrays(columns):
            question = self.question(spec, step)
            return None if question is None else question(table)
        recording = self._recording(spec, step, len(columns))
        if recording is None:
            return None
        if rows:
            return replayed(recording, rows)
        numbers: Ints = np.stack(columns, axis=1)
        if len(numbers) != 1:
            return recording.formula.evaluate(numbers).astype(np.int64)
        box: list[int] = numbers[0].tolist()
        one = _class_of(spec, step)
        known = (one.key, one.layout, *box)
        cycles = self.singles.get(known)
        if cycles is None:
            if len(self.singles) >= KEPT_SINGLES:
                self.singles.clear()
            cycles = self.singles[known] = int(recording.formula.evaluate_one(box))
        return np.array([cycles], np.int64)

    def _recording(self, spec: OperatorSpec, step: Step, n_columns: int) -> Recording | None:
        """Return what was traced of the operators of a class and layout; None where they are not answered."""
        one = _class_of(spec, step)
        key = (one.key, one.layout)
        recording = self.recordings.get(key)
        if recording is None and key not in self.recordings:
            question = self.question(spec, step)
            recording = None if question is None else record_table(question, n_columns)
            if len(self.recordings) >= KEPT_OPERATORS:
                self.recordings.clear()
            self.recordings[key] = recording
        return recording


def are_arrays(columns: Sequence[Any]) -> bool:
    """Return whether columns are arrays (n,) of as many numbers each."""
    is_array = all(type(column) is np.ndarray and column.ndim == 1 for column in columns)
    return is_array and len({len(column) for column in columns}) == 1


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
    return {
        str(variant): {str(name): int(value) for name, value in each.items()}
        for variant, each in values.items()
    }
