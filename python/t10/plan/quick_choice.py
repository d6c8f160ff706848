"""About what a model takes, from a choice among few plans without rotation: to compare ways to store its tensors."""

from __future__ import annotations

from t10.chip import ChipSpec
from t10.core.costs import links_of
from t10.core.expression import OperatorSpec
from t10.core.first_cores import fewer_cores
from t10.core.graph import Graph
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError
from t10.plan.context import context_of
from t10.plan.greedy.algorithm1 import base_bytes
from t10.plan.joint.choose import JointPlanner
from t10.plan.joint.states import Breadth
from t10.plan.options import PlanOptions
from t10.plan.search.listed import align, pareto_front, placed, room_bytes
from t10.plan.search.pareto import Front
from t10.plan.search.space import candidate_partitions
from t10.plan.search.unrotated import with_unrotated

OPTIONS = PlanOptions(gap=0.01)
FEW = Breadth(of_front=14, of_candidates=12, following=8, leading=4)
"""States enough that a choice ranks orders as all of them do, in about a tenth of the time."""


def quick_cycles(graph: Graph, chip: ChipSpec, cost: CostModel) -> int | None:
    """Return the cycles of the best choice among few plans and layouts, None if none of them fits.

    On a chip with links it may run on the first cores only, fewer and fewer as long as that is faster.
    """
    best = _cycles(graph, chip, cost)
    links = links_of(cost)
    for n_cores in () if links is None or best is None else fewer_cores(links):
        found = _cycles(graph, chip.model_copy(update={"n_cores": n_cores}), cost)
        if found is None or (best is not None and found >= best):
            break
        best = found
    return best


def _cycles(graph: Graph, chip: ChipSpec, cost: CostModel) -> int | None:
    """Return the cycles of the best choice on the cores of a chip."""
    context = context_of(graph, chip, cost)
    known: dict[OperatorSpec, Front] = {}
    fronts: list[Front] = []
    for spec in graph.operators:
        if spec not in known:
            known[spec] = _front(spec, chip, cost)
        if not known[spec]:
            return None
        fronts.append(known[spec])
    room = chip.capacity_bytes - base_bytes(context)
    planner = JointPlanner(context, fronts, OPTIONS, {}, breadth=FEW, room_bytes=room)
    try:
        found = planner.best(room)
    except InfeasiblePlanError:
        return None
    return None if found is None else found.cycles


def _front(spec: OperatorSpec, chip: ChipSpec, cost: CostModel) -> Front:
    """Return the front of an operator's plans without rotation, empty where none fits."""
    rows = candidate_partitions(spec, chip.n_cores, OPTIONS)
    found, _ = with_unrotated(spec, cost, rows, [], room_bytes(chip))
    plans = placed(spec, align(spec, tuple(partition for partition, _, _ in found)), links_of(cost))
    return pareto_front(spec, plans, cost, OPTIONS)
