"""`--t10-verify-plan`: prove every plan of a module with the independent checker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from t10.core.schedule import Buffer, ModulePlan
from t10.dialect.attributes import to_python
from t10.dialect.plan import read_plan
from t10.dialect.rtensor import PLAN
from t10.errors import InputError, VerifyError
from t10.passes.bridge.annotate import BUFFERS
from t10.passes.place import planned
from t10.passes.planning import PlanningPass
from t10.passes.read_graph import ReadModule, read_graph
from t10.plan.verify import Violation, verify_module, verify_operator

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class VerifyPlan(PlanningPass):
    """Check windows, rings, coverage, data, layouts, arrivals and memory of every planned operator.

    The checker shares no arithmetic with the planner. Every broken rule is an error at its operator.
    """

    name: ClassVar[str] = "t10-verify-plan"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-reconcile",)

    def apply(self, module: Any) -> None:
        """Leave the module as it is; raises `VerifyError` after one located error per violation."""
        chip, _ = self.target(module)
        read = read_graph(module)
        found = self._operator_violations(read, chip.n_cores)
        if not found:
            read, plan = planned(self, module)
            found = verify_module(_with_buffers(read, plan), chip)
        for violation in found[:MOST_SHOWN]:
            op = read.operations.get(violation.operator, read.function)
            op.location.emit_error(str(violation))
        if found:
            raise VerifyError(f"the plan breaks {len(found)} rules, stated above")

    def _operator_violations(self, read: ReadModule, n_cores: int) -> list[Violation]:
        """Return what is wrong with single operators: first, because a schedule needs plans that are right."""
        found: list[Violation] = []
        for spec in read.graph.operators:
            op = read.operations[spec.name]
            if PLAN not in op.attributes:
                raise InputError("has no rtensor.plan", operator=spec.name, hint="run --t10-reconcile first")
            found += verify_operator(spec, read_plan(to_python(op.attributes[PLAN].fields)).plan, n_cores)
        return found


def _with_buffers(read: ReadModule, plan: ModulePlan) -> ModulePlan:
    """Return the plan with the addresses that `--t10-place` wrote, where it has."""
    if BUFFERS not in read.function.attributes:
        return plan
    buffers = tuple(Buffer(**fields) for fields in to_python(read.function.attributes[BUFFERS]))
    return replace(plan, buffers=buffers)
