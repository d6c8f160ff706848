"""Which elements a shift moves, and how they share the shift buffer: operands that advance together pass in rounds.

Windows are circular: what a core receives goes exactly where what it passes on lay, so both are the same slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.errors import T10Error

EVEN_BYTES = 8


@dataclass(frozen=True, slots=True)
class Part:
    """Elements number `first` to `last` (excluded) of what rotatable operand `number` passes on."""

    number: int
    first: int
    last: int

    @property
    def n_elements(self) -> int:
        """Return how many elements there are."""
        return self.last - self.first


@dataclass(frozen=True, slots=True)
class Passage:
    """One exchange of a round: parts of operands of one type, side by side in the buffer from slot `begin` on."""

    dtype: str
    begin: int
    parts: tuple[Part, ...]

    @property
    def n_bytes(self) -> int:
        """Return the bytes that every core takes."""
        return sum(part.n_elements for part in self.parts) * size_bytes(self.dtype)


def rotating_dtype(spec: OperatorSpec, slot: int) -> str:
    """Return the element type in which rotatable operand number `slot` moves: the output moves as its accumulator."""
    return spec.inputs[slot].dtype if slot < len(spec.inputs) else spec.acc_dtype


def shift_elements(spec: OperatorSpec, plan: OperatorPlan, slot: int, axis: int) -> int:
    """Return the elements of operand `slot` that a core passes on when `axis` advances; 0 where it does not rotate.

    A simple dim passes on `rp` of its indices; a dim over several axes is replaced whole, halo included.
    """
    if plan.ft[slot][axis] == 1:
        return 0
    operand = spec.rotatable[slot]
    lengths = geometry.window_lengths(plan, slot)
    n_elements = prod(geometry.partition_shape(operand, lengths))
    if axis not in operand.simple_axes:
        return n_elements
    return n_elements // lengths[axis] * plan.rp[axis]


def shift_bytes(spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> int:
    """Return the bytes a core passes on in a shift, all its operands together."""
    return sum(
        shift_elements(spec, plan, slot, statement.axis) * size_bytes(rotating_dtype(spec, slot))
        for slot in statement.operands
    )


def sources(spec: OperatorSpec, plan: OperatorPlan, number: int, statement: Shift) -> Ints:
    """Return from which core each core takes what operand `number` passes on."""
    found = geometry.shift_sources(spec, plan, number, statement.axis, statement.direction)
    if (found < 0).any():
        raise T10Error(
            f"{spec.rotatable[number].name} has no ring neighbour along axis {statement.axis}",
            operator=spec.name,
        )
    return found


def first_indices(spec: OperatorSpec, plan: OperatorPlan, number: int, statement: Shift) -> Ints:
    """Return by core the first index along the axis that operand `number` replaces in its window; 0 if it does whole.

    A dim over several axes is replaced whole, halo included (compute-shift model R5).
    """
    axis, pace = statement.axis, plan.rp[statement.axis]
    length = geometry.window_lengths(plan, number)[axis]
    if axis not in spec.rotatable[number].simple_axes or pace == length:
        return np.zeros(plan.n_cores, np.int64)
    start = geometry.window_starts(plan, number, statement.positions)[:, axis]
    first = start if statement.direction > 0 else start - pace
    return first % length


def alike_indices(spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, first: Ints) -> Ints:
    """Return the least indices that operand `number` may replace from, in place of `first`, at as much work.

    Whole words of eight bytes lie between the slots of both; a window that goes on at its beginning is like no other.
    """
    operand = spec.rotatable[number]
    lengths = geometry.window_lengths(plan, number)
    pace, length = plan.rp[axis], lengths[axis]
    if pace == length or axis not in operand.simple_axes:
        return first
    extents = geometry.partition_shape(operand, lengths)
    strides = (prod(extents[d + 1 :]) for d, dim in enumerate(operand.dims) if axis in dim.axes)
    index_bytes = sum(strides) * size_bytes(rotating_dtype(spec, number))
    return np.where(first + pace <= length, first % (EVEN_BYTES // gcd(index_bytes, EVEN_BYTES)), first)


def replaced_slots(spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, first: Ints) -> Ints:
    """Return the slots of operand `number` that a shift replaces from index `first` (n,) on, ascending, (n, slots)."""
    operand = spec.rotatable[number]
    lengths = geometry.window_lengths(plan, number)
    extents = geometry.partition_shape(operand, lengths)
    pace, length = plan.rp[axis], lengths[axis]
    if axis not in operand.simple_axes or pace == length:
        return np.broadcast_to(np.arange(prod(extents), dtype=np.int64), (len(first), prod(extents)))
    window = (first[:, None] + np.arange(pace)) % length
    along = np.zeros((1, 1), np.int64)
    stride = 1
    others = np.zeros(1, np.int64)
    for dim, extent in zip(reversed(operand.dims), reversed(extents), strict=True):
        if dim.is_simple and axis in dim.axes:
            along = along + window * stride
        else:
            others = (np.arange(extent)[:, None] * stride + others[None, :]).reshape(-1)
        stride *= extent
    flat = along[:, :, None] + others[None, None, :]
    return np.sort(flat.reshape(len(first), -1), axis=1)


def shift_rounds(
    spec: OperatorSpec, plan: OperatorPlan, statement: Shift, room_bytes: int
) -> Iterator[tuple[Passage, ...]]:
    """Yield the rounds in which operands advance together, each as its exchanges, `room_bytes` at most in all of them.

    Operands of one type lie side by side in the buffer, types one after the other from a multiple of eight bytes on.
    """
    passages: list[Passage] = []
    begin = 0
    for dtype in dict.fromkeys(rotating_dtype(spec, n) for n in statement.operands):
        item_bytes = size_bytes(dtype)
        sizes = [
            (n, shift_elements(spec, plan, n, statement.axis))
            for n in statement.operands
            if rotating_dtype(spec, n) == dtype
        ]
        first, n_elements = 0, sum(size for _, size in sizes)
        while first < n_elements:
            last = min(first + (room_bytes - begin) // item_bytes, n_elements)
            if last > first:
                passages.append(Passage(dtype, begin // item_bytes, tuple(_parts(sizes, first, last))))
                begin += -(-(last - first) * item_bytes // EVEN_BYTES) * EVEN_BYTES
            if last < n_elements:
                yield tuple(passages)
                passages, begin = [], 0
            first = last
    yield tuple(passages)


def _parts(sizes: list[tuple[int, int]], first: int, last: int) -> Iterator[Part]:
    """Yield the parts that are elements `first` to `last` (excluded) of operands (number, elements) laid end to end."""
    before = 0
    for number, n in sizes:
        begin, end = max(first - before, 0), min(last - before, n)
        if begin < end:
            yield Part(number, begin, end)
        before += n
