"""`--t10-verify-plan`: prove every plan of a module with the independent checker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.schedule import ModulePlan
from t10.dialect.build import layout_attr
from t10.dialect.layout import Layout
from t10.dialect.mlir import ir
from t10.dialect.rtensor import layout_of
from t10.errors import VerifyError
from t10.passes.bridge.annotate import argument_types
from t10.passes.bridge.layouts import operand_layout
from t10.passes.place import planned
from t10.passes.planning import PlanningPass, chosen_plan
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
    reads: ClassVar[str] = "plans"
    leaves: ClassVar[str] = "the module as it was; an error for every broken rule, at its operator"

    def apply(self, module: Any) -> None:
        """Leave the module as it is; raises `VerifyError` after one located error per violation."""
        chip, _ = self.target(module)
        read = read_graph(module)
        found = [
            violation
            for spec in read.graph.operators
            for violation in verify_operator(
                spec, chosen_plan(read.operations[spec.name], spec.name).plan, chip.n_cores
            )
        ]
        if not found:
            # A schedule can only be made of plans that are right.
            read, schedule = planned(self, module)
            found = [*verify_module(schedule, chip), *_stated_otherwise(read, schedule)]
        found = list(dict.fromkeys(found))
        for violation in found[:MOST_SHOWN]:
            op = read.operations.get(violation.operator, read.function)
            op.location.emit_error(str(violation))
        if found:
            raise VerifyError(f"the plan breaks {len(found)} rules, stated above")


def _stated_otherwise(read: ReadModule, plan: ModulePlan) -> Iterator[Violation]:
    """Yield layouts in the module that are not those of the plan: of arguments, results, and what was moved."""
    arguments = read.function.regions[0].blocks[0].arguments
    for i, (argument, expected) in enumerate(zip(arguments, argument_types(read, plan), strict=True)):
        if argument.type != expected:
            name = read.names.get(argument, "")
            yield Violation(name, f"layout of argument {i}", str(argument.type), str(expected))
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        op = read.operations[spec.name]
        active, scatter = scheduled.active.plan, scheduled.output_layout.scatter
        expected = operand_layout(spec, active, len(spec.operands), scatter)
        if layout_of(op.results[0].type) != expected:
            yield _layout_violation(spec.name, "result", op.results[0].type, expected)
        moved = [operand_layout(spec, active, a.operand) for a in scheduled.arrivals if a.kind != "in_place"]
        for i, value in enumerate(op.operands):
            owner = value.owner
            if isinstance(owner, ir.Block) or owner.operation.name not in (
                "rtensor.relayout",
                "rtensor.setup",
            ):
                continue
            if layout_of(value.type) not in moved:
                yield _layout_violation(spec.name, f"operand {i}", value.type, *moved)


def _layout_violation(operator: str, what: str, type_: Any, *expected: Layout) -> Violation:
    stated = " or ".join(str(layout_attr(layout)) for layout in expected) or "nothing that moves"
    return Violation(operator, f"layout of {what}", str(type_), stated)
