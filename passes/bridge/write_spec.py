"""Operators as linalg: the root of an `OperatorSpec` and its epilogue, one `linalg.generic` each.

Reading them in the order of their operations gives the same expression back (`read_root` with `in_order`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from t10.core.dtypes import is_float
from t10.core.expression import AffineDim, Combine, OperatorSpec, Term
from t10.core.neutral import neutral_value
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.dialect.mlir import ir
from t10.passes.bridge.write_generic import generic, write_body, write_operation

FLOAT_COMBINES = {
    "sum": "arith.addf", "prod": "arith.mulf", "max": "arith.maximumf", "min": "arith.minimumf",
    "maxnum": "arith.maxnumf", "minnum": "arith.minnumf",
}  # fmt: skip
INTEGER_COMBINES = {
    "sum": "arith.addi", "prod": "arith.muli", "max": "arith.maxsi", "min": "arith.minsi",
    "and": "arith.andi", "or": "arith.ori",
}  # fmt: skip
BIT_COMBINES = INTEGER_COMBINES | {"max": "arith.maxui", "min": "arith.minui"}
"""Of one bit: cores compare it as false < true, which is the order of numbers without sign."""


def write_root(
    spec: OperatorSpec, inputs: Sequence[Any], dims: Sequence[tuple[AffineDim, ...]], outs: Any
) -> Any:
    """Return the result of the root of an operator, accumulated into `outs`; needs a location and insertion point.

    `dims` index `inputs`, which may be padded views of the operands that the expression names.
    """
    kinds = [axis.kind for axis in spec.axes]
    op, block = generic(inputs, [*dims, spec.output.dims], spec.extents, kinds, outs)
    arguments = list(block.arguments)
    values = arguments[: len(spec.inputs)]
    with ir.InsertionPoint(block):
        value = write_body(spec.body, values)
        for selector in reversed(spec.selectors):
            value = _selected(values, selector.axis, selector.index, value, spec)
        if spec.combine != "none":
            value = _combined(spec.combine, arguments[-1], value, spec.acc_dtype)
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
    extents = [spec.axes[axis].extent for axis in loops]
    op, block = generic(tensors, maps, extents, ["parallel"] * len(loops), outs)
    with ir.InsertionPoint(block):
        # Positions in the result are those of its loops.
        value = write_body(spec.epilogue or identity(), list(block.arguments)[: len(tensors)], number)
        ir.Operation.create("linalg.yield", operands=[value])
    return op.results[0]


def _selected(inputs: Sequence[Any], axis: int, index: ScalarFunction, value: Any, spec: OperatorSpec) -> Any:
    """Return `value` at the point of `axis` that `index` names, the neutral element elsewhere."""
    wanted = write_body(index, inputs)
    here = write_operation(ScalarOp("index", (), "index", str(axis)), [])
    if str(wanted.type) != "index":
        here = write_operation(ScalarOp("arith.index_cast", (0,), str(wanted.type)), [here])
    hit = write_operation(ScalarOp("arith.cmpi", (0, 1), "i1", "eq"), [here, wanted])
    text = repr(neutral_value(spec.combine, spec.acc_dtype))
    neutral = write_operation(ScalarOp("const", (), spec.acc_dtype, text), [])
    return write_operation(ScalarOp("arith.select", (0, 1, 2), spec.acc_dtype), [hit, value, neutral])


def _combined(combine: Combine, old: Any, value: Any, dtype: str) -> Any:
    """Return the old result combined with a contribution."""
    integers = BIT_COMBINES if dtype == "i1" else INTEGER_COMBINES
    opcode = (FLOAT_COMBINES if is_float(dtype) else integers)[combine]
    return write_operation(ScalarOp(opcode, (0, 1), dtype), [old, value])
