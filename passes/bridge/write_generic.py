"""One `linalg.generic` written from values; needs a current location and insertion point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.core.expression import AffineDim
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant
from t10.dialect.maps import map_attr
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.body import FLOAT_PREDICATES, INTEGER_PREDICATES


def generic(
    tensors: Sequence[Any],
    maps: Sequence[tuple[AffineDim, ...]],
    extents: Sequence[int],
    kinds: Sequence[str],
    outs: Any,
) -> tuple[Any, Any]:
    """Return a linalg.generic and its empty block; `maps` index `tensors`, then `outs`."""
    known = {dim.terms[0].axis for each in maps for dim in each if dim.is_simple}
    missing = [axis for axis in range(len(extents)) if axis not in known]
    if missing:
        # A shape that gives loops their extent which no operand dim gives (pooling).
        kind = ir.RankedTensorType.get([extents[axis] for axis in missing], outs.type.element_type)
        tensors = [*tensors, ir.Operation.create("tensor.empty", results=[kind]).results[0]]
        maps = [*maps[:-1], tuple(axis_dim(axis) for axis in missing), maps[-1]]
    iterators = [ir.Attribute.parse(f"#linalg.iterator_type<{kind}>") for kind in kinds]
    op = ir.Operation.create(
        "linalg.generic",
        results=[outs.type],
        operands=[*tensors, outs],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([map_attr(dims, len(kinds)) for dims in maps]),
            "iterator_types": ir.ArrayAttr.get(iterators),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(tensors), 1]),
        },
        regions=1,
    )
    types = [value.type.element_type for value in (*tensors, outs)]
    return op, op.regions[0].blocks.append(*types, arg_locs=[ir.Location.current] * len(types))


def write_body(function: ScalarFunction, inputs: Sequence[Any], loops: dict[int, int] | None = None) -> Any:
    """Return the value of a scalar function of `inputs`; `loops` are loop numbers by axis where they differ."""
    values = list(inputs)
    for op in function.ops:
        values.append(write_operation(op, [values[i] for i in op.operands], loops))
    return values[function.result]


def write_operation(op: ScalarOp, operands: Sequence[Any], loops: dict[int, int] | None = None) -> Any:
    """Return the value of one scalar operation of `operands`."""
    kind = ir.Type.parse(op.dtype)
    attributes: dict[str, Any] = {}
    name = op.opcode
    if name == "const":
        name, attributes = "arith.constant", {"value": constant_attr(op.attribute, kind)}
    elif name == "index":
        axis = int(op.attribute)
        name, attributes = "linalg.index", {"dim": _integer(axis if loops is None else loops[axis])}
    elif op.attribute:
        predicates = FLOAT_PREDICATES if name == "arith.cmpf" else INTEGER_PREDICATES
        attributes = {"predicate": _integer(predicates.index(op.attribute))}
    return ir.Operation.create(name, results=[kind], operands=list(operands), attributes=attributes).results[
        0
    ]


def constant_attr(text: str, kind: Any) -> Any:
    """Return the attribute of a constant's spelling."""
    value = parse_constant(text)
    if isinstance(kind, ir.FloatType):
        return ir.FloatAttr.get(kind, float(value))
    return ir.IntegerAttr.get(kind, int(value))


def _integer(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
