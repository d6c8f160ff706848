"""One model planned by several systems on the same chip under the same prices; only what each may choose differs.

`SYSTEMS` says how they plan; `compared` gives a record of each. All cycles are modelled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from t10.baselines.ansor import EVALUATIONS, Ansor
from t10.baselines.poplin import plan_poplin
from t10.baselines.roller import Roller
from t10.baselines.vgm import TileSearch, VgmPlan, plan_vgm
from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.partials import Partials
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.dialect.mlir import ir
from t10.errors import InfeasiblePlanError
from t10.frontend.imported import ImportedModel
from t10.passes.pipeline import fused
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module
from t10.report.energy import bytes_of_all_cores
from t10.report.rates import utilisation
from t10.report.traffic import operator_traffic

Plan = ModulePlan | VgmPlan
Planner = Callable[[Graph, ChipSpec, CostModel], Plan]


@dataclass(frozen=True, slots=True)
class System:
    """How a system plans; `joins` says whether operators of its graph are joined (`--t10-fuse`)."""

    name: str
    joins: bool
    plan: Planner


@dataclass(frozen=True, slots=True)
class Compared:
    """What a system makes of a model: modelled cycles, or why it does not fit (`reason`).

    `transfer_cycles` are those of exchanges, `wait_cycles` of waiting for off-chip memory. `moved_bytes` are what the
    busiest core of every phase takes from others, `total_bytes` what all cores take; `rotating` operators have more
    than one step; `by_operator` are cycles by name; `seconds` CPU time of planning; `utilisation` is as
    in `t10.report.rates`.
    """

    system: str
    n_operators: int
    reason: str = ""
    compute_cycles: int = 0
    transfer_cycles: int = 0
    wait_cycles: int = 0
    moved_bytes: int = 0
    total_bytes: int = 0
    peak_bytes: int = 0
    rotating: int = 0
    by_operator: Mapping[str, int] | None = None
    seconds: float = 0.0
    utilisation: float | None = None

    @property
    def cycles(self) -> int:
        """Return all cycles."""
        return self.compute_cycles + self.transfer_cycles + self.wait_cycles


def _ours(options: PlanOptions) -> Planner:
    return lambda graph, chip, cost: plan_module(graph, chip, options, None, cost)


def _vgm(system: TileSearch) -> Planner:
    return lambda graph, chip, cost: plan_vgm(graph, chip, cost, system)


def _poplin(proportion: float) -> Planner:
    return lambda graph, chip, cost: plan_poplin(graph, chip, cost, proportion)


def ansor(evaluations: int = EVALUATIONS) -> System:
    """Return Ansor's search with so many measurements per operator."""
    return System("Ansor", joins=False, plan=_vgm(Ansor(evaluations)))


SYSTEMS = {
    each.name: each
    for each in (
        System("ours", joins=True, plan=_ours(PlanOptions())),
        System("ours unfused", joins=False, plan=_ours(PlanOptions())),
        System("T10 as published", joins=False, plan=_ours(PlanOptions(as_published=True))),
        System("Roller", joins=False, plan=_vgm(Roller())),
        System("Roller, split sums", joins=False, plan=_vgm(Roller(splits_sums=True))),
        System("Roller, split sums, unicast", joins=False, plan=_vgm(Roller("unicast", splits_sums=True))),
        System(
            "Roller, split sums, no fragments",
            joins=False,
            plan=_vgm(Roller("no fragments", splits_sums=True)),
        ),
        System("Roller, split sums, fused", joins=True, plan=_vgm(Roller(splits_sums=True))),
        ansor(),
        System("PopART 0.6", joins=False, plan=_poplin(0.6)),
        System("PopART 0.4", joins=False, plan=_poplin(0.4)),
        System("PopART 0.2", joins=False, plan=_poplin(0.2)),
        System("PopART 0.1", joins=False, plan=_poplin(0.1)),
    )
}
MAIN = ("ours", "T10 as published", "Roller", "Roller, split sums", "Ansor", "PopART 0.6")
"""The systems that are compared where nobody says which."""


def graph_for(imported: ImportedModel, chip: ChipSpec, *, joins: bool, partials: Partials) -> Graph:
    """Return the operators of an imported model, which is changed, for a chip, joined or apart."""
    with imported.module.context, ir.Location.unknown():
        return fused(imported.module, chip, None, partials, joins=joins).graph


def compared(graph: Graph, system: System, chip: ChipSpec, cost: CostModel) -> Compared:
    """Return what a system makes of a graph."""
    start = time.process_time()
    try:
        plan = system.plan(graph, chip, cost)
    except InfeasiblePlanError as error:
        where = f"{error.operator}: " if error.operator else ""
        spent = time.process_time() - start
        return Compared(system.name, len(graph.operators), f"{where}{error.message}", seconds=spent)
    known = _of_vgm(plan) if isinstance(plan, VgmPlan) else _of_plan(plan, chip, cost)
    seconds = time.process_time() - start
    made = Compared(system.name, len(graph.operators), **known, seconds=seconds)
    return replace(made, utilisation=utilisation(graph.operators, made.cycles, chip))


def _of_vgm(plan: VgmPlan) -> dict[str, Any]:
    return {
        "compute_cycles": sum(each.timed.compute for each in plan.operators),
        "transfer_cycles": plan.transfer_cycles,
        "moved_bytes": plan.busiest_bytes,
        "total_bytes": sum(each.timed.total_bytes for each in plan.operators),
        "peak_bytes": max((each.regions.total_bytes for each in plan.operators), default=0),
        "by_operator": {each.name: each.timed.cycles for each in plan.operators},
    }


def _of_plan(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> dict[str, Any]:
    cycles = [each.active.cycles for each in plan.operators]
    compute, wait = sum(each.compute for each in cycles), sum(each.wait for each in cycles)
    pairs = zip(plan.graph.operators, plan.operators, strict=True)
    traffic = [operator_traffic(spec, each) for spec, each in pairs]
    return {
        "compute_cycles": compute,
        "transfer_cycles": sum(each.total for each in cycles) - compute - wait,
        "wait_cycles": wait,
        "moved_bytes": sum(each.relayout + each.setup + each.shift + each.reduce for each in traffic),
        "total_bytes": sum(bytes_of_all_cores(plan, chip, cost)),
        "peak_bytes": plan.peak_bytes,
        "rotating": sum(each.active.plan.n_sub_tasks > 1 for each in plan.operators),
        "by_operator": {each.name: each.active.cycles.total for each in plan.operators},
    }
