"""A bare linalg operation put into a `rtensor.operator` of its own: what surrounds it becomes operands or is copied."""

from __future__ import annotations

from typing import Any

from t10.dialect.groups import SEGMENTS, segment_sizes
from t10.dialect.mlir import ir
from t10.dialect.rtensor import without_layout
from t10.passes.bridge.scalars import constant_of

CONSTANT_OPS = frozenset({"arith.constant", "tensor.empty", "linalg.fill"})


def wrap(op: Any, op_name: str, kind: str, *, without: tuple[str, ...] = ()) -> Any:
    """Return a new `rtensor.operator` that computes what `op` computes and has taken its place; `op` is erased.

    Constants, empty tensors and fills that `op` reads are copied into the region, and erased outside where nothing else
    reads them; other values become operands. Attributes `without` of `op` are not copied.
    """
    if op.name == "rtensor.operator":
        return op
    outside: list[Any] = []
    for value in read_values(op):
        if not _is_constant(value) and value not in outside:
            outside.append(value)
    attributes = {
        "op_name": ir.StringAttr.get(op_name),
        "kind": ir.StringAttr.get(kind),
        SEGMENTS: segment_sizes([value.type for value in outside]),
    }
    wrapper = ir.Operation.create(
        "rtensor.operator",
        results=[result.type for result in op.results],
        operands=outside,
        attributes=attributes,
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    types = [without_layout(value.type) for value in outside]
    block = wrapper.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    mapping = dict(zip(outside, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        inner = _copy(op, mapping)
        for name in without:
            if name in inner.attributes:
                del inner.attributes[name]
        ir.Operation.create("rtensor.yield", operands=list(inner.results), loc=op.location)
    for old, new in zip(op.results, wrapper.results, strict=True):
        old.replace_all_uses_with(new)
    constants = [value for value in read_values(op) if _is_constant(value)]
    op.erase()
    _erase_unread(constants)
    return wrapper


def _erase_unread(values: list[Any]) -> None:
    """Erase the operations that make values which nothing reads, and then those of what they read."""
    pending = list(dict.fromkeys(values))
    while pending:
        value = pending.pop()
        operation = value.owner.operation
        if any(True for result in operation.results for _ in result.uses):
            continue
        sources = [each for each in dict.fromkeys(read_values(operation)) if _is_constant(each)]
        pending = [each for each in pending if each.owner.operation != operation]
        operation.erase()
        pending.extend(each for each in sources if each not in pending)


def read_values(op: Any) -> list[Any]:
    """Return the values an operation reads, those its body captures included, in order."""
    values = list(op.operands)
    for region in op.regions:
        for block in region.blocks:
            inside = set(block.arguments)
            for inner in block.operations:
                operation = inner.operation
                values.extend(value for value in operation.operands if value not in inside)
                inside.update(operation.results)
    return values


def _is_constant(value: Any) -> bool:
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    operation = owner.operation
    if operation.name == "linalg.generic":
        # A generic that only writes constants: it reads nothing but its own `outs`.
        return len(operation.operands) == 1 and all(_is_constant(v) for v in read_values(operation))
    if operation.name in ("tensor.expand_shape", "tensor.collapse_shape"):
        return _is_constant(operation.operands[0])
    return operation.name in CONSTANT_OPS and _is_small(operation)


def _is_small(operation: Any) -> bool:
    """Return whether a constant is a scalar or a splat; a dense one is a weight and stays outside."""
    if operation.name != "arith.constant":
        return True
    return constant_of(operation.attributes["value"]) is not None


def _copy(op: Any, mapping: dict[Any, Any]) -> Any:
    """Copy an operation, and the constants it reads, to the current insertion point."""
    for value in read_values(op):
        if value not in mapping and _is_constant(value):
            made = _copy(value.owner.operation, mapping)
            mapping[value] = made.results[list(value.owner.operation.results).index(value)]
    copied = op.operation.clone().operation
    for target in (copied, *inner_operations(copied)):
        for i, value in enumerate(target.operands):
            if value in mapping:
                target.operands[i] = mapping[value]
    return copied


def inner_operations(op: Any) -> list[Any]:
    """Return the operations right inside the regions of an operation."""
    return [inner.operation for region in op.regions for block in region.blocks for inner in block.operations]
