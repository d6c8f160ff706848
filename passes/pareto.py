"""`--t10-pareto`: cycles and bytes of every candidate; the time x memory front stays (T10 §4.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.plan import CostedPlan
from t10.passes.planning import (
    PlanningPass,
    candidate_plans,
    complete_fields,
    is_chosen,
    locating,
    operators,
    set_candidates,
)
from t10.passes.read_graph import read_graph
from t10.plan.search import pareto_front


@dataclass(frozen=True, slots=True)
class Pareto(PlanningPass):
    """Price every candidate and keep those that no other beats in cycles and bytes."""

    name: ClassVar[str] = "t10-pareto"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-align-pace",)
    reads: ClassVar[str] = "complete candidates"
    leaves: ClassVar[str] = (
        "candidates with `cycles` and bytes, those on the time x memory front only, fastest last"
    )

    def apply(self, module: Any) -> None:
        """Leave the front in `rtensor.candidates`, fastest last, priced; nothing where plans are chosen."""
        if is_chosen(module):
            return
        _, cost = self.target(module)
        options = self.plan_options()
        read = read_graph(module)
        fronts: dict[object, tuple[CostedPlan, ...]] = {}
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            plans = tuple(costed.plan for costed in candidate_plans(op))
            key = (spec.body, spec.epilogue, spec.inputs, spec.extents, plans)
            if key not in fronts:
                with locating(read.graph.operators):
                    fronts[key] = pareto_front(spec, plans, cost, options)
            set_candidates(op, spec, [complete_fields(costed) for costed in fronts[key]])

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether every candidate has a price, or plans are chosen."""
        if is_chosen(module):
            return True
        plans = (
            [plan for op in operators(module) for plan in candidate_plans(op)] if _complete(module) else []
        )
        return bool(plans) and all(plan.active_bytes for plan in plans)


def _complete(module: Any) -> bool:
    from t10.passes.align_pace import AlignPace

    return AlignPace.is_done(module)
