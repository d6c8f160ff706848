"""As PopART runs models: an operator's plan as poplin chooses it, one mapping per tensor for life.

poplin takes the fastest plan whose temporary memory is within a part of a core's (`availableMemoryProportion`, 0.6
unless the user says otherwise), whatever else lives. A weight is mapped as its reader wants it, its replicas sharing
it; a result lies as its operator left it; every other use is rearranged. Whether the model fits is found out at the
end. The plans are plans like ours without rotation, so that they run on the same simulator.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import operand_of
from t10.core.plan import CostedPlan
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.errors import InfeasiblePlanError
from t10.plan.fronts.canonical import canonical
from t10.plan.memory.levels import replica_count
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.options import PlanOptions
from t10.plan.schedule import as_placed, check_room, restore_module
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.search.evaluate import evaluate, placed_plan
from t10.plan.search.listed import costed
from t10.plan.search.space import searched_partitions

DEFAULT_PROPORTION = 0.6
TUNED = (0.6, 0.4, 0.2, 0.1)
"""Proportions that users try where a model does not fit."""
PRICED = 8
"""Plans of an operator that are priced exactly: the fastest by their bounds."""


def plan_poplin(
    graph: Graph,
    chip: ChipSpec,
    cost: CostModel,
    proportion: float = DEFAULT_PROPORTION,
    n_priced: int = PRICED,
) -> ModulePlan:
    """Return a model's plan; raises `InfeasiblePlanError` where what lives and an operator's temporaries do not fit."""
    known: dict[Hashable, CostedPlan] = {}
    for spec in graph.operators:
        key = canonical(spec)
        if key not in known:
            known[key] = fastest_within(spec, chip, cost, int(proportion * chip.sram_bytes), n_priced)
    plans = tuple(known[canonical(spec)] for spec in graph.operators)
    levels = tuple(_level(spec, each) for spec, each in zip(graph.operators, plans, strict=True))
    plan = restore_module(graph, chip, cost, plans, levels)
    plan = DataRoom(chip, Wishes(cost))(plan)
    check_room(plan, chip)
    return as_placed(plan, chip, cost)


def fastest_within(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, limit_bytes: int, n_priced: int = PRICED
) -> CostedPlan:
    """Return the fastest plan without rotation whose bytes are within a limit, which doubles where there is none."""
    rows, _ = searched_partitions(spec, chip.n_cores, PlanOptions())
    ft = np.ones((len(rows), len(spec.rotatable), len(spec.axes)), np.int64)
    bounds = evaluate(spec, least_costs(cost), rows, ft)
    while not (bounds.active_bytes <= limit_bytes).any():
        if limit_bytes > 2 * chip.sram_bytes:
            raise InfeasiblePlanError(
                f"needs {int(bounds.active_bytes.min())} bytes per core without rotation", operator=spec.name
            )
        limit_bytes *= 2
    order = np.lexsort((bounds.active_bytes, bounds.cycles))
    order = order[bounds.active_bytes[order] <= limit_bytes][:n_priced]
    plans = [
        placed_plan(spec, tuple(rows[i].tolist()), tuple(tuple(row) for row in ft[i].tolist()))
        for i in order.tolist()
    ]
    placed = [plan for plan in plans if plan is not None]
    priced = evaluate_plans(spec, cost, placed)
    best = min(range(len(placed)), key=lambda i: (int(priced.cycles[i]), int(priced.active_bytes[i])))
    return costed(placed[best], priced, best)


def _level(spec: OperatorSpec, priced: CostedPlan) -> int:
    """Return the idle level at which the replicas of weights share them."""
    counts = [
        replica_count(spec, priced.plan, number)
        for number in range(len(spec.operands))
        if operand_of(spec, number).role == "weight"
    ]
    return max(counts, default=0)
