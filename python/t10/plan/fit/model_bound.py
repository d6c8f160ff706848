"""The least memory a model takes: every operator on its smallest plan, weights at rest spread out, or as they are used.

Spread over all cores, weights take least at rest, and a copy while their operator runs. As their operator uses them
they need no copy, and rest with the padding of its plan. Where a chip has off-chip memory, weights of other operators
than the one that runs take none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from t10.chip import ChipSpec
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.operator_body import scheduled_operator
from t10.core.own_weights import own_weights
from t10.core.plan import CostedPlan
from t10.core.schedule import PHASES, Arrival, Fetch, Phase, ValueLayout
from t10.cost import CostModel
from t10.plan.assemble import Front, input_layouts, output_layout, place_of, read_layouts, weight_layouts
from t10.plan.context import Context, context_of
from t10.plan.fronts.pinned import pinned_front
from t10.plan.memory.allocation import Request, aligned_size, live_bytes, memory_bytes
from t10.plan.memory.buffers import buffer_requests
from t10.plan.memory.levels import Choice
from t10.plan.options import PlanOptions
from t10.plan.search.listed import ROOMY_BYTES
from t10.plan.search.operator import least_plan


@dataclass(frozen=True, slots=True)
class ModelBound:
    """What a core must hold at the fullest moment of a program: phase `phase` of operator number `step`.

    `held` are the buffers alive then, what is taken over counted once. `n_bytes` is the least memory of a core that
    holds them, behind what is reserved and before what loads may read ahead.
    """

    n_bytes: int
    step: int
    phase: Phase
    held: tuple[Request, ...]


def least_plans(
    graph: Graph, chip: ChipSpec, cost: CostModel, options: PlanOptions
) -> tuple[CostedPlan, ...]:
    """Return the plan of fewest bytes of every operator, whether it fits or not; pinned ones as they are.

    Raises `InfeasiblePlanError` for an operator that memory is no help for.
    """
    known: dict[OperatorSpec, CostedPlan] = {}
    plans: list[CostedPlan] = []
    for spec in graph.operators:
        if options.forced_for(spec.name) is not None:
            plans.append(pinned_front(spec, roomy(chip), cost, options)[0])
            continue
        key = canonical(spec)
        if key not in known:
            known[key] = least_plan(key, chip, cost, options)
        plans.append(known[key])
    return tuple(plans)


def roomy(chip: ChipSpec) -> ChipSpec:
    """Return a chip with cores of as much memory as a plan could make use of."""
    return chip.model_copy(update={"sram_bytes": max(ROOMY_BYTES, chip.sram_bytes)})


def model_bound(graph: Graph, chip: ChipSpec, cost: CostModel, plans: Sequence[CostedPlan]) -> ModelBound:
    """Return what a core holds under these plans at least; what arrivals cost is left out.

    Weights are spread out, or all rest as the operators that read them, or read them first, use them; or only those
    that several operators read.
    """
    context = context_of(graph, chip, cost)
    shared = {step for step, _ in context.shared_weights.values()}
    ways: list[set[int]] = [set()]
    if shared:
        ways.append(shared)
    ways.append(set(range(len(plans))))
    return min((_bound(context, plans, each) for each in ways), key=lambda bound: bound.n_bytes)


def _bound(context: Context, plans: Sequence[CostedPlan], in_place: Collection[int]) -> ModelBound:
    """Return what a core holds if the weights of some operators rest as these use them, all others spread out."""
    graph, chip = context.graph, context.chip
    fronts = tuple((plan,) for plan in plans)
    layouts = _layouts(context, fronts, in_place)
    operators = tuple(
        scheduled_operator(spec, front[0], _arrivals(context, step, spec, front, layouts),
                           layouts[spec.output.name])
        for step, (spec, front) in enumerate(zip(graph.operators, fronts, strict=True))
    )  # fmt: skip
    fetched = own_weights(graph) if chip.off_chip is not None else {}
    fetches = [Fetch(spec.name, step) for step, spec in enumerate(graph.operators) if spec.name in fetched]
    requests = buffer_requests(graph, operators, layouts, chip, fetches)
    return _fullest(requests, chip)


def _layouts(
    context: Context, fronts: tuple[Front, ...], in_place: Collection[int]
) -> dict[str, ValueLayout]:
    """Return where every weight, input and result lies."""
    choices = tuple(Choice(0, 1 if step in in_place else 0) for step in range(len(fronts)))
    layouts = weight_layouts(context, fronts, choices) | input_layouts(context)
    for step, (spec, front) in enumerate(zip(context.graph.operators, fronts, strict=True)):
        layouts |= read_layouts(context, step, front[0].plan)
        layouts[spec.output.name] = output_layout(spec, front[0].plan)
    return layouts


def _arrivals(
    context: Context, step: int, spec: OperatorSpec, front: Front, layouts: dict[str, ValueLayout]
) -> tuple[Arrival, ...]:
    """Return what lies in place and what is copied; what the copies cost is left out."""
    found: list[Arrival] = []
    for number in range(len(spec.operands)):
        place = place_of(context, step, number, front[0].plan, layouts)
        copied = Arrival(number, "relayout", f"operand:{spec.name}:{number}")
        found.append(copied if place is None else Arrival(number, "in_place", place))
    return tuple(found)


def _fullest(requests: Sequence[Request], chip: ChipSpec) -> ModelBound:
    """Return what is alive at the moment with most bytes, the first of them."""
    live = live_bytes(requests)
    now = int(live.argmax()) if len(live) else 0
    step, phase = divmod(now, len(PHASES))
    taken = {request.takes_over for request in requests if request.takes_over}
    held = [r for r in requests if r.first <= now <= r.last - (r.name in taken)]
    held.sort(key=lambda r: (-aligned_size(r.size_bytes), r.name))
    n_bytes = memory_bytes(chip.reserved_bytes + int(live.max(initial=0)))
    return ModelBound(n_bytes, step, PHASES[phase], tuple(held))
