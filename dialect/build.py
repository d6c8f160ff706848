"""Builders of `rtensor` attributes and operations; all need a current context, operations an insertion point.

op, block = build.operator(result_type, op_name="/mlp/MatMul", kind="contraction")
with ir.InsertionPoint(block):
    build.yield_(linalg_op.result)
"""

from __future__ import annotations

from typing import Any

from t10.core.expression import OperatorKind
from t10.core.plan import CostedPlan
from t10.dialect.attributes import to_attr
from t10.dialect.mlir import ir
from t10.dialect.plan import CandidatePlan
from t10.dialect.plan_attributes import plan_attr
from t10.dialect.rtensor import PLAN


def set_plan(op: Any, costed: CostedPlan) -> None:
    """Make a plan the plan of an operator; raises `Invalid` for one that breaks a rule."""
    op.operation.attributes[PLAN] = plan_attr(CandidatePlan.of(costed))


def operator(result_type: Any, *, op_name: str, kind: OperatorKind) -> tuple[Any, Any]:
    """Return a new `rtensor.operator` and its empty block, which reads outer values directly; end it with `yield_`."""
    attributes = {"op_name": to_attr(op_name), "kind": to_attr(kind)}
    op = operation("rtensor.operator", [], [result_type], attributes, regions=1)
    return op, op.regions[0].blocks.append()


def yield_(value: Any) -> Any:
    """Return a new `rtensor.yield`: the end of an operator or of a sub-task."""
    return operation("rtensor.yield", [value], [])


def operation(
    name: str,
    operands: list[Any],
    results: list[Any],
    attributes: dict[str, Any] | None = None,
    *,
    regions: int = 0,
) -> Any:
    """Return a new operation at the current location (unknown without one) and insertion point."""
    return ir.Operation.create(
        name,
        results=results,
        operands=operands,
        attributes=attributes or {},
        regions=regions,
        loc=ir.Location.current or ir.Location.unknown(),
    )
