"""`--t10-align-pace`: one rotating pace per axis, step counts, loop order and where windows start (T10 §4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.dialect.attributes import int_tuple
from t10.dialect.rtensor import CANDIDATES
from t10.errors import InfeasiblePlanError
from t10.passes.planning import (
    PlanningPass,
    attribute_of,
    candidate_fields,
    candidates_attr,
    complete_fields,
    every_candidate,
    is_chosen,
)
from t10.passes.read_graph import read_graph
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place


@dataclass(frozen=True, slots=True)
class AlignPace(PlanningPass):
    """Align the pace of what rotates: rp per axis, steps, loop order, start of every window.

    Candidates that cannot be aligned or placed are dropped; an operator whose candidates all go is an error that says
    why the last of them went.
    """

    name: ClassVar[str] = "t10-align-pace"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-partition",)
    reads: ClassVar[str] = "candidates with `f_op` and `ft`"
    leaves: ClassVar[str] = (
        "candidates with `lengths`, `rp`, `steps`, `loop_order`, `phases` and `core_order`"
    )

    def apply(self, module: Any) -> None:
        """Complete the plans of `rtensor.candidates`; nothing where plans are chosen."""
        if is_chosen(module):
            return
        read = read_graph(module)
        aligned: dict[tuple[OperatorSpec, Any], Any] = {}
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            key = (canonical(spec), attribute_of(op, spec))
            if key not in aligned:
                aligned[key] = _completed(op, spec)
            op.attributes[CANDIDATES] = aligned[key]

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether candidates have a pace, or plans are chosen."""
        return is_chosen(module) or every_candidate(module, lambda fields: "phases" in fields)


def _completed(op: Any, spec: OperatorSpec) -> Any:
    """Return the attribute of an operator's candidates with those that are not complete completed."""
    candidates = candidate_fields(op)
    if candidates and all("phases" in fields for fields in candidates):
        return op.attributes[CANDIDATES]
    plans = _aligned(spec, candidates)
    return candidates_attr(spec, [complete_fields(plan) for plan in plans])


def _aligned(spec: OperatorSpec, candidates: list[dict[str, Any]]) -> tuple[OperatorPlan, ...]:
    plans: list[OperatorPlan] = []
    refusal: InfeasiblePlanError | None = None
    for fields in candidates:
        f_op = int_tuple(fields["f_op"], "f_op")
        ft = tuple(int_tuple(row, "ft") for row in fields["ft"])
        try:
            plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
        except InfeasiblePlanError as error:
            refusal = error
            continue
        if plan is not None:
            plans.append(plan)
    if not plans:
        raise refusal or InfeasiblePlanError(
            "no candidate has a placement: tensors that rotate along one axis have sharers that overlap",
            operator=spec.name,
            location=spec.location or None,
        )
    return tuple(plans)
