"""`--t10-pareto`: cycles and bytes of every candidate; the time x memory front stays (T10 §4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.expression import OperatorSpec
from t10.core.space import PartitionSpace
from t10.dialect.plan import CandidatePlan
from t10.passes.planning import (
    PlanningPass,
    Undecided,
    decide_each,
    every_candidate,
    every_space,
    is_chosen,
)
from t10.passes.read_graph import read_graph
from t10.plan.fronts.canonical import searched_as
from t10.plan.search.listed import front_that_fits
from t10.plan.search.operator import search_space


@dataclass(frozen=True, slots=True)
class Pareto(PlanningPass):
    """Cost every candidate and keep the Pareto front, in cycles and bytes, of those that fit a core.

    A space is searched: complete, but for what bounds prove to be beaten. Both find the same front. Passes that this
    one runs first leave spaces however few candidates there are, since nobody looks at them.
    """

    name: ClassVar[str] = "t10-pareto"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-align-pace",)
    hands_down: ClassVar[Mapping[str, Any]] = {"max_candidates": 0}
    reads: ClassVar[str] = "complete candidates, or spaces"
    leaves: ClassVar[str] = (
        "candidates with `cycles` and bytes, those on the time x memory front only, fastest last"
    )

    def apply(self, module: Any) -> None:
        """Leave the front in `rtensor.candidates`, fastest last, priced; nothing where plans are chosen."""
        if is_chosen(module):
            return
        chip, cost = self.target(module)
        options = self.plan_options()

        def decide(spec: OperatorSpec, plans: Undecided) -> Undecided:
            if isinstance(plans, PartitionSpace):
                front = search_space(spec, plans, chip, cost, options)
            else:
                placed = tuple(plan.placed() for plan in plans)
                front = front_that_fits(spec, placed, chip, cost, options)
            return tuple(CandidatePlan.of(costed) for costed in front)

        decide_each(read_graph(module), decide, lambda spec: searched_as(spec, cost))

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether every candidate has its costs and no space is left, or plans are chosen."""
        return is_chosen(module) or (
            every_candidate(module, lambda plan: plan.is_costed) and every_space(module, lambda _: False)
        )
