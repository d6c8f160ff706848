"""`LeastSteps`: lower bounds of steps, from formulas that operators of the same structure share.

A bound depends on how operands are indexed, on types and functions, and on which axes have one point. Extents are
columns of its formula beside those of boxes, so that a formula is traced once for all operators of a structure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import lru_cache, reduce
from math import isfinite
from typing import Any, cast

import numpy as np

from t10.codelets.compile import may_be_own, own_digest
from t10.core.arrays import Ints
from t10.core.expression import Axis, Combine, Operand, OperatorSpec
from t10.core.fused_ends import may_fuse
from t10.core.geometry import partition_shape
from t10.core.lengths import LINE_UNITS, line_axes
from t10.core.products import cut_axes
from t10.core.scalar import identity
from t10.core.trust.files import UNDECODABLE
from t10.cost._batch_function import BatchFunction, evaluate, read
from t10.cost.bound.columns import Boxes, Column, Table, chosen, either
from t10.cost.bound.step import combine_bound, epilogue_bound, in_registers, sub_task_bound
from t10.cost.combine import combine_operator
from t10.cost.formula import Formula
from t10.cost.kept import current_store, key_of
from t10.cost.program import CostFunction, traced
from t10.errors import T10Error

KIND = "formula"
KEPT = 4096
MOST_BYTES = 1 << 18
"""Of an entry."""
EXACT = 2.0**53
"""Beyond this a double is not exact any more."""


@dataclass(frozen=True, slots=True)
class SharedFunction:
    """A function of columns, also as native code reads it."""

    function: CostFunction
    native: BatchFunction

    @classmethod
    def of(
        cls, function: Callable[[Any], Column], n_columns: int, fixed: Mapping[int, int], *known: object
    ) -> SharedFunction:
        """Return a function of tables of so many columns, as a formula if it can be traced.

        `fixed` columns are one number. The function follows from what is `known`: a formula that the current store has
        of that is not traced again.
        """
        store = current_store()
        if store is None:
            made = traced(function, n_columns, fixed)
            return cls(made, read(made))
        key = key_of(KIND, *known)
        found = _decoded(store.get(key, KIND), n_columns)
        if found is None:
            made = traced(function, n_columns, fixed)
            found = cls(made, read(made))
            if isinstance(made, Formula):
                store.put(key, KIND, json.dumps(astuple(made), separators=(",", ":")).encode("ascii"))
        return found

    def __call__(self, *columns: Ints | int) -> Ints:
        """Return its values (n,) of columns (n,) or numbers."""
        table = np.array(np.broadcast_arrays(*columns), np.float64)
        found = evaluate(self.native, table.reshape(len(columns), -1))
        # A formula that was kept may give anything: what is no exact number bounds nothing.
        return np.where(np.abs(found) < EXACT, found, 0.0).astype(np.int64)

    def bound_to(self, numbers: Sequence[int], more: int = 0) -> Formula | None:
        """Return the formula of the first columns where the last ones are `numbers`, and `more` is added to it.

        None where the function is no formula.
        """
        if not isinstance(self.function, Formula):
            return None
        formula = self.function.bound_to(numbers)
        return formula.plus(more) if more else formula


def _decoded(payload: bytes | None, n_inputs: int) -> SharedFunction | None:
    """Return the formula of an entry, None if it is none of so many inputs."""
    if payload is None or len(payload) > MOST_BYTES:
        return None
    try:
        found, constants, instructions, result = json.loads(payload)
        integers = (found, result, *(number for one in instructions for number in one))
        if found != n_inputs or any(type(number) is not int for number in integers):
            return None
        steps = tuple([(code, a, b, c) for code, a, b, c in instructions])
        formula = Formula(found, tuple(map(float, constants)), steps, result)
        return SharedFunction(formula, read(formula)) if all(map(isfinite, formula.constants)) else None
    except (T10Error, RecursionError, *UNDECODABLE):
        return None


@lru_cache(maxsize=KEPT)
def structure(spec: OperatorSpec) -> OperatorSpec:
    """Return an operator without names and dims of one place, whose extents are 1 or 2, for more."""
    extents = tuple([min(extent, 2) for extent in spec.extents])

    def plain(operand: Operand) -> Operand:
        role = "output" if operand.role == "output" else "activation"
        dims = tuple([dim for dim in operand.dims if dim.terms])
        found = Operand("", role, operand.dtype, (1,) * len(dims), dims)
        return replace(found, shape=tuple(partition_shape(found, extents)))

    return replace(
        spec,
        name="",
        axes=tuple([Axis("", n, axis.kind) for axis, n in zip(spec.axes, extents, strict=True)]),
        inputs=tuple([plain(operand) for operand in spec.inputs]),
        output=plain(spec.output),
        epilogue_inputs=tuple([plain(operand) for operand in spec.epilogue_inputs]),
        location="",
        first=spec.first and plain(spec.first),
    )


def _steps_of(spec: OperatorSpec) -> OperatorSpec:
    """Return all of an operator's structure but what follows its steps."""
    output = replace(spec.output, dtype=spec.acc_dtype)
    return structure(replace(spec, output=output, epilogue=None, epilogue_inputs=(), first=None))


