"""Why steps of one plan take longer in one memory than in another: where its operands lie, and how they arrive."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.placed_costs import StepLies, step_lies
from t10.core.plan import Cycles
from t10.core.products import hands_on_rounded
from t10.core.program import Reduce
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.core.tile import TileMemory
from t10.core.vertex_nest import Lie

SHIFT, SUMS, RESULT = "the shift buffer", "the accumulators", "the result"
NARROW = "outside the interleaved region (code without 16-byte loads)"
CONFLICT = " share memory elements (bank conflicts)"
MOST_PAIRS = 3
"""How many pairs of operands that share memory elements are named."""
PLACED_KINDS = ("compute", "shift", "reduce")
"""Kinds of cycles that depend on where operands lie."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A planned model, and the memory of a core of its chip; `is_wide` if data reach its interleaved region."""

    plan: ModulePlan
    memory: TileMemory
    is_wide: bool

    @classmethod
    def on(cls, chip: ChipSpec, plan: ModulePlan) -> Placed:
        """Return a model planned for a chip."""
        return cls(plan, chip.tile_memory, chip.has_interleaved_data)

    def facts(self) -> dict[str, tuple[str, ...]]:
        """Return by operator what of how its operands lie makes its steps slow."""
        lies, buffers = step_lies(self.plan, self.memory), {each.name for each in self.plan.buffers}
        return {
            spec.name: tuple(dict.fromkeys(_facts(spec, scheduled, lies[spec.name], buffers)))
            for spec, scheduled in _pairs(self.plan)
            if spec.name in lies
        }


def _said(facts: Iterable[str]) -> Iterator[str]:
    """Yield facts; of operands that share memory elements, all pairs in one."""
    conflicts: list[str] = []
    others: list[str] = []
    for fact in facts:
        (conflicts if fact.endswith(CONFLICT) else others).append(fact.removesuffix(CONFLICT))
    if len(conflicts) == 1:
        yield f"{conflicts[0]}{CONFLICT}"
    elif conflicts:
        more = len(conflicts) - MOST_PAIRS
        named = ", ".join(conflicts[:MOST_PAIRS]) + (f", and {more} more" if more > 0 else "")
        yield f"{len(conflicts)} pairs of operands{CONFLICT}: {named}"
    yield from others


def placement_reasons(placed: Placed, step: int, alone: Cycles) -> tuple[str, ...]:
    """Return why an operator takes longer where it was placed than `alone`, where nothing hinders the same plan."""
    scheduled = placed.plan.operators[step]
    more = sum(getattr(scheduled.active.cycles, kind) - getattr(alone, kind) for kind in PLACED_KINDS)
    facts = placed.facts().get(scheduled.name, ())
    # What no placement could change is in the cycles of the plan alone, too.
    facts = tuple(each for each in facts if placed.is_wide or NARROW not in each)
    if more <= 0 or not facts:
        return ()
    return (f"where it was placed, {more:,} cycles more than alone: {'; '.join(_said(facts))}",)


def reasons_of_same_plans(a: Placed, b: Placed) -> dict[str, tuple[str, ...]]:
    """Return why operators that are cut alike in two runs take other cycles, by name."""
    in_b = {each.name: each for each in b.plan.operators}
    facts = a.facts(), b.facts()
    found: dict[str, tuple[str, ...]] = {}
    for spec, first in _pairs(a.plan):
        second = in_b.get(spec.name, first)
        if first.active.cycles == second.active.cycles or _cuts(first) != _cuts(second):
            continue
        here, there = (each.get(spec.name, ()) for each in facts)
        placed = [f"in A {each}" for each in _said(each for each in here if each not in there)]
        placed += [f"in B {each}" for each in _said(each for each in there if each not in here)]
        cycles = [[getattr(each.active.cycles, kind) for kind in PLACED_KINDS] for each in (first, second)]
        found[spec.name] = (*_arrivals(spec, first, second), *(placed if cycles[0] != cycles[1] else ()))
    return found


def _pairs(plan: ModulePlan) -> Iterator[tuple[OperatorSpec, ScheduledOperator]]:
    return zip(plan.graph.operators, plan.operators, strict=True)


def _cuts(scheduled: ScheduledOperator) -> object:
    plan = scheduled.active.plan
    return plan.f_op, plan.ft, plan.rp, plan.loop_order


def _arrivals(spec: OperatorSpec, a: ScheduledOperator, b: ScheduledOperator) -> Iterator[str]:
    """Yield which operands come another way, and whether weights come too late."""
    before = {each.operand: each for each in a.arrivals}
    for after in b.arrivals:
        first = before.get(after.operand, after)
        if (first.kind, first.cycles) != (after.kind, after.cycles):
            name = operand_of(spec, after.operand).name
            ways = [f"{each.kind.replace('_', ' ')} ({each.cycles:,} cycles)" for each in (first, after)]
            yield f"{name}: {' -> '.join(ways)}"
    if a.active.cycles.wait != b.active.cycles.wait:
        yield "weights are not prefetched in time"


def _facts(
    spec: OperatorSpec, scheduled: ScheduledOperator, lies: StepLies, buffers: Container[str]
) -> Iterator[str]:
    """Yield what of how operands lie makes steps slow."""
    inputs = [operand.name for operand in spec.inputs]
    sums = SUMS if f"accumulator:{spec.name}" in buffers else RESULT
    steps = (*inputs, *([SHIFT] if hands_on_rounded(spec) else []), sums)
    yield from _conflicts(lies.sub_task, steps)
    if any(isinstance(each, Reduce) for each in scheduled.body):
        yield from _conflicts(lies.combine, (SHIFT, sums))
    if spec.epilogue is not None:
        yield from _conflicts(lies.end, (sums, *(operand.name for operand in spec.epilogue_inputs), RESULT))
    if lies.shift_places is not None:
        yield f"{SHIFT} shares memory elements with what rotates (bank conflicts)"
    narrow = [name for number, name in enumerate(steps) if number not in lies.sub_task.interleaved]
    if narrow:
        which = "all operands" if len(narrow) == len(steps) else ", ".join(dict.fromkeys(narrow))
        yield f"{which} {NARROW}"
    if not lies.has_zeros:
        yield "the padding of an input holds what another operator left (code that skips it)"


def _conflicts(lie: Lie, names: Sequence[str]) -> Iterator[str]:
    for i, j in combinations(range(len(names)), 2):
        if (i, j) not in lie.apart and names[i] != names[j]:
            first, second = sorted((names[i], names[j]), key=_order)
            yield f"{first} and {second}{CONFLICT}"


def _order(name: str) -> tuple[bool, str]:
    """Return a key by which a pair of operands is named one way in all steps: names of the model first."""
    return name in (SHIFT, SUMS, RESULT), name
