"""Models of which every plan is pinned: nothing is left to choose."""

from __future__ import annotations

from dataclasses import replace

from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan, Optimality
from t10.cost import CostModel
from t10.plan.assemble import context_of
from t10.plan.memory.room import Room
from t10.plan.options import PlanOptions
from t10.plan.prefetch.choose import fetching, must_fetch
from t10.plan.schedule import check_room, restore_module, sum_of_cycles
from t10.plan.search.pareto import Front


def pinned_schedule(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    room: Room,
) -> ModulePlan | None:
    """Return the schedule of a model if every operator has one plan and a pinned idle level, None otherwise.

    Raises `InfeasiblePlanError` if its buffers do not fit.
    """
    levels: list[int] = []
    for spec, front in zip(graph.operators, fronts, strict=True):
        forced = options.forced_for(spec.name)
        if forced is None or forced.idle_level is None or len(front) != 1:
            return None
        levels.append(forced.idle_level)
    plans = tuple(front[0] for front in fronts)
    plan = restore_module(graph, chip, cost, plans, tuple(levels), is_exact=True)
    is_fetched = must_fetch(context_of(graph, chip, cost), fronts)
    plan = fetching(plan, chip, room) if is_fetched else room(plan)
    check_room(plan, chip)
    # Of no operators nothing is pinned, nor better or worse.
    known = Optimality("pinned", sum_of_cycles(plan)) if graph.operators else None
    return replace(plan, optimality=known)


def as_written(plan: ModulePlan, written: ModulePlan | None) -> ModulePlan:
    """Return what was written if it agrees with `plan` in all that is executed, else `plan`.

    A file holds more than what is executed: the fronts its plans were chosen from, and how good they are known to be.
    """
    if written is not None and _executed(plan) == _executed(written):
        return written
    return plan


def _executed(plan: ModulePlan) -> ModulePlan:
    operators = tuple(replace(operator, pareto=()) for operator in plan.operators)
    return replace(plan, operators=operators, optimality=None)
