"""The compute-shift nest of an operator: sub-tasks with a shift between each two, inner loops going to and fro."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry
from t10.core.device import Pattern, Step
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.neutral import neutral_value
from t10.core.plan import OperatorPlan
from t10.core.products import zero_padded_axes
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.core.schedule import Arrival, ScheduledOperator
from t10.core.task import TaskOperand
from t10.cost import CostModel
from t10.cost.operator import rotating_dtype, sub_task_box
from t10.emit.builder import SHIFT_BUFFER, Builder, flat_operand
from t10.emit.patterns import in_order, pattern
from t10.emit.pieces import Piece, lacks_terms, sub_task_pieces
from t10.emit.running import Running
from t10.emit.shifts import Slab, slab
from t10.emit.tasks import axis_strides, uses_position
from t10.emit.vertices import Nest, Work, renamed

Ints = NDArray[np.int64]
EVEN_BYTES = 8


def run_nest(builder: Builder, cost: CostModel, running: Running) -> list[Step]:
    """Return the steps of all sub-tasks and the shifts between them, in serpentine order."""
    spec, plan = running.spec, running.plan
    steps: list[Step] = []
    filled = _filled_first(running)
    if filled.any():
        steps.append(_fill(builder, running, np.flatnonzero(filled)))
    seen: set[AxisSizes] = set()
    for positions, axis, direction in _states(plan.loop_order, plan.steps):
        where = tuple(p for a, p in enumerate(positions) if a not in spec.reduction_axes)
        begins = np.zeros_like(filled) if where in seen else ~filled
        seen.add(where)
        steps.extend(_sub_task(builder, cost, running, positions, begins))
        if axis >= 0:
            moving = [n for n in range(len(plan.ft)) if plan.ft[n][axis] > 1]
            steps.extend(_advance(builder, cost, running, moving, positions, axis, direction))
    return steps


def _filled_first(running: Running) -> NDArray[np.bool_]:
    """Return which cores' accumulators must hold the neutral element before the nest.

    A sub-task that is the first to touch its outputs replaces them. That does not do where accumulators rotate (other
    cores have touched them), nor where the first part of a core's reduction is all padding (nothing touches them).
    """
    spec, plan = running.spec, running.plan
    if spec.combine == "none":
        return np.zeros(plan.n_cores, np.bool_)
    if geometry.ring_length(plan, running.output_slot) > 1:
        return np.ones(plan.n_cores, np.bool_)
    filled = np.zeros(plan.n_cores, np.bool_)
    seen: set[AxisSizes] = set()
    for positions, _, _ in _states(plan.loop_order, plan.steps):
        where = tuple(p for a, p in enumerate(positions) if a not in spec.reduction_axes)
        if where not in seen:
            filled |= lacks_terms(spec, plan, positions, running.whole)
        seen.add(where)
    return filled


def shift_home(
    builder: Builder, cost: CostModel, running: Running, arrivals: tuple[Arrival, ...]
) -> list[Step]:
    """Return the shifts that bring weights that rotate in their idle place back to where they started."""
    plan = running.plan
    positions = list(geometry.final_positions(plan))
    weights = {
        a.operand
        for a in arrivals
        if a.kind == "in_place" and a.operand < len(running.inputs)
        and running.spec.inputs[a.operand].role == "weight"
    }  # fmt: skip
    steps: list[Step] = []
    for axis in plan.loop_order:
        moving = [n for n in sorted(weights) if plan.ft[n][axis] > 1]
        if positions[axis] and moving:
            steps.extend(_advance(builder, cost, running, moving, tuple(positions), axis, 1))
            positions[axis] = 0
    return steps


def _states(loop_order: AxisSizes, steps: AxisSizes) -> Iterator[tuple[AxisSizes, int, int]]:
    """Yield every loop state with the axis that advances after it (-1 at the end) and in which direction."""
    positions = [0] * len(steps)
    directions = [1] * len(steps)
    while True:
        advancing = -1
        for axis in reversed(loop_order):
            if 0 <= positions[axis] + directions[axis] < steps[axis]:
                advancing = axis
                break
            directions[axis] = -directions[axis]
        yield tuple(positions), advancing, directions[advancing] if advancing >= 0 else 0
        if advancing < 0:
            return
        positions[advancing] += directions[advancing]


def nest_of(running: Running) -> Nest:
    """Return the loop nest of an operator's sub-tasks, all axes in the operator's order."""
    spec, plan = running.spec, running.plan
    operands = [
        (name, TaskOperand(operand.dtype, axis_strides(operand, geometry.window_lengths(plan, n))))
        for n, (name, operand) in enumerate(zip(running.inputs, spec.inputs, strict=True))
    ]
    lengths = geometry.window_lengths(plan, running.output_slot)
    output = (running.accumulator, TaskOperand(spec.acc_dtype, axis_strides(spec.output, lengths)))
    return Nest(spec.body, spec.combine, spec.reduction_axes, (*operands, output), spec.selectors)


def _sub_task(
    builder: Builder,
    cost: CostModel,
    running: Running,
    positions: AxisSizes,
    begins: NDArray[np.bool_],
) -> list[Step]:
    """Return the executions of one sub-task, one per piece; `begins` (cores,) where its outputs hold nothing yet."""
    spec, plan = running.spec, running.plan
    cycles = cost.sub_task_cycles(spec, sub_task_box(plan))
    note = f"box {'x'.join(map(str, sub_task_box(plan)))} at position {list(positions)}"
    steps: list[Step] = []
    key = ("sub-task", builder.kind_of(spec), plan, running.whole, positions, begins.tobytes())
    made = builder.once(key, lambda: tuple(sub_task_work(running, positions, begins)))
    names = (*running.inputs, running.accumulator)
    for number, (nest, work) in enumerate(renamed(made, names)):
        steps.append(builder.execute(spec.name, "sub_task", nest, work, 0 if number else cycles, note))
    return steps


def sub_task_work(
    running: Running, positions: AxisSizes, begins: NDArray[np.bool_] | bool
) -> Iterator[tuple[Nest, Work]]:
    """Yield what cores do in the sub-task at a loop state, piece by piece; `begins` as in `_sub_task`."""
    spec, plan = running.spec, running.plan
    nest = nest_of(running)
    begins = np.broadcast_to(begins, plan.n_cores)
    for piece in sub_task_pieces(spec, plan, positions, running.whole):
        chosen = np.flatnonzero(piece.extents.all(axis=1))
        offsets = operand_offsets(running, nest, piece, chosen)
        initial = begins[chosen] & piece.is_first[chosen]
        if spec.combine == "none":
            initial[:] = True
        origin = None
        if uses_position((spec.body, *(s.index for s in spec.selectors)), spec.selectors):
            origin = geometry.coordinates(plan)[chosen] * np.array(plan.lengths) + piece.local[chosen]
        yield nest, Work(chosen, piece.extents[chosen], offsets, initial, origin)


def whole_axes(spec: OperatorSpec, scheduled: ScheduledOperator) -> frozenset[int]:
    """Return the summed axes whose padding holds zeros in every input: those that arrive, or that the host filled.

    A result that is read where another operator left it has anything in its padding.
    """
    if any(
        arrival.kind == "in_place" and not arrival.buffer.startswith(("idle:", "input:"))
        for arrival in scheduled.arrivals
        if arrival.operand < len(spec.inputs)
    ):
        return frozenset()
    return zero_padded_axes(spec, scheduled.active.plan)


def operand_offsets(running: Running, nest: Nest, piece: Piece, chosen: Ints) -> Ints:
    """Return the byte offset of a piece's first element in every operand, shape (chosen cores, operands)."""
    columns: list[Ints] = []
    for n, (_, operand) in enumerate(nest.operands):
        lengths = np.array(geometry.window_lengths(running.plan, n))
        slots = ((piece.local[chosen] % lengths) * np.array(operand.strides)).sum(axis=1)
        columns.append(slots * size_bytes(operand.dtype))
    return np.stack(columns, axis=1)


