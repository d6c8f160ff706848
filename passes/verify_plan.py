"""`--t10-verify-plan`: prove every plan of a module with the independent checker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.chip import ChipSpec
from t10.core.schedule import ModulePlan
from t10.cost import CostModel
from t10.passes.bridge.read_program import read_program
from t10.passes.expand import chosen_schedule, operator_violations, require_none
from t10.passes.place import Place, program_plan
from t10.passes.planning import PlanningPass, chosen_plan, has_program
from t10.passes.read_graph import read_graph
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.schedule import costed_arrivals
from t10.plan.verify import verify_module


@dataclass(frozen=True, slots=True)
class VerifyPlan(PlanningPass):
    """Check windows, rings, coverage, data, layouts, arrivals and memory of every planned operator.

    At the planned level the plans are those of the attributes; at the compute-shift level they are what the operations
    and types say. The checker shares no arithmetic with the planner. Every broken rule is an error at its operator.
    """

    name: ClassVar[str] = "t10-verify-plan"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-reconcile",)
    reads: ClassVar[str] = "plans, or the compute-shift level"
    leaves: ClassVar[str] = "the module as it was; an error for every broken rule, at its operator"

    def apply(self, module: Any) -> None:
        """Leave the module as it is; raises `VerifyError` after one located error per violation."""
        chip, cost = self.target(module)
        if has_program(module):
            program = read_program(module)
            model, plans = program.model, [each.active.plan for each in program.operators]
        else:
            model = read_graph(module)
            plans = [chosen_plan(model.operations[spec.name], spec).plan for spec in model.graph.operators]
        # A schedule can only be made of plans that are right.
        require_none(model, operator_violations(model.graph, plans, chip.n_cores))
        require_none(model, verify_module(_schedule(module, chip, cost), chip))


def _schedule(module: Any, chip: ChipSpec, cost: CostModel) -> ModulePlan:
    """Return what the whole module does, with what it costs; placed here where it does not say where buffers lie."""
    if not has_program(module):
        return DataRoom(chip, Wishes(cost))(chosen_schedule(module, chip, cost)[1])
    plan = costed_arrivals(program_plan(read_program(module), chip), chip, cost)
    return plan if Place.is_done(module) else DataRoom(chip, Wishes(cost))(plan)
