"""The fronts that a schedule shows of its operators, with the plans that were chosen."""

from __future__ import annotations

from dataclasses import replace

from t10.core.plan import CostedPlan, OperatorPlan
from t10.core.schedule import ModulePlan, Optimality, ScheduledOperator
from t10.plan.context import Context
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.listed import costed
from t10.plan.search.pareto import Front


def with_fronts(
    context: Context, plan: ModulePlan, fronts: tuple[Front, ...], optimality: Optimality
) -> ModulePlan:
    """Return a plan whose operators show their whole fronts, with the plan chosen among them."""
    # Operators that differ in names only have one front.
    shown: dict[tuple[int, OperatorPlan, int], Front] = {}
    operators: list[ScheduledOperator] = []
    for step, (scheduled, front) in enumerate(zip(plan.operators, fronts, strict=True)):
        active = scheduled.active
        key = id(front), active.plan, active.active_bytes
        if key not in shown:
            shown[key] = _with_plan(context, step, front, active)
        operators.append(replace(scheduled, pareto=shown[key]))
    return replace(plan, operators=tuple(operators), optimality=optimality)


def _with_plan(context: Context, step: int, front: Front, active: CostedPlan) -> Front:
    """Return a front that holds an operator's plan at the same kind of price as the others, still least bytes first."""
    if any(priced.plan == active.plan for priced in front):
        return front
    arrays = evaluate_plans(context.graph.operators[step], context.cost, (active.plan,))
    place = sum(priced.active_bytes < active.active_bytes for priced in front)
    return (*front[:place], costed(active.plan, arrays, 0), *front[place:])
