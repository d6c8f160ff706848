"""A numpy interpreter of linalg on tensors: slow, plain, and sharing nothing with the compiler's own reading of IR.

    outputs = run_module(module, {"x": array})      # arguments and results by `t10.name`

Loops are evaluated all at once with index arrays that broadcast; reductions follow in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import erf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.dialect.elements import elements
from t10.dialect.mlir import ir

Array = NDArray[Any]
Environment = dict[Any, Any]

DTYPES: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i1": np.bool_, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "index": np.int64,
}  # fmt: skip

UNARY: dict[str, Callable[[Array], Array]] = {
    "math.exp": np.exp, "math.sqrt": np.sqrt, "math.tanh": np.tanh, "math.absf": np.abs, "math.log": np.log,
    "math.rsqrt": lambda x: (1 / np.sqrt(x)).astype(x.dtype), "arith.negf": np.negative,
    "math.erf": lambda x: np.vectorize(erf, otypes=[np.float64])(x).astype(x.dtype),
    "math.sin": np.sin, "math.cos": np.cos, "math.roundeven": np.rint, "math.floor": np.floor, "math.ceil": np.ceil,
}  # fmt: skip
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin, "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum, "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "math.powf": np.power, "arith.divsi": lambda a, b: np.trunc(a / b).astype(a.dtype), "arith.remsi": np.fmod,
    "arith.remf": np.fmod, "arith.shli": np.left_shift, "arith.shrsi": np.right_shift,
    "math.fpowi": np.power, "arith.floordivsi": np.floor_divide,
}  # fmt: skip
UNSIGNED: dict[str, Callable[[Array, Array], Array]] = {"arith.maxui": np.maximum, "arith.minui": np.minimum}
CASTS = frozenset(
    f"arith.{name}"
    for name in ("extf", "truncf", "sitofp", "uitofp", "fptosi", "extsi", "extui", "trunci", "index_cast")
)
FLOAT_COMPARE: dict[int, Callable[[Array, Array], Array]] = {
    1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal, 6: np.not_equal,
    8: np.equal, 9: np.greater, 10: np.greater_equal, 11: np.less, 12: np.less_equal, 13: np.not_equal,
}  # fmt: skip
INTEGER_COMPARE: dict[int, Callable[[Array, Array], Array]] = {
    0: np.equal, 1: np.not_equal, 2: np.less, 3: np.less_equal, 4: np.greater, 5: np.greater_equal,
    6: np.less, 7: np.less_equal, 8: np.greater, 9: np.greater_equal,
}  # fmt: skip
COMBINES: dict[str, Any] = {
    "arith.addf": np.add, "arith.addi": np.add, "arith.mulf": np.multiply, "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum, "arith.maxsi": np.maximum, "arith.minsi": np.minimum, "arith.ori": np.bitwise_or,
    "arith.andi": np.bitwise_and, "arith.muli": np.multiply, "arith.maxnumf": np.fmax, "arith.minnumf": np.fmin,
}  # fmt: skip


def run_module(module: Any, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of the module's one function by name; raises `AssertionError` for operations it lacks."""
    function = next(op.operation for op in module.body.operations if op.operation.name == "func.func")
    block = function.regions[0].blocks[0]
    names = _names(function, "arg_attrs", len(block.arguments))
    environment: Environment = {
        argument: np.asarray(inputs[name]) for argument, name in zip(block.arguments, names, strict=True)
    }
    with np.errstate(all="ignore"):
        results = run_block(block, environment)
    outputs = _names(function, "res_attrs", len(results))
    return dict(zip(outputs, results, strict=True))


def run_block(block: Any, environment: Environment) -> list[Array]:
    """Run the operations of a block and return what its terminator hands out."""
    for op in block.operations:
        operation = op.operation
        if operation.name in ("func.return", "rtensor.yield"):
            return [environment[value] for value in operation.operands]
        handler = HANDLERS.get(operation.name)
        assert handler is not None, f"the interpreter has no {operation.name}"
        made = handler(operation, environment)
        for value, array in zip(operation.results, made, strict=True):
            environment[value] = array
    raise AssertionError("block without terminator")


def _names(function: Any, key: str, count: int) -> list[str]:
    rows = ir.ArrayAttr(function.attributes[key])
    return [ir.StringAttr(ir.DictAttr(row)["t10.name"]).value for row in list(rows)[:count]]


def _dtype(kind: Any) -> Any:
    return DTYPES[str(kind)]