def _fill(builder: Builder, running: Running, tiles: Ints) -> Step:
    """Return the execution that puts the neutral element into the accumulators of `tiles`."""
    spec = running.spec
    body = ScalarFunction(0, (ScalarOp("const", (), spec.acc_dtype, neutral_text(spec)),), 0)
    nest = Nest(body, "none", (), ((running.accumulator, flat_operand(spec.acc_dtype)),))
    work = flat_work(tiles, np.full(len(tiles), running.n_output_slots), np.zeros((len(tiles), 1), np.int64))
    return builder.execute(spec.name, "fill", nest, work, 0)


def flat_work(tiles: Ints, extents: Ints, offsets: Ints) -> Work:
    """Return work over one axis that replaces what was there."""
    return Work(tiles, extents[:, None], offsets, np.ones(len(tiles), np.bool_))


def neutral_text(spec: OperatorSpec) -> str:
    """Return the spelling of the element that changes nothing when it is combined."""
    return constant_text(neutral_value(spec.combine, spec.acc_dtype))


def _advance(
    builder: Builder,
    cost: CostModel,
    running: Running,
    moving: list[int],
    positions: AxisSizes,
    axis: int,
    direction: int,
) -> list[Step]:
    """Return one advance of operands `moving` along an axis: through the shift buffer, as often as they fill it."""
    spec, plan = running.spec, running.plan
    names = (*running.inputs, running.accumulator)
    way = "forward" if direction > 0 else "backward"
    what = f":{spec.axes[axis].name}:{way}"
    note = f"{spec.axes[axis].name} advances {way} by {plan.rp[axis]}"
    steps: list[Step] = []
    key = ("shift", builder.kind_of(spec), plan, tuple(moving), axis, positions[axis], direction)
    room = builder.places[SHIFT_BUFFER].size_bytes
    make = partial(_rounds, spec, plan, moving, axis, positions, direction, room)
    for one in builder.once((*key, room), make):
        cycles = cost.shift_cycles(one.n_bytes)
        for passes in one.passes:
            sources = tuple(names[n] for n, _ in passes.lands)
            buffer = builder.shift_buffer(passes.dtype)
            steps.append(
                builder.exchange(spec.name, "shift", what, sources, buffer, passes.pattern, cycles, note)
            )
            # Operands of other types pass in the same phase.
            cycles = 0
        for passes in one.passes:
            buffer = builder.shift_buffer(passes.dtype)
            # Cycles of landing are counted with the shift's, as the cost model does.
            steps += [
                builder.exchange(spec.name, "land", what, (buffer,), names[n], pattern, 0)
                for n, pattern in passes.lands
            ]
    return steps


