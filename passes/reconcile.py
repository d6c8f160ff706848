"""`--t10-reconcile`: one idle and one active plan per operator within every core's memory (T10 §4.3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.passes.bridge.annotate import annotate
from t10.passes.forced import forced_by_attributes
from t10.passes.planning import PlanningPass, candidates_of, is_chosen, locating
from t10.passes.program_room import ProgramRoom
from t10.passes.read_graph import read_graph
from t10.plan.fit.explain_fit import explaining
from t10.plan.memory.room import DataRoom
from t10.plan.memory.wishes import Wishes
from t10.plan.pinned_schedule import pinned_schedule
from t10.plan.schedule import schedule_module


@dataclass(frozen=True, slots=True)
class Reconcile(PlanningPass):
    """Choose one active and one idle plan for every operator of the model.

    Leaves `rtensor.plan` and `rtensor.idle_level` on every operator. Layouts and movements follow from them;
    `t10-expand` writes them down. On a chip with off-chip memory weights that do not fit are fetched: `rtensor.fetch`.
    With `program`, the plans leave room for their program.
    """

    name: ClassVar[str] = "t10-reconcile"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-pareto",)
    reads: ClassVar[str] = "priced candidates of all operators"
    leaves: ClassVar[str] = "`rtensor.plan`, `rtensor.idle_level` and `rtensor.fetch` on every operator"

    def apply(self, module: Any) -> None:
        """Replace candidates by plans; raises `InfeasiblePlanError` if the model does not fit."""
        if is_chosen(module):
            return
        chip, cost = self.target(module)
        read = read_graph(module)
        fronts = candidates_of(read)
        options = self.plan_options(tuple(forced_by_attributes(read).values()))
        with locating(read.graph.operators), explaining(read.graph, chip, cost, options):
            room = ProgramRoom(chip, cost) if self.program else DataRoom(chip, Wishes(cost))
            plan = pinned_schedule(read.graph, chip, cost, fronts, options, room)
            if plan is None:
                plan = schedule_module(read.graph, chip, cost, fronts, options, room=room)
        annotate(module, read, plan)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether operators have their plan."""
        return is_chosen(module)
