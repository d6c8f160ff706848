"""Costs of an operator's steps where its buffers lie, where a cost model looks at that."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol, TypeVar, runtime_checkable

from t10.core.contiguous_parts import is_cut
from t10.core.costs import Costs, computed, nest_cycles
from t10.core.expression import OperatorSpec
from t10.core.first_partial import split_arrivals
from t10.core.loads import Places, shared_places
from t10.core.plan import OperatorPlan
from t10.core.products import hands_on_rounded, n_nest_operands
from t10.core.schedule import Arrival, ModulePlan, ScheduledOperator
from t10.core.tile import TileMemory, TileRange, are_apart
from t10.core.vertex_nest import Lie

SHIFT = "shift"
COPIES = 2
"""What a copy takes at most that also fills padding, in copies of as many bytes in a row."""
C = TypeVar("C", bound=Costs)
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class StepLies:
    """How operands of an operator's steps lie.

    In order: inputs, the shift buffer where sums grow in it, and accumulators; shift buffer and accumulators; in the
    end accumulators, epilogue inputs, result; if the end does the last additions as well, the shift buffer and those.
    `places` are those of the shift buffer and the accumulators where they are not apart, None where that is not known;
    `shift_places` those of the shift buffer and inputs and accumulators, where what rotates is not apart from it.
    `has_zeros`: in the padding of inputs, as far as adding them changes nothing.
    """

    sub_task: Lie
    combine: Lie
    end: Lie
    places: Places | None = None
    shift_places: Places | None = None
    has_zeros: bool = True
    fused: Lie | None = None

    def without_interleaved(self) -> StepLies:
        """Return how they lie in a memory of which no data reach the interleaved region."""
        none = frozenset[int]()
        return replace(
            self,
            sub_task=replace(self.sub_task, interleaved=none),
            combine=replace(self.combine, interleaved=none),
            end=replace(self.end, interleaved=none),
            fused=self.fused and replace(self.fused, interleaved=none),
        )


@runtime_checkable
class PlacedCosts(Protocol):
    """What a cost model says that looks at where operands lie."""

    def lying(self: S, lies: StepLies) -> S:
        """Return the costs of steps whose operands lie so."""
        ...


def placed_costs(costs: C, plan: ModulePlan, memory: TileMemory) -> dict[str, C]:
    """Return by operator the costs of its steps where a plan's buffers lie."""
    if not isinstance(costs, PlacedCosts):
        return {spec.name: costs for spec in plan.graph.operators}
    places = tile_ranges(plan, memory)
    known: dict[StepLies, C] = {}
    result: dict[str, C] = {}
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        if len(scheduled.arrivals) < len(spec.inputs) + len(spec.epilogue_inputs):
            # What never arrives lies nowhere; whoever executes the plan says so.
            result[spec.name] = costs
            continue
        lies = _lies(computed(costs, spec, scheduled.active.plan), spec, scheduled, places)
        if lies not in known:
            known[lies] = costs.lying(lies)
        result[spec.name] = known[lies]
    return result


def step_lies(plan: ModulePlan, memory: TileMemory) -> dict[str, StepLies]:
    """Return by operator how the operands of its steps lie, where all of them have a place; sums begin with no bias."""
    places = tile_ranges(plan, memory)
    return {
        spec.name: _lies(spec, spec, scheduled, places)
        for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True)
        if _is_placed(spec, scheduled, places)
    }


def _is_placed(spec: OperatorSpec, scheduled: ScheduledOperator, places: Container[str]) -> bool:
    """Return whether all operands of an operator arrive, and all that its steps use has a place."""
    rotates = any(prod(row) > 1 for row in scheduled.active.plan.ft)
    needed = [f"value:{spec.output.name}", *(each.buffer for each in scheduled.arrivals), *[SHIFT] * rotates]
    is_complete = len(scheduled.arrivals) == len(spec.inputs) + len(spec.epilogue_inputs)
    return is_complete and all(name in places for name in needed)


def reads_left_over(spec: OperatorSpec, arrivals: Iterable[Arrival]) -> bool:
    """Return whether an input is read where another operator left it: then its padding holds anything."""
    return any(
        arrival.kind == "in_place" and not arrival.buffer.startswith(("idle:", "input:"))
        for arrival in arrivals
        if arrival.operand < len(spec.inputs)
    )


def left_over_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Return what steps take more where the padding of inputs may hold anything, all else lying as well as it can."""
    if not isinstance(costs, PlacedCosts) or not (
        any(spec.extents[axis] % plan.box[axis] for axis in spec.reduction_axes) or is_cut(spec, plan)
    ):
        return 0
    spec = computed(costs, spec, plan)
    rotatable, epilogue = n_nest_operands(spec), len(spec.epilogue_inputs) + 2
    lies = StepLies(Lie.best(rotatable), Lie.best(2), Lie.best(epilogue))
    anything, zeros = (costs.lying(replace(lies, has_zeros=has_zeros)) for has_zeros in (False, True))
    return nest_cycles(anything, spec, plan) - nest_cycles(zeros, spec, plan)


def is_better_copied(costs: Costs, left_over: int, n_bytes: int) -> bool:
    """Return whether `n_bytes` that another operator left are copied, padded with zeros, for less than that saves.

    `left_over` is what steps take more without that (`left_over_cycles`).
    """
    return left_over > COPIES * costs.copy_cycles(n_bytes)


def tile_ranges(plan: ModulePlan, memory: TileMemory) -> dict[str, TileRange]:
    """Return by name where a plan's buffers lie in the memory of every tile."""
    return {b.name: TileRange(memory.base + b.address_bytes, b.size_bytes, memory) for b in plan.buffers}


def _lies(
    run: OperatorSpec, spec: OperatorSpec, scheduled: ScheduledOperator, places: Mapping[str, TileRange]
) -> StepLies:
    """Return how the operands of an operator's steps lie; `run` is the operator as cores compute it."""
    value, accumulator = f"value:{spec.output.name}", f"accumulator:{spec.name}"
    accumulator = accumulator if accumulator in places else value
    arrivals = [each.buffer for each in sorted(scheduled.arrivals, key=lambda each: each.operand)]
    n_inputs = len(spec.inputs)
    first, later = split_arrivals(run, spec, arrivals)

    rotatable = (*arrivals[:n_inputs], accumulator)
    rotating = [name for name, ft in zip(rotatable, scheduled.active.plan.ft, strict=True) if prod(ft) > 1]

    def lie(*names: str) -> Lie:
        return Lie.of([places[name] for name in names])

    sums = (SHIFT,) if hands_on_rounded(spec) else ()
    is_shift_apart = all(are_apart(places[name], places[SHIFT]) for name in rotating)

    return StepLies(
        sub_task=lie(*rotatable[:-1], *first, *sums, rotatable[-1]),
        combine=lie(SHIFT, accumulator) if SHIFT in places else Lie.best(2),
        end=lie(accumulator, *later, value),
        places=shared_places(places[SHIFT], [places[accumulator]]) if SHIFT in places else None,
        shift_places=None
        if is_shift_apart
        else shared_places(places[SHIFT], [places[name] for name in rotatable]),
        has_zeros=not reads_left_over(spec, scheduled.arrivals),
        fused=lie(SHIFT, accumulator, *later, value) if SHIFT in places else None,
    )
