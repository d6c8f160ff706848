"""Tables of Algorithm 1 where cores are linked: what moves before an operator is counted as it passes links.

As on a chip of one exchange, layouts around an operator are not known: what others make is taken to be spread out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from t10.core.costs import links_of
from t10.core.expression import OperatorSpec
from t10.core.graph import TensorValue
from t10.core.plan import OperatorPlan
from t10.core.schedule import ValueLayout
from t10.plan.assemble import linear_layout, owned_layouts, place_of, read_layouts
from t10.plan.context import Context
from t10.plan.memory.levels import LevelTable
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.laid_out import numberings
from t10.plan.search.listed import costed
from t10.plan.search.pareto import Front


def on_links(context: Context, step: int, front: Front, table: LevelTable) -> LevelTable:
    """Return the table of an operator with what its activations and weights take on links to arrive."""
    spread = _spread(context, context.graph.operators[step])
    run, whole = table.run_cycles.copy(), table.cycles.copy()
    moved: dict[int, int] = {}
    plans: list[int] = table.plan.tolist()
    levels: list[int] = table.level.tolist()
    for row, (number, level) in enumerate(zip(plans, levels, strict=True)):
        priced = front[number]
        layouts = {**spread, **read_layouts(context, step, priced.plan)}
        if number not in moved:
            moved[number] = _arrival_cycles(context, step, priced.plan, layouts, are_weights=False)
        run[row] += moved[number] - priced.cycles.relayout
        layouts |= owned_layouts(context, step, priced.plan, level)
        whole[row] = run[row] + _arrival_cycles(context, step, priced.plan, layouts, are_weights=True)
    return replace(table, cycles=whole, run_cycles=np.ascontiguousarray(run))


def with_numberings(context: Context, fronts: tuple[Front, ...]) -> tuple[Front, ...]:
    """Return fronts with their plans' other numberings of cores, least bytes first; themselves without links.

    What moves inside an operator decides how a front numbers cores: what arrives may pass far fewer links otherwise.
    """
    links = links_of(context.cost)
    known: dict[int, Front] = {}
    if links is None:
        return fronts
    for spec, front in zip(context.graph.operators, fronts, strict=True):
        if id(front) not in known:
            others = [other for each in front for other in numberings(links, spec, each.plan)]
            priced = evaluate_plans(spec, context.cost, others) if others else None
            added = [] if priced is None else [costed(plan, priced, row) for row, plan in enumerate(others)]
            by_bytes = sorted((*added, *front), key=lambda each: (each.active_bytes, -each.cycles.total))
            known[id(front)] = tuple(by_bytes)
    return tuple(known[id(front)] for front in fronts)


def _spread(context: Context, spec: OperatorSpec) -> dict[str, ValueLayout]:
    """Return everything that an operator reads spread over all cores."""
    graph = context.graph
    values = (*graph.inputs, *graph.weights, *(each.output for each in graph.operators))
    by_name = {each.name: TensorValue(each.name, each.shape, each.dtype) for each in values}
    sources = {name for operand in spec.operands for name in graph.sources_of(operand.name)}
    return {name: linear_layout(by_name[name], context.chip.n_cores) for name in sources}


def _arrival_cycles(
    context: Context, step: int, plan: OperatorPlan, layouts: Mapping[str, ValueLayout], *, are_weights: bool
) -> int:
    """Return the cycles in which either the weights of an operator arrive or its activations, one after another."""
    spec = context.graph.operators[step]
    return sum(
        sum(context.mover.exact(spec, plan, number, layouts))
        for number, operand in enumerate(spec.operands)
        if (operand.role == "weight") == are_weights
        and place_of(context, step, number, plan, layouts) is None
    )
