"""What native search is told about an operator: geometry and costs as plain numbers (see `_search.pyi`)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from threading import Lock
from typing import Any

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.costs import overlaps, takes_first
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.first_partial import begun
from t10.core.lengths import line_axes
from t10.core.runs import epilogue_run_axes
from t10.core.tile import ALIGNMENT_BYTES
from t10.cost import CostModel
from t10.cost.formula import Formula
from t10.cost.program import CostFunction, cost_function
from t10.errors import T10Error
from t10.plan.movement.fetch import fetch_costs
from t10.plan.search import _search
from t10.plan.search._search import ComputeBound, ShiftTable
from t10.plan.search.temporal import TemporalSpace

MOST_KEPT_ENTRIES = 1 << 18
"""Entries of a bound up to which it is kept for the next operator."""
OperandNumbers = tuple[tuple[tuple[tuple[tuple[int, int], ...], int], ...], int, bool, int, int]
"""Dims (terms of axis and coefficient, size), bytes per element, is weight, bit masks of simple and rotating axes."""


@dataclass(frozen=True, slots=True)
class SearchTask:
    """One operator under constraints. `slots` are the rotatable operands, the output last and as its accumulator.

    `lines` is the bit mask of the axes that are lines (`t10.core.lengths`);
    `epilogue_run_axes` is the bit mask of the axes whose windows of the output multiply to a run of its epilogue;
    `padding` the least useful part of a padded axis; `capacity_bytes` what a core has for operands; `has_accumulator`
    says that the result, of another type, lies beside its accumulator. An exchange phase from anywhere takes
    `fetch_base` cycles, `fetch_per_byte` per byte, `fetch_per_run` per further fragment. With `has_seconds` inputs that
    rotate have second windows.
    """

    extents: AxisSizes
    lines: int
    slots: tuple[OperandNumbers, ...]
    epilogue_inputs: tuple[OperandNumbers, ...]
    epilogue_run_axes: int
    has_accumulator: bool
    result_item_bytes: int
    alignment_bytes: int
    capacity_bytes: int
    padding: float
    fetch_base: float
    fetch_per_byte: float
    fetch_per_run: float
    has_seconds: bool = False

    @property
    def shift_granule_bytes(self) -> int:
        """Return what divides the bytes of every shift."""
        return gcd(*(item_bytes for _, item_bytes, *_ in self.slots))


def search_task(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, padding: float) -> SearchTask:
    """Return the task of an operator on a chip. Raises `T10Error` where fetching more costs less."""
    base, per_byte, per_run = fetch_costs(cost)
    if min(base, per_byte, per_run) < 0:
        raise T10Error(
            f"an exchange costs {base} cycles, {per_byte} more per byte, {per_run} per fragment (expected none below 0)"
        )
    rotating = TemporalSpace.of(spec).rotating
    acc_bytes = size_bytes(spec.acc_dtype)
    return SearchTask(
        extents=spec.extents,
        lines=_mask(line_axes(spec)),
        slots=(
            *(_numbers(o, size_bytes(o.dtype), axes) for o, axes in zip(spec.inputs, rotating, strict=False)),
            _numbers(spec.output, acc_bytes, rotating[-1]),
        ),
        epilogue_inputs=tuple(_numbers(o, size_bytes(o.dtype), ()) for o in spec.epilogue_inputs),
        epilogue_run_axes=_mask(epilogue_run_axes(begun(spec) if takes_first(cost, spec) else spec)),
        has_accumulator=spec.acc_dtype != spec.output.dtype,
        result_item_bytes=size_bytes(spec.output.dtype),
        alignment_bytes=ALIGNMENT_BYTES,
        capacity_bytes=chip.capacity_bytes - chip.shift_buffer_bytes,
        padding=padding,
        fetch_base=float(base),
        fetch_per_byte=per_byte,
        fetch_per_run=float(per_run),
        has_seconds=overlaps(cost),
    )


def shift_table(cost: CostModel, limit_bytes: int, granule_bytes: int) -> ShiftTable:
    """Return the cycles of shifts of up to `limit_bytes`; cost models that can be hashed are asked once."""
    try:
        hash(cost)
    except TypeError:
        return _tabulated(cost, limit_bytes, granule_bytes)
    return _kept_table(cost, limit_bytes, granule_bytes)


@lru_cache(maxsize=16)
def _kept_table(cost: CostModel, limit_bytes: int, granule_bytes: int) -> ShiftTable:
    return _tabulated(cost, limit_bytes, granule_bytes)


def _tabulated(cost: CostModel, limit_bytes: int, granule_bytes: int) -> ShiftTable:
    is_hidden = overlaps(cost)  # by the steps beside them, perhaps: then they take nothing at least

    def cycles(table: Any) -> Any:
        return 0 * table[:, 0] if is_hidden else cost.shift_cycles_many(table[:, 0])

    function = cost_function(cycles, ((0, limit_bytes),))
    return ShiftTable(function, limit_bytes, granule_bytes)


def compute_bound(task: SearchTask, rows: Ints, sub_task: CostFunction) -> ComputeBound | None:
    """Return what bounds the compute cycles of all plans under rows of F_op (n, axes), None where nothing does.

    Operators that differ in what follows their loop nests share it.
    """
    if not isinstance(sub_task, Formula):
        return None
    rotating = tuple(numbers[-1] for numbers in task.slots)
    kept = _kept_bound(task.extents, task.lines, rotating, task.padding, rows.tobytes(), sub_task)
    with kept.lock:
        if kept.bound is not None:
            return kept.bound
        bound = _search.compute_bound(task, rows, sub_task)
        if bound is not None and bound.n_entries <= MOST_KEPT_ENTRIES:
            kept.bound = bound
        return bound


@dataclass(slots=True)
class _KeptBound:
    """A bound that is computed once: whoever asks for it meanwhile waits."""

    lock: Lock = field(default_factory=Lock)
    bound: ComputeBound | None = None


@lru_cache(maxsize=3)
def _kept_bound(*known: Hashable) -> _KeptBound:
    del known
    return _KeptBound()


def _numbers(operand: Operand, item_bytes: int, rotating: AxisSizes) -> OperandNumbers:
    dims = tuple(
        (tuple((term.axis, term.coefficient) for term in dim.terms), size)
        for dim, size in zip(operand.dims, operand.shape, strict=True)
    )
    return dims, item_bytes, operand.role == "weight", _mask(operand.simple_axes), _mask(rotating)


def _mask(axes: AxisSizes | frozenset[int]) -> int:
    return sum(1 << axis for axis in axes)
