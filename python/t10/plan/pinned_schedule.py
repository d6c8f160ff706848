"""Models of which every plan is pinned: nothing is left to choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.own_weights import own_weights
from t10.core.schedule import Fetch, ModulePlan, Optimality
from t10.cost import CostModel
from t10.errors import VerifyError
from t10.plan.context import context_of
from t10.plan.memory.room import Room
from t10.plan.options import PlanOptions
from t10.plan.prefetch.choose import fetching, must_fetch
from t10.plan.prefetch.fetching import with_waits
from t10.plan.schedule import check_room, restore_module, sum_of_cycles
from t10.plan.search.pareto import Front


def pinned_schedule(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    fronts: tuple[Front, ...],
    options: PlanOptions,
    room: Room,
    fetches: tuple[Fetch, ...] | None = None,
) -> ModulePlan | None:
    """Return the schedule of a model if every operator has one plan and a pinned idle level, None otherwise.

    Weights are fetched as `fetches` say; None chooses. Raises `InfeasiblePlanError` if its buffers do not fit, and
    `VerifyError` for fetches that cannot be made.
    """
    levels: list[int] = []
    for spec, front in zip(graph.operators, fronts, strict=True):
        forced = options.forced_for(spec.name)
        if forced is None or forced.idle_level is None or len(front) != 1:
            return None
        levels.append(forced.idle_level)
    plans = tuple(front[0] for front in fronts)
    plan = restore_module(graph, chip, cost, plans, tuple(levels), is_exact=True)
    if fetches is not None:
        check_fetches(graph, chip, fetches)
        plan = room(with_waits(replace(plan, fetches=fetches), chip))
    elif must_fetch(context_of(graph, chip, cost), fronts):
        plan = fetching(plan, chip, room)
    else:
        plan = room(plan)
    check_room(plan, chip)
    # Of no operators nothing is pinned, nor better or worse.
    known = Optimality("pinned", sum_of_cycles(plan)) if graph.operators else None
    return replace(plan, optimality=known)


def check_fetches(graph: Graph, chip: ChipSpec, fetches: Sequence[Fetch]) -> None:
    """Raise `VerifyError` for fetches that are not in the order of operators, or of which one begins behind its own."""
    steps = {spec.name: step for step, spec in enumerate(graph.operators)}
    own, last, earliest = own_weights(graph), -1, 0
    for fetch in fetches:
        step = steps.get(fetch.operator, -1)
        expected = ""
        if chip.memory is None:
            expected = f"none: {chip.name} has no off-chip memory"
        elif step < 0 or fetch.operator not in own:
            expected = "none: no weight is its own" if step >= 0 else "none: the model has no such operator"
        elif step <= last:
            expected = "fetches in the order of operators, one each"
        elif not earliest <= fetch.first <= step:
            expected = f"a step from {earliest} to {step}"
        if expected:
            raise VerifyError(
                f"weights are fetched from step {fetch.first} on, expected {expected}",
                operator=fetch.operator,
            )
        last, earliest = step, fetch.first


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
