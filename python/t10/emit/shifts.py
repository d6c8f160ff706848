"""Shifts: what every core takes from its ring neighbour when an axis advances, in rounds through the shift buffer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.costs import shift_cycles
from t10.core.device import Pattern, Step
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.cost import CostModel
from t10.cost.operator import rotating_dtype, shift_bytes
from t10.emit.builder import SHIFT_BUFFER, Builder
from t10.emit.lowering_context import OperatorContext
from t10.emit.patterns import in_order, pattern
from t10.errors import T10Error

EVEN_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Slab:
    """The slots of rotatable operand `number` that a shift replaces, (cores, n), and whose slab each core receives.

    Windows are circular: what a core receives goes exactly where what it passes on lay.
    """

    number: int
    slots: Ints
    sources: Ints


def slab(
    spec: OperatorSpec, plan: OperatorPlan, number: int, axis: int, positions: AxisSizes, direction: int
) -> Slab:
    """Return what operand `number` moves when `axis` advances by `direction` from loop state `positions`.

    A dim over several axes is replaced whole, halo included (compute-shift model R5).
    """
    sources = geometry.shift_sources(spec, plan, number, axis, direction)
    if (sources < 0).any():
        raise T10Error(
            f"{spec.rotatable[number].name} has no ring neighbour along axis {axis}", operator=spec.name
        )
    operand = spec.rotatable[number]
    lengths = geometry.window_lengths(plan, number)
    extents = geometry.partition_shape(operand, lengths)
    pace, length = plan.rp[axis], lengths[axis]
    if axis not in operand.simple_axes or pace == length:
        everything = np.arange(int(np.prod(extents)), dtype=np.int64)[None, :]
        return Slab(number, np.broadcast_to(everything, (plan.n_cores, everything.shape[1])), sources)
    start = geometry.window_starts(plan, number, positions)[:, axis]
    first = start if direction > 0 else start - pace
    window = (first[:, None] + np.arange(pace)) % length
    flat = np.zeros((plan.n_cores, 1, 1), np.int64)
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
    return Slab(number, np.sort(flat.reshape(plan.n_cores, -1), axis=1), sources)


def shift(builder: Builder, cost: CostModel, context: OperatorContext, statement: Shift) -> list[Step]:
    """Return the copies of a shift: through the shift buffer, as often as its operands fill it."""
    spec, plan = context.spec, context.plan
    axis, positions, direction = statement.axis, statement.positions, statement.direction
    names = (*context.inputs, context.accumulator)
    way = "forward" if direction > 0 else "backward"
    what = f":{spec.axes[axis].name}:{way}"
    note = f"{spec.axes[axis].name} advances {way} by {plan.rp[axis]}"
    steps: list[Step] = []
    key = ("shift", builder.kind_of(spec), plan, statement.operands, axis, positions[axis], direction)
    room = builder.places[SHIFT_BUFFER].size_bytes
    make = partial(shift_rounds, spec, plan, statement, room)
    left = shift_bytes(spec, plan, statement.operands, axis)
    charged = shift_cycles(cost, spec, statement, left)
    for one in builder.once((*key, room), make):
        left -= one.n_bytes
        # The last round takes what the others leave.
        cycles = min(cost.shift_cycles(one.n_bytes), charged) if left else charged
        charged -= cycles
        for passes in one.passes:
            sources = tuple(names[n] for n, _ in passes.copied_out)
            buffer = builder.shift_buffer(passes.dtype)
            steps.append(
                builder.exchange(spec.name, "shift", what, sources, buffer, passes.pattern, cycles, note)
            )
            # Operands of other types pass in the same phase.
            cycles = 0
        for passes in one.passes:
            buffer = builder.shift_buffer(passes.dtype)
            # Cycles of copying out are counted with the shift's, as the cost model does.
            steps += [
                builder.exchange(spec.name, "copy_out", what, (buffer,), names[n], pattern, 0)
                for n, pattern in passes.copied_out
            ]
    return steps


@dataclass(frozen=True, slots=True)
class Passes:
    """What operands of one type pass on in a round, and where each (by number) takes it from the buffer."""

    dtype: str
    pattern: Pattern
    copied_out: tuple[tuple[int, Pattern], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """One filling of the shift buffer."""

    passes: tuple[Passes, ...]
    n_bytes: int


def shift_rounds(spec: OperatorSpec, plan: OperatorPlan, statement: Shift, room: int) -> tuple[Round, ...]:
    """Return the rounds in which operands advance together, `room` bytes at most in each.

    Operands of one type lie side by side in the buffer, types one after the other from a multiple of eight bytes on.
    """
    rounds: list[Round] = []
    passes: list[Passes] = []
    begin = n_bytes = 0
    for dtype in dict.fromkeys(rotating_dtype(spec, n) for n in statement.operands):
        item_bytes = size_bytes(dtype)
        slabs = [
            slab(spec, plan, n, statement.axis, statement.positions, statement.direction)
            for n in statement.operands
            if rotating_dtype(spec, n) == dtype
        ]
        first, n_elements = 0, sum(s.slots.shape[1] for s in slabs)
        while first < n_elements:
            last = min(first + (room - begin) // item_bytes, n_elements)
            if last > first:
                passes.append(_passes(_parts(slabs, first, last), dtype, item_bytes, begin // item_bytes))
                n_bytes += (last - first) * item_bytes
                begin += -(-(last - first) * item_bytes // EVEN_BYTES) * EVEN_BYTES
            if last < n_elements:
                rounds.append(Round(tuple(passes), n_bytes))
                passes, begin, n_bytes = [], 0, 0
            first = last
    return (*rounds, Round(tuple(passes), n_bytes))


def _parts(slabs: list[Slab], first: int, last: int) -> list[Slab]:
    """Return elements number `first` to `last` (excluded) of slabs laid end to end."""
    parts: list[Slab] = []
    before = 0
    for whole in slabs:
        n = whole.slots.shape[1]
        begin, end = max(first - before, 0), min(last - before, n)
        if begin < end:
            parts.append(Slab(whole.number, whole.slots[:, begin:end], whole.sources))
        before += n
    return parts


def _passes(parts: list[Slab], dtype: str, item_bytes: int, begin: int) -> Passes:
    """Return what parts of one type do in a round: they lie side by side in the buffer, from slot `begin` on."""
    n = sum(part.slots.shape[1] for part in parts)
    tiles = np.arange(len(parts[0].sources))[:, None]
    source = np.concatenate([np.full(part.slots.shape[1], i) for i, part in enumerate(parts)])[None, :]
    from_tile = np.concatenate(
        [np.broadcast_to(part.sources[:, None], part.slots.shape) for part in parts], axis=1
    )
    from_slot = np.concatenate([part.slots[part.sources] for part in parts], axis=1)
    moves = in_order(source, from_tile, from_slot, tiles, begin + np.arange(n)[None, :])
    passed = pattern(moves, item_bytes)
    copied_out: list[tuple[int, Pattern]] = []
    for part in parts:
        n_part = part.slots.shape[1]
        moves = in_order(0, tiles, begin + np.arange(n_part)[None, :], tiles, part.slots)
        copied_out.append((part.number, pattern(moves, item_bytes)))
        begin += n_part
    return Passes(dtype, passed, tuple(copied_out))
