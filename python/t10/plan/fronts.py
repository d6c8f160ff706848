"""The time x memory fronts of all operators of a model; operators equal up to names are solved once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.assemble import Front, Progress
from t10.plan.canonical import canonical
from t10.plan.options import PlanOptions
from t10.plan.search import plan_operator

SOLVED_ENTRIES = 1024


def operator_fronts(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    options: PlanOptions,
    progress: Progress | None = None,
) -> tuple[Front, ...]:
    """Return the time x memory front of every operator; those equal up to names are solved once per process."""
    free = replace(options, forced=())
    result: list[Front] = []
    for number, spec in enumerate(graph.operators):
        if progress:
            progress("search", number, len(graph.operators))
        if options.forced_for(spec.name) is not None:
            result.append(plan_operator(spec, chip, cost, options))
            continue
        try:
            result.append(_solved(canonical(spec), chip, cost, free))
        except InfeasiblePlanError as error:
            hint, location = error.hint, spec.location or None
            raise InfeasiblePlanError(
                error.message, operator=spec.name, location=location, hint=hint
            ) from None
    return tuple(result)


@lru_cache(maxsize=SOLVED_ENTRIES)
def _solved(spec: OperatorSpec, chip: ChipSpec, cost: CostModel, options: PlanOptions) -> Front:
    """Return the front of an operator whose names are canonical."""
    return plan_operator(spec, chip, cost, options)
