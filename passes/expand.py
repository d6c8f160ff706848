"""`--t10-expand`: the compute-shift program of every operator, as loops (T10 §4.2, compute-shift model §4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from t10.core.expression import OperatorSpec
from t10.cost.operator import output_chunk
from t10.dialect.mlir import ir
from t10.errors import UnsupportedOpError
from t10.passes.bridge.loops import expand, is_expanded
from t10.passes.bridge.separate import operand_numbers
from t10.passes.place import planned
from t10.passes.planning import PlanningPass, is_lowered


@dataclass(frozen=True, slots=True)
class Expand(PlanningPass):
    """Write the loops of every operator that rotates or reduces: sub-tasks, shifts, reduction, epilogue.

    The operator keeps its name and plan; its region becomes one `rtensor.nest` per rotating axis, outermost first,
    around the sub-task (an `rtensor.operator` with `rtensor.sub_task`, the extent of its box per axis) and the shifts
    that follow it; then `rtensor.reduce` where partial sums lie on several cores, and the epilogue.
    """

    name: ClassVar[str] = "t10-expand"
    prerequisites: ClassVar[tuple[str, ...]] = ("t10-place",)
    reads: ClassVar[str] = "placed plans"
    leaves: ClassVar[str] = (
        "`rtensor.nest`, sub-tasks, `rtensor.shift`, `rtensor.reduce` and epilogues inside the operators"
    )

    def apply(self, module: Any) -> None:
        """Expand the operators' regions; those without loops or reduction, and expanded ones, stay as they are."""
        if is_lowered(module):
            return
        _, cost = self.target(module)
        read, plan = planned(self, module)
        todo = [
            (read.operations[spec.name], spec, scheduled)
            for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True)
            if scheduled.active.plan.loop_order or output_chunk(spec, scheduled.active.plan)[0] > 1
        ]
        todo = [each for each in todo if not is_expanded(each[0])]
        # Before anything is rewritten: a new result has no name in `read`.
        numbers = [operand_numbers(op, spec, read.names, read.sources) for op, spec, _ in todo]
        for (op, spec, scheduled), operands in zip(todo, numbers, strict=True):
            _check_operands(spec, operands)
            with op.location, ir.InsertionPoint(op):
                expand(op, spec, scheduled, operands, cost)

    @classmethod
    def is_done(cls, module: Any) -> bool:
        """Return whether some operator is expanded."""
        return any(
            is_expanded(op.operation)
            for function in module.body.operations
            if function.operation.name == "func.func"
            for block in function.operation.regions[0].blocks
            for op in block.operations
        )


def _check_operands(spec: OperatorSpec, numbers: dict[int, int]) -> None:
    """Refuse an operator that reads a value through a view inside its region: what would be shifted has no name."""
    for number, operand in enumerate(spec.operands):
        if number not in numbers:
            raise UnsupportedOpError(
                f"reads {operand.name} through a view in its region, which cannot be written as loops",
                operator=spec.name,
                location=spec.location or None,
                hint="move the view in front of the operator",
            )
