"""A bare linalg operation put into a `rtensor.operator` of its own, which reads what the operation reads."""

from __future__ import annotations

from typing import Any

from t10.core.expression import OperatorKind
from t10.dialect import build
from t10.dialect.mlir import captured, ir


def wrap(op: Any, op_name: str, kind: OperatorKind, *, without: tuple[str, ...] = ()) -> Any:
    """Return a new `rtensor.operator` that holds `op` and has taken its place; an operator is returned as it is.

    `op` loses the attributes `without`.
    """
    if op.name == "rtensor.operator":
        return op
    with ir.InsertionPoint(op), op.location:
        wrapper, block = build.operator(op.results[0].type, op_name=op_name, kind=kind)
    op.results[0].replace_all_uses_with(wrapper.results[0])
    with ir.InsertionPoint(block), op.location:
        end = build.yield_(op.results[0])
    op.move_before(end)
    for name in without:
        if name in op.attributes:
            del op.attributes[name]
    return wrapper


def read_values(op: Any) -> list[Any]:
    """Return the values an operation reads, those its body captures included, in order."""
    return [*op.operands, *captured(op)]


def inner_operations(op: Any) -> list[Any]:
    """Return the operations right inside the regions of an operation."""
    return [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