def _inside(spec: OperatorSpec, boxes: Boxes, extents: Boxes) -> tuple[Boxes, Column | None]:
    """Return boxes inside the tensor, in whole units where it ends in them, and which boxes it ends in.

    None where it ends in none: only parts of lines are longer than the tensor. A row is stored as long as the part, so
    code for less of it, in whole units, takes no longer.
    """
    axes = sorted(cut_axes(spec) & line_axes(spec))
    if not axes:
        return boxes, None
    columns = [boxes[:, axis] for axis in range(len(spec.axes))]
    longer = [columns[axis] > extents[:, axis] for axis in axes]
    for axis, is_longer in zip(axes, longer, strict=True):
        extent, unit = extents[:, axis], 1
        for each in reversed(LINE_UNITS):
            unit = chosen(extent >= each, each, unit)
        columns[axis] = chosen(is_longer, extent // unit * unit, columns[axis])
    return Table(*columns), either(*longer)


def _fixed(spec: OperatorSpec, n_tables: int) -> dict[int, int]:
    """Return the columns of axes of one point, of so many tables with a column for every axis."""
    n = len(spec.axes)
    return {n * table + axis: 1 for table in range(n_tables) for axis in range(n) if spec.extents[axis] == 1}


@lru_cache(maxsize=KEPT)
def step_function(spec: OperatorSpec, is_whole: bool, own: str) -> SharedFunction:
    """Return the bound of steps over boxes of a structure, by boxes and extents."""
    n = len(spec.axes)

    def bound(table: Boxes) -> Column:
        extents = Table(*(table[:, n + axis] for axis in range(n)))
        inside, is_cut = _inside(spec, table, extents)
        cycles = sub_task_bound(spec, inside, is_whole=is_whole, extents=extents)
        if not is_whole or is_cut is None:
            return cycles
        # What ends with the tensor is shorter than the windows in which it lies.
        return chosen(is_cut, sub_task_bound(spec, inside, extents=extents), cycles)

    return SharedFunction.of(bound, 2 * n, _fixed(spec, 2), "step", spec, is_whole, own)


@lru_cache(maxsize=KEPT)
def lying_function(spec: OperatorSpec, adds: bool, own: str) -> SharedFunction:
    """Return the bound of steps in windows of a structure, by boxes, windows of rotatable operands, and extents."""
    n, n_tables = len(spec.axes), len(spec.rotatable) + 2

    def bound(table: Boxes) -> Column:
        first, *windows, extents = (
            Table(*(table[:, n * place + axis] for axis in range(n))) for place in range(n_tables)
        )
        inside, _ = _inside(spec, first, extents)
        return sub_task_bound(spec, inside, windows=windows, extents=extents, adds=adds)

    return SharedFunction.of(bound, n_tables * n, _fixed(spec, n_tables), "lying", spec, adds, own)


@lru_cache(maxsize=KEPT)
def _epilogue_function(spec: OperatorSpec, launch_cycles: int, own: str) -> SharedFunction:
    """Return the bound of epilogues of a structure, by slots, runs and members."""

    def bound(table: Boxes) -> Column:
        return epilogue_bound(spec, table[:, 0], table[:, 1], table[:, 2], launch_cycles)

    return SharedFunction.of(bound, 3, {}, "epilogue", spec, launch_cycles, own)


@lru_cache(maxsize=KEPT)
def end_function(spec: OperatorSpec, launch_cycles: int, own: str) -> SharedFunction:
    """Return the bound of epilogues of a structure with their launches, by slots, runs and members; 0 of none."""
    is_needed = spec.epilogue is not None or spec.acc_dtype != spec.output.dtype

    def bound(table: Boxes) -> Column:
        cycles = launch_cycles + epilogue_bound(spec, table[:, 0], table[:, 1], table[:, 2], launch_cycles)
        if may_fuse(spec):
            # Behind sums of several cores it may run beside their additions, of which there is a bound already.
            return chosen(table[:, 2] == 1, cycles if is_needed else 0, 0)
        return cycles if is_needed else chosen(table[:, 2] > 1, cycles, 0)

    return SharedFunction.of(bound, 3, {}, "end", spec, launch_cycles, own)


@lru_cache(maxsize=KEPT)
def _combine_function(dtype: str, combine: Combine, is_whole: bool, own: str) -> SharedFunction:
    """Return the bound of combining parts, by parts and slots."""
    spec = combine_operator(dtype, combine)

    def bound(table: Boxes) -> Column:
        return combine_bound(spec, table[:, 0], table[:, 1], is_whole=is_whole)

    return SharedFunction.of(bound, 2, {}, "combine", dtype, combine, is_whole, own)


def _may_be_own_steps(spec: OperatorSpec) -> bool:
    return may_be_own(spec.body) or may_be_own(in_registers(spec).body)


@dataclass(frozen=True, slots=True)
class LeastSteps:
    """Cycles that steps never fall below, as `t10.cost.steps.Steps`; nothing is known of somebody's own codelets.

    A launch takes `launch_cycles`. With `is_whole`, operands of sub-tasks are as large as the box.
    """

    launch_cycles: int
    is_whole: bool = False

    def sub_task(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return cycles that no compute step over `boxes` (n, axes) falls below."""
        if _may_be_own_steps(spec):
            return boxes[:, 0] * 0
        function = step_function(_steps_of(spec), self.is_whole, own_digest())
        return function(*boxes.T, *spec.extents)

    def sub_task_formula(self, spec: OperatorSpec) -> Formula | None:
        """Return the formula of `sub_task`, of a box, with its launch; None where there is none."""
        if _may_be_own_steps(spec):
            return None
        function = step_function(_steps_of(spec), self.is_whole, own_digest())
        return function.bound_to(spec.extents, self.launch_cycles)

    def step(self, spec: OperatorSpec, boxes: Ints, windows: Ints, *, adds: bool = False) -> Ints:
        """Return cycles that no step over `boxes` (n, axes) falls below in windows (n, rotatable operands, axes).

        No box crosses the end of a window. Where it `adds`, no step falls below them that combines with what is there.
        """
        if _may_be_own_steps(spec):
            return boxes[:, 0] * 0
        columns = windows.reshape(len(windows), -1).T
        return lying_function(_steps_of(spec), adds, own_digest())(*boxes.T, *columns, *spec.extents)

    def epilogue(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints | None = None) -> Ints:
        """Return cycles that no epilogue falls below, of a window or a chunk where `n_members` does not say which."""
        if may_be_own(spec.epilogue or identity()):
            return n_slots * 0
        function = _epilogue_function(structure(spec), self.launch_cycles, own_digest())
        if n_members is not None:
            return function(n_slots, runs, n_members)
        return reduce(np.minimum, [function(n_slots, runs, n) for n in (1, 2)])

    def end(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
        """Return cycles in which accumulators become results at least, launches included; 0 where they are results."""
        if may_be_own(spec.epilogue or identity()):
            return n_slots * 0
        return end_function(structure(spec), self.launch_cycles, own_digest())(n_slots, runs, n_members)

    def end_formula(self, spec: OperatorSpec) -> Formula | None:
        """Return the formula of `end`, of slots, runs and members; None where there is none."""
        if may_be_own(spec.epilogue or identity()):
            return None
        return end_function(structure(spec), self.launch_cycles, own_digest()).bound_to(())

    def combine(
        self, spec: OperatorSpec, n_parts: Column, n_slots: Column, *, is_whole: bool = False
    ) -> Column:
        """Return cycles that no combination of parts falls below, of numbers or of what records a formula."""
        if may_be_own(identity()):
            return n_slots * 0
        if isinstance(n_slots, np.ndarray):
            function = _combine_function(spec.acc_dtype, spec.combine, is_whole, own_digest())
            return function(n_parts, cast("Ints", n_slots))
        return combine_bound(spec, n_parts, n_slots, is_whole=is_whole)