def _tensor(value: Any) -> tuple[tuple[int, ...], Any]:
    kind = ir.RankedTensorType(value.type)
    return tuple(kind.shape), _dtype(kind.element_type)


def _scalar(attribute: Any) -> Any:
    if isinstance(attribute, ir.BoolAttr):
        return np.bool_(ir.BoolAttr(attribute).value)
    if isinstance(attribute, ir.FloatAttr):
        return _dtype(attribute.type)(ir.FloatAttr(attribute).value)
    return _dtype(attribute.type)(ir.IntegerAttr(attribute).value)


def _constant(op: Any, environment: Environment) -> list[Any]:
    del environment
    attribute = op.attributes["value"]
    if not isinstance(op.results[0].type, ir.RankedTensorType):
        return [_scalar(attribute)]
    shape, dtype = _tensor(op.results[0])
    if not isinstance(attribute, ir.DenseElementsAttr):
        return [elements(attribute, str(ir.RankedTensorType(attribute.type).element_type))]
    dense = ir.DenseElementsAttr(attribute)
    if dense.is_splat:
        return [np.full(shape, _scalar(dense.get_splat_value()), dtype)]
    return [np.array(dense).astype(dtype).reshape(shape)]


def _empty(op: Any, environment: Environment) -> list[Array]:
    del environment
    shape, dtype = _tensor(op.results[0])
    poison = np.nan if np.issubdtype(dtype, np.floating) else 77
    return [np.full(shape, poison).astype(dtype)]


def _fill(op: Any, environment: Environment) -> list[Array]:
    shape, dtype = _tensor(op.results[0])
    return [np.full(shape, environment[op.operands[0]], dtype)]


def _reshape(op: Any, environment: Environment) -> list[Array]:
    return [environment[op.operands[0]].reshape(_tensor(op.results[0])[0])]


def _integers(op: Any, key: str) -> list[int]:
    return [int(i) for i in ir.DenseI64ArrayAttr(op.attributes[key])]


def _slice(op: Any, environment: Environment) -> list[Array]:
    triples = zip(*(_integers(op, f"static_{key}") for key in ("offsets", "sizes", "strides")), strict=True)
    index = tuple(slice(offset, offset + size * stride, stride) for offset, size, stride in triples)
    return [environment[op.operands[0]][index].reshape(_tensor(op.results[0])[0])]


def _concat(op: Any, environment: Environment) -> list[Array]:
    axis = int(ir.IntegerAttr(op.attributes["dim"]).value)
    return [np.concatenate([environment[value] for value in op.operands], axis=axis)]


def _pad(op: Any, environment: Environment) -> list[Array]:
    terminator = list(op.regions[0].blocks[0].operations)[-1].operation
    value = environment[terminator.operands[0]]
    widths = list(zip(_integers(op, "static_low"), _integers(op, "static_high"), strict=True))
    return [np.pad(environment[op.operands[0]], widths, constant_values=value)]


def _operator(op: Any, environment: Environment) -> list[Array]:
    return run_block(op.regions[0].blocks[0], environment)


def _affine(expression: Any, axes: list[Array]) -> Any:
    if isinstance(expression, ir.AffineDimExpr):
        return axes[int(ir.AffineDimExpr(expression).position)]
    if isinstance(expression, ir.AffineConstantExpr):
        return np.int64(ir.AffineConstantExpr(expression).value)
    if isinstance(expression, ir.AffineAddExpr):
        both = ir.AffineAddExpr(expression)
        return _affine(both.lhs, axes) + _affine(both.rhs, axes)
    assert isinstance(expression, ir.AffineMulExpr), f"index {expression}"
    both = ir.AffineMulExpr(expression)
    return _affine(both.lhs, axes) * _affine(both.rhs, axes)


def _generic(op: Any, environment: Environment) -> list[Any]:
    """Evaluate a linalg.generic; results that nothing uses are not computed."""
    maps = [ir.AffineMapAttr(attr).value for attr in ir.ArrayAttr(op.attributes["indexing_maps"])]
    is_reduction = ["reduction" in str(attr) for attr in ir.ArrayAttr(op.attributes["iterator_types"])]
    arrays = [environment[value] for value in op.operands]
    extents = _extents(maps, arrays, len(is_reduction))
    axes = list(np.ix_(*(np.arange(n) for n in extents)))
    body = _Body(op, environment, axes)
    for argument, array, each in zip(op.regions[0].blocks[0].arguments, arrays, maps, strict=True):
        index = tuple(_affine(result, axes) for result in each.results)
        body.known[argument] = np.asarray(array)[index]
    n_inputs = len(arrays) - len(op.results)
    results: list[Any] = []
    for i, value in enumerate(body.yielded):
        if len(op.results) > 1 and not list(op.results[i].uses):
            results.append(None)
            continue
        results.append(
            _result(body, value, i, maps[n_inputs + i], arrays[n_inputs + i], extents, is_reduction)
        )
    return results


