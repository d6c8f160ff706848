"""Operators as linalg: the root of an `OperatorSpec` and its epilogue, one `linalg.generic` each.

Reading them in the order of their operations gives the same expression back (`read_root` with `in_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.core.dtypes import is_float
from t10.core.expression import AffineDim, Combine, OperatorSpec, Term
from t10.core.neutral import neutral_value
from t10.core.scalar import ScalarFunction, ScalarOp, identity, parse_constant
from t10.dialect.maps import map_attr
from t10.dialect.mlir import ir
from t10.passes.bridge.scalars import FLOAT_PREDICATES, INTEGER_PREDICATES

FLOAT_COMBINES = {"sum": "arith.addf", "prod": "arith.mulf", "max": "arith.maximumf", "min": "arith.minimumf"}
INTEGER_COMBINES = {
    "sum": "arith.addi", "prod": "arith.muli", "max": "arith.maxsi", "min": "arith.minsi",
    "and": "arith.andi", "or": "arith.ori",
}  # fmt: skip


def write_root(
    spec: OperatorSpec, inputs: Sequence[Any], dims: Sequence[tuple[AffineDim, ...]], outs: Any
) -> Any:
    """Return the result of the root of an operator, accumulated into `outs`; needs a location and insertion point.

    `dims` index `inputs`, which may be padded views of the operands that the expression names.
    """
    maps = [*dims, spec.output.dims]
    tensors = list(inputs)
    known = {dim.terms[0].axis for each in maps for dim in each if dim.is_simple}
    missing = [axis for axis in range(len(spec.axes)) if axis not in known]
    if missing:
        # A shape that gives loops their extent which no operand dim gives (pooling).
        kind = ir.RankedTensorType.get([spec.axes[axis].extent for axis in missing], outs.type.element_type)
        tensors.append(ir.Operation.create("tensor.empty", results=[kind]).results[0])
        maps.insert(-1, tuple(AffineDim((Term(axis, 1),)) for axis in missing))
    kinds = [axis.kind for axis in spec.axes]
    op, block = _generic(tensors, outs, maps, kinds)
    arguments = list(block.arguments)
    with ir.InsertionPoint(block):
        writer = _BodyWriter(arguments[: len(spec.inputs)])
        value = writer.function(spec.body)
        for selector in reversed(spec.selectors):
            value = writer.selected(selector.axis, selector.index, value, spec)
        if spec.combine != "none":
            value = writer.combined(spec.combine, arguments[-1], value, spec.acc_dtype)
        ir.Operation.create("linalg.yield", operands=[value])
    return op.results[0]


def write_epilogue(
    spec: OperatorSpec, accumulated: Any, inputs: Sequence[tuple[Any, tuple[AffineDim, ...]]], outs: Any
) -> Any:
    """Return the result of the epilogue of an operator (a copy where it has none), written to `outs`."""
    loops = sorted(spec.output.axes)
    number = {axis: loop for loop, axis in enumerate(loops)}

    def through(dims: tuple[AffineDim, ...]) -> tuple[AffineDim, ...]:
        return tuple(
            AffineDim(tuple(Term(number[t.axis], t.coefficient) for t in dim.terms), dim.offset)
            for dim in dims
        )

    own = through(spec.output.dims)
    tensors = [accumulated, *(value for value, _ in inputs)]
    maps = [own, *(through(dims) for _, dims in inputs), own]
    op, block = _generic(tensors, outs, maps, ["parallel"] * len(loops))
    with ir.InsertionPoint(block):
        writer = _BodyWriter(list(block.arguments)[:-1])
        # Positions in the result are those of its loops.
        value = writer.function(spec.epilogue or identity(), number)
        ir.Operation.create("linalg.yield", operands=[value])
    return op.results[0]


def _generic(
    tensors: Sequence[Any], outs: Any, maps: Sequence[tuple[AffineDim, ...]], kinds: Sequence[str]
) -> tuple[Any, Any]:
    """Return a linalg.generic and its empty block."""
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


class _BodyWriter:
    """Writes scalar functions of a block's arguments at the current insertion point."""

    def __init__(self, inputs: list[Any]) -> None:
        """Start with the values of the inputs."""
        self.inputs = inputs

    def function(self, function: ScalarFunction, loops: dict[int, int] | None = None) -> Any:
        """Return the value of a function of the inputs; `loops` are loop numbers by axis where they differ."""
        values = list(self.inputs)
        for op in function.ops:
            values.append(self._operation(op, [values[i] for i in op.operands], loops))
        return values[function.result]

    def _operation(self, op: ScalarOp, operands: list[Any], loops: dict[int, int] | None) -> Any:
        kind = ir.Type.parse(op.dtype)
        attributes: dict[str, Any] = {}
        name = op.opcode
        if name == "const":
            name, attributes = "arith.constant", {"value": constant_attr(op.attribute, kind)}
        elif name == "index":
            axis = int(op.attribute)
            number = axis if loops is None else loops[axis]
            name = "linalg.index"
            attributes = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        elif op.attribute:
            predicates = FLOAT_PREDICATES if name == "arith.cmpf" else INTEGER_PREDICATES
            number = predicates.index(op.attribute)
            attributes = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}
        return ir.Operation.create(name, results=[kind], operands=operands, attributes=attributes).results[0]

    def selected(self, axis: int, index: ScalarFunction, value: Any, spec: OperatorSpec) -> Any:
        """Return `value` at the point of `axis` that `index` names, the neutral element elsewhere."""
        wanted = self.function(index)
        here = self._operation(ScalarOp("index", (), "index", str(axis)), [], None)
        if str(wanted.type) != "index":
            here = self._operation(ScalarOp("arith.index_cast", (0,), str(wanted.type)), [here], None)
        hit = self._operation(ScalarOp("arith.cmpi", (0, 1), "i1", "eq"), [here, wanted], None)
        text = repr(neutral_value(spec.combine, spec.acc_dtype))
        neutral = self._operation(ScalarOp("const", (), spec.acc_dtype, text), [], None)
        return self._operation(
            ScalarOp("arith.select", (0, 1, 2), spec.acc_dtype), [hit, value, neutral], None
        )

    def combined(self, combine: Combine, old: Any, value: Any, dtype: str) -> Any:
        """Return the old result combined with a contribution."""
        opcode = (FLOAT_COMBINES if is_float(dtype) else INTEGER_COMBINES)[combine]
        return self._operation(ScalarOp(opcode, (0, 1), dtype), [old, value], None)


def constant_attr(text: str, kind: Any) -> Any:
    """Return the attribute of a constant's spelling."""
    value = parse_constant(text)
    if isinstance(kind, ir.FloatType):
        return ir.FloatAttr.get(kind, float(value))
    return ir.IntegerAttr.get(kind, int(value))
