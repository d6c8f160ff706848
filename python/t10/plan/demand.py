"""The least memory a model takes: every operator on its smallest plan, weights spread over all cores between uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.schedule import PHASES, Arrival, Layout, Phase, ScheduledOperator
from t10.cost import CostModel
from t10.plan.allocation import Request, aligned_size, live_bytes
from t10.plan.assemble import (
    Context,
    Front,
    context_of,
    input_layouts,
    output_layout,
    place_of,
    read_layouts,
    weight_layouts,
)
from t10.plan.buffers import buffer_requests
from t10.plan.fronts import operator_fronts
from t10.plan.options import PlanOptions
from t10.plan.reconcile import Choice

ROOMY_BYTES = 1 << 40
"""Memory of a core in which everything fits."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a core must hold at the fullest moment of a program: phase `phase` of operator number `step`.

    `held` are the buffers alive then, what is taken over counted once; `n_bytes` is their sum with what is reserved.
    """

    n_bytes: int
    step: int
    phase: Phase
    held: tuple[Request, ...]


def least_fronts(graph: Graph, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> tuple[Front, ...]:
    """Return the front of every operator on cores of unlimited memory, least bytes first.

    Raises `InfeasiblePlanError` for an operator that memory is no help for.
    """
    return operator_fronts(graph, chip.model_copy(update={"sram_bytes": ROOMY_BYTES}), cost, options)


def least_demand(graph: Graph, chip: ChipSpec, cost: CostModel, fronts: Sequence[Front]) -> Demand:
    """Return what the first (smallest) plans of fronts need; arrivals move no bytes that take room."""
    context = context_of(graph, chip, cost)
    smallest = tuple((front[0],) for front in fronts)
    layouts = _layouts(context, smallest)
    operators = tuple(
        ScheduledOperator(spec.name, front[0], _arrivals(context, step, spec, front, layouts),
                          layouts[spec.output.name])
        for step, (spec, front) in enumerate(zip(graph.operators, smallest, strict=True))
    )  # fmt: skip
    requests = buffer_requests(graph, operators, layouts, chip.shift_buffer_bytes)
    return _fullest(requests, chip)


def _layouts(context: Context, fronts: tuple[Front, ...]) -> dict[str, Layout]:
    """Return where every weight, input and result lies."""
    layouts = weight_layouts(context, fronts, (Choice(0, 0),) * len(fronts)) | input_layouts(context)
    for step, (spec, front) in enumerate(zip(context.graph.operators, fronts, strict=True)):
        layouts |= read_layouts(context, step, front[0].plan)
        layouts[spec.output.name] = output_layout(spec, front[0].plan)
    return layouts


def _arrivals(
    context: Context, step: int, spec: OperatorSpec, front: Front, layouts: dict[str, Layout]
) -> tuple[Arrival, ...]:
    """Return what lies in place and what is copied; what the copies cost is left out."""
    found: list[Arrival] = []
    for number in range(len(spec.operands)):
        place = place_of(context, step, number, front[0].plan, layouts)
        copied = Arrival(number, "relayout", f"operand:{spec.name}:{number}")
        found.append(copied if place is None else Arrival(number, "in_place", place))
    return tuple(found)


def _fullest(requests: Sequence[Request], chip: ChipSpec) -> Demand:
    """Return what is alive at the moment with most bytes, the first of them."""
    live = live_bytes(requests)
    now = int(live.argmax()) if len(live) else 0
    step, phase = divmod(now, len(PHASES))
    taken = {request.takes_over for request in requests if request.takes_over}
    held = [r for r in requests if r.first <= now <= r.last - (r.name in taken)]
    held.sort(key=lambda r: (-aligned_size(r.size_bytes), r.name))
    return Demand(chip.reserved_bytes + int(live.max(initial=0)), step, PHASES[phase], tuple(held))
