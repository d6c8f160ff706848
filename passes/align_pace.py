"""`--t10-align-pace`: one rotating pace per axis, step counts, loop order and where windows start (T10 §4.2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.canonical import canonical
from t10.core.costs import links_of
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.links import Links
from t10.core.space import PartitionSpace
from t10.dialect.plan import CandidatePlan
from t10.passes.forced import forced_by_attributes
from t10.passes.planning import (
    DEFAULT_CANDIDATES,
    PlanningPass,
    Undecided,
    check_candidates,
    decide_each,
    every_candidate,
    every_space,
    is_chosen,
)
from t10.passes.read_graph import read_graph
from t10.passes.registry import option
from t10.plan.fronts.stages import aligned_space, partitions_of, placed_plans


@dataclass(frozen=True, slots=True)
class AlignPace(PlanningPass):
    """Align the pace of rotating tensors: rp per axis, steps, loop order, start of every window.

    Candidates that cannot be aligned or placed are dropped, and those whose pace is not the one that is forced; an
    operator whose candidates all go is an error that says why the last of them went. A space is listed if it holds at
    most `max-candidates`. Otherwise it is marked as aligned, with the pace that is forced: pace, steps and loop order
    of a partition follow from its factors, and `--t10-pareto` searches only what can be placed.
    """

    name: ClassVar[str] = "t10-align-pace"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-partition",)
    reads: ClassVar[str] = "candidates with `f_op` and `ft`, or spaces"
    leaves: ClassVar[str] = (
        "candidates with `lengths`, `rp`, `steps`, `loop_order`, `phases`, `core_order`, or `aligned` spaces"
    )

    max_candidates: int = option(
        DEFAULT_CANDIDATES, help="most candidates to list per operator", unit="candidates"
    )

    def apply(self, module: Any) -> None:
        """Complete the plans an operator may choose from; nothing where plans are chosen."""
        if is_chosen(module):
            return
        check_candidates(self.max_candidates)
        links = links_of(self.target(module)[1])
        read = read_graph(module)
        paces = {name: forced.rp for name, forced in forced_by_attributes(read).items()}

        def decide(spec: OperatorSpec, plans: Undecided) -> Undecided:
            return self._aligned(spec, plans, paces.get(spec.name), links)

        def kind(spec: OperatorSpec) -> Hashable:
            return canonical(spec), paces.get(spec.name)

        decide_each(read, decide, kind)

    def _aligned(
        self, spec: OperatorSpec, plans: Undecided, rp: AxisSizes | None, links: Links | None
    ) -> Undecided:
        if not isinstance(plans, PartitionSpace):
            return _completed(spec, plans, rp, links)
        if plans.at_most > self.max_candidates:
            return aligned_space(spec, plans, rp)
        listed = placed_plans(spec, partitions_of(spec, plans), rp, links)
        return tuple(CandidatePlan.of(plan) for plan in listed)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether candidates are whole plans and spaces aligned, or plans are chosen."""
        return is_chosen(module) or (
            every_candidate(module, lambda plan: plan.is_placed)
            and every_space(module, lambda space: space.is_aligned)
        )


def _completed(
    spec: OperatorSpec, plans: tuple[CandidatePlan, ...], rp: AxisSizes | None, links: Links | None
) -> tuple[CandidatePlan, ...]:
    """Return candidates with those that are not whole plans completed, or dropped where that cannot be."""
    todo = dict.fromkeys(plan.partition() for plan in plans if not plan.is_placed)
    if not todo:
        return plans
    whole = [plan for plan in plans if plan.is_placed]
    return (*whole, *(CandidatePlan.of(plan) for plan in placed_plans(spec, todo, rp, links)))
