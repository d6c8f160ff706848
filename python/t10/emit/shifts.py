"""Shifts: what every core takes from its ring neighbour when an axis advances, in rounds through the shift buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Ints
from t10.core.costs import sees_shifts
from t10.core.device import Pattern, Step
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.shift_rounds import Passage, first_indices, replaced_slots, shift_rounds, sources
from t10.cost import CostModel
from t10.emit.builder import SHIFT_BUFFER, Builder
from t10.emit.lowering_context import OperatorContext
from t10.emit.patterns import in_order, pattern


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
    room = builder.sizes[SHIFT_BUFFER]
    rounds = builder.once((*key, room), lambda: shift_patterns(spec, plan, statement, room))
    by_round = _cycles_by_round(cost, context, statement)
    for number, passages in enumerate(rounds):
        n_bytes = sum(each.passage.n_bytes for each in passages)
        cycles = cost.shift_cycles(n_bytes) if by_round is None else by_round[number]
        for each in passages:
            operands = tuple(names[part.number] for part in each.passage.parts)
            buffer = builder.shift_buffer(each.passage.dtype)
            steps.append(
                builder.exchange(spec.name, "shift", what, operands, buffer, each.pattern, cycles, note)
            )
            # Operands of other types pass in the same round.
            cycles = 0
        for each in passages:
            buffer = builder.shift_buffer(each.passage.dtype)
            # Cycles of copying out are counted with the shift's, as the cost model does.
            steps += [
                builder.exchange(spec.name, "copy_out", what, (buffer,), names[part.number], copied, 0)
                for part, copied in zip(each.passage.parts, each.copied_out, strict=True)
            ]
    return steps


def _cycles_by_round(cost: CostModel, context: OperatorContext, statement: Shift) -> tuple[int, ...] | None:
    """Return the cycles of a shift by round, None where the cost model goes by the bytes of a round."""
    return cost.round_cycles(context.spec, context.plan, statement) if sees_shifts(cost) else None


@dataclass(frozen=True, slots=True)
class PassagePatterns:
    """The patterns of a passage: into the buffer, and out of it by part."""

    passage: Passage
    pattern: Pattern
    copied_out: tuple[Pattern, ...]


def shift_patterns(
    spec: OperatorSpec, plan: OperatorPlan, statement: Shift, room: int
) -> tuple[tuple[PassagePatterns, ...], ...]:
    """Return the rounds in which operands advance together, `room` bytes at most in each."""
    slabs = {number: _slab(spec, plan, number, statement) for number in statement.operands}
    return tuple(
        tuple(_passes(passage, slabs) for passage in passages)
        for passages in shift_rounds(spec, plan, statement, room)
    )


def _slab(spec: OperatorSpec, plan: OperatorPlan, number: int, statement: Shift) -> tuple[Ints, Ints]:
    """Return the slots of an operand that a shift replaces, (cores, n), and from which core each core takes them."""
    first, core = np.unique(first_indices(spec, plan, number, statement), return_inverse=True)
    slots = replaced_slots(spec, plan, number, statement.axis, first)
    return slots[core.reshape(-1)], sources(spec, plan, number, statement)


def _passes(passage: Passage, slabs: Mapping[int, tuple[Ints, Ints]]) -> PassagePatterns:
    """Return the patterns of what passes at once: parts lie side by side in the buffer."""
    parts = [
        (slabs[part.number][0][:, part.first : part.last], slabs[part.number][1]) for part in passage.parts
    ]
    item_bytes = size_bytes(passage.dtype)
    n = sum(slots.shape[1] for slots, _ in parts)
    tiles = np.arange(len(parts[0][1]))[:, None]
    source = np.concatenate([np.full(slots.shape[1], i) for i, (slots, _) in enumerate(parts)])[None, :]
    from_tile = np.concatenate([np.broadcast_to(tile[:, None], slots.shape) for slots, tile in parts], axis=1)
    from_slot = np.concatenate([slots[tile] for slots, tile in parts], axis=1)
    moves = in_order(source, from_tile, from_slot, tiles, passage.begin + np.arange(n)[None, :])
    passed = pattern(moves, item_bytes)
    copied_out: list[Pattern] = []
    begin = passage.begin
    for slots, _ in parts:
        n_part = slots.shape[1]
        moves = in_order(0, tiles, begin + np.arange(n_part)[None, :], tiles, slots)
        copied_out.append(pattern(moves, item_bytes))
        begin += n_part
    return PassagePatterns(passage, passed, tuple(copied_out))