def _result(
    body: _Body, value: Any, i: int, out_map: Any, start: Array, extents: list[int], is_reduction: list[bool]
) -> Array:
    out = np.array(start)
    index = tuple(_affine(result, body.axes) for result in out_map.results)
    if not any(is_reduction):
        out[tuple(np.broadcast_arrays(*index))] = np.broadcast_to(body.value(value), extents)
        return out
    op = value.owner.operation
    accumulator = body.accumulators[i]
    operands = list(op.operands)
    other = operands[1] if operands[0] == accumulator else operands[0]
    assert accumulator in operands, f"not a reduction: {op}"
    points = np.broadcast_to(np.asarray(body.value(other)), extents)
    reduced = tuple(axis for axis, reduction in enumerate(is_reduction) if reduction)
    total = COMBINES[op.name].reduce(points, axis=reduced, keepdims=True, dtype=out.dtype)
    combined = COMBINES[op.name](np.asarray(out[index]), total).astype(out.dtype)
    out[index] = combined.reshape(np.shape(out[index]))
    return out


def _extents(maps: list[Any], arrays: list[Array], n_axes: int) -> list[int]:
    found = [0] * n_axes
    for each, array in zip(maps, arrays, strict=True):
        for result, extent in zip(each.results, np.shape(array), strict=True):
            if isinstance(result, ir.AffineDimExpr):
                found[ir.AffineDimExpr(result).position] = extent
    assert all(found), "a loop has no extent"
    return found


class _Body:
    """Evaluates the scalars of a linalg body over all points at once."""

    def __init__(self, op: Any, environment: Environment, axes: list[Array]) -> None:
        self.environment = environment
        self.axes = axes
        self.known: Environment = {}
        block = op.regions[0].blocks[0]
        self.accumulators = list(block.arguments)[len(block.arguments) - len(op.results) :]
        self.yielded = list(list(block.operations)[-1].operation.operands)

    def value(self, value: Any) -> Any:
        if value not in self.known:
            self.known[value] = self._compute(value)
        return self.known[value]

    def _compute(self, value: Any) -> Any:
        if value in self.environment:
            return self.environment[value]
        op = value.owner.operation
        if op.name == "arith.constant":
            return _scalar(op.attributes["value"])
        if op.name == "linalg.index":
            return self.axes[int(ir.IntegerAttr(op.attributes["dim"]).value)]
        if op.name == "tensor.extract":
            table = self.environment[op.operands[0]]
            return table[tuple(self.value(index) for index in list(op.operands)[1:])]
        operands = [np.asarray(self.value(operand)) for operand in op.operands]
        if op.name in UNARY:
            return UNARY[op.name](operands[0])
        if op.name in UNSIGNED:
            first, second = (each.view(f"u{each.itemsize}") for each in operands)
            return UNSIGNED[op.name](first, second).view(operands[0].dtype)
        if op.name in BINARY:
            return BINARY[op.name](operands[0], operands[1])
        if op.name in ("arith.uitofp", "arith.extui") and operands[0].dtype.kind == "i":
            operands[0] = operands[0].view(f"u{operands[0].itemsize}")
        if op.name in CASTS:
            return operands[0].astype(_dtype(value.type))
        if op.name == "arith.select":
            return np.where(operands[0], operands[1], operands[2])
        predicate = int(ir.IntegerAttr(op.attributes["predicate"]).value) if "cmp" in op.name else -1
        if op.name == "arith.cmpf":
            return FLOAT_COMPARE[predicate](operands[0], operands[1])
        assert op.name == "arith.cmpi", f"the interpreter has no {op.name}"
        return INTEGER_COMPARE[predicate](operands[0], operands[1])


HANDLERS: dict[str, Callable[[Any, Environment], list[Any]]] = {
    "arith.constant": _constant, "tensor.empty": _empty, "linalg.fill": _fill, "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape, "tensor.extract_slice": _slice, "tensor.concat": _concat, "tensor.pad": _pad,
    "rtensor.operator": _operator, "linalg.generic": _generic,
}  # fmt: skip
