"""`--t10-pareto`: cycles and bytes of every candidate; the time x memory front stays (T10 §4.3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.dialect.rtensor import CANDIDATES
from t10.passes.planning import (
    PlanningPass,
    candidates_attr,
    candidates_of,
    complete_fields,
    every_candidate,
    is_chosen,
    locating,
)
from t10.passes.read_graph import read_graph
from t10.plan.search.operator import pareto_front


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
        found: dict[int, Any] = {}
        for spec, candidates in zip(read.graph.operators, candidates_of(read), strict=True):
            if id(candidates) not in found:
                plans = tuple(costed.plan for costed in candidates)
                with locating(read.graph.operators):
                    front = pareto_front(spec, plans, cost, options)
                found[id(candidates)] = candidates_attr(spec, [complete_fields(costed) for costed in front])
            read.operations[spec.name].attributes[CANDIDATES] = found[id(candidates)]

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether every candidate has a price, or plans are chosen."""
        return is_chosen(module) or every_candidate(
            module, lambda fields: "active_bytes" in fields and fields["active_bytes"].value > 0
        )