@dataclass(frozen=True, slots=True)
class _Passes:
    """What operands of one type pass on in a round, and where each (by number) takes it from the buffer."""

    dtype: str
    pattern: Pattern
    lands: tuple[tuple[int, Pattern], ...]


@dataclass(frozen=True, slots=True)
class _Round:
    """One filling of the shift buffer."""

    passes: tuple[_Passes, ...]
    n_bytes: int


def _rounds(
    spec: OperatorSpec,
    plan: OperatorPlan,
    moving: list[int],
    axis: int,
    positions: AxisSizes,
    direction: int,
    room: int,
) -> tuple[_Round, ...]:
    """Return the rounds in which operands advance together, `room` bytes at most in each.

    Operands of one type lie side by side in the buffer, types one after the other from a multiple of eight bytes on.
    """
    rounds: list[_Round] = []
    passes: list[_Passes] = []
    begin = n_bytes = 0
    for dtype in dict.fromkeys(rotating_dtype(spec, n) for n in moving):
        item_bytes = size_bytes(dtype)
        slabs = [
            slab(spec, plan, n, axis, positions, direction)
            for n in moving
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
                rounds.append(_Round(tuple(passes), n_bytes))
                passes, begin, n_bytes = [], 0, 0
            first = last
    return (*rounds, _Round(tuple(passes), n_bytes))


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


def _passes(parts: list[Slab], dtype: str, item_bytes: int, begin: int) -> _Passes:
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
    lands: list[tuple[int, Pattern]] = []
    for part in parts:
        n_part = part.slots.shape[1]
        moves = in_order(0, tiles, begin + np.arange(n_part)[None, :], tiles, part.slots)
        lands.append((part.number, pattern(moves, item_bytes)))
        begin += n_part
    return _Passes(dtype, passed, tuple(lands))
