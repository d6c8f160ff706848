"""What an operator or a graph should compute: numpy over the whole iteration space, with no plan in sight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import numpy_dtype
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph
from t10.core.scalar import ScalarFunction, parse_constant

Array = NDArray[Any]

BINARY: dict[str, Any] = {
    "arith.addi": np.add,
    "arith.addf": np.add,
    "arith.subi": np.subtract,
    "arith.subf": np.subtract,
    "arith.muli": np.multiply,
    "arith.mulf": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.maximumf": np.maximum,
    "arith.maxnumf": np.fmax,
    "arith.minsi": np.minimum,
    "arith.minimumf": np.minimum,
}
COMBINE: dict[str, tuple[Any, Any]] = {
    "sum": (np.add, 0),
    "max": (np.maximum, None),
    "min": (np.minimum, None),
    "maxnum": (np.fmax, None),
    "minnum": (np.fmin, None),
    "none": (None, 0),
}


def evaluate(function: ScalarFunction, values: list[Array], point: Array) -> Array:
    """Return a scalar function of arrays of values; `point` has the index of every axis per element."""
    known = list(values)
    for op in function.ops:
        dtype = numpy_dtype(op.dtype)
        arguments = [known[number] for number in op.operands]
        if op.opcode == "const":
            result: Array = np.full(point.shape[1:], parse_constant(op.attribute), dtype)
        elif op.opcode == "index":
            result = point[int(op.attribute)]
        elif op.opcode in BINARY:
            result = BINARY[op.opcode](*arguments)
        elif op.opcode in ("arith.extf", "arith.truncf", "arith.extsi", "arith.trunci", "arith.index_cast"):
            result = arguments[0]
        else:
            raise AssertionError(f"the reference does not know {op.opcode}")
        known.append(np.asarray(result).astype(dtype))
    return known[function.result]


def fetch(operand: Operand, array: Array, point: Array) -> Array:
    """Return what every point of the iteration space reads of an operand, its padding outside the tensor."""
    inside = np.ones(point.shape[1:], np.bool_)
    index: list[Array] = []
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        where = np.full(point.shape[1:], dim.offset, np.int64)
        for term in dim.terms:
            where = where + term.coefficient * point[term.axis]
        inside &= (where >= 0) & (where < extent)
        index.append(np.clip(where, 0, extent - 1))
    pad = parse_constant(operand.pad_value) if operand.pad_value else 0
    return np.where(inside, array[tuple(index)], np.array(pad).astype(array.dtype))


def compute(spec: OperatorSpec, values: Mapping[str, Array]) -> Array:
    """Return the result of an operator from the values it reads, by name."""
    point = np.indices(spec.extents).reshape(len(spec.extents), -1)
    read = [fetch(operand, values[operand.name], point) for operand in spec.inputs]
    terms = evaluate(spec.body, read, point).astype(numpy_dtype(spec.acc_dtype))
    counts = np.ones(point.shape[1], np.bool_)
    for selector in spec.selectors:
        counts &= evaluate(selector.index, read, point) == point[selector.axis]
    where = tuple(
        point[dim.terms[0].axis] if dim.terms else np.zeros_like(point[0]) for dim in spec.output.dims
    )
    combine, start = COMBINE[spec.combine]
    if start is None:
        bounds = np.iinfo(terms.dtype) if terms.dtype.kind == "i" else np.finfo(terms.dtype)
        start = bounds.min if spec.combine == "max" else bounds.max
        if terms.dtype.kind == "f":
            start = -np.inf if spec.combine in ("max", "maxnum") else np.inf
    result: Array = np.full(spec.output.shape, start, terms.dtype)
    if combine is None:
        result[where] = terms
    else:
        combine.at(result, tuple(w[counts] for w in where), terms[counts])
    if spec.epilogue is None:
        return result
    return _finished(spec, result, values)


def _finished(spec: OperatorSpec, result: Array, values: Mapping[str, Array]) -> Array:
    """Return the epilogue of the combined values."""
    assert spec.epilogue is not None
    shape = spec.output.shape
    places = np.indices(shape).reshape(len(shape), -1)
    point = np.zeros((len(spec.axes), places.shape[1]), np.int64)
    for dim, place in zip(spec.output.dims, places, strict=True):
        for term in dim.terms:
            point[term.axis] = place
    extra = [fetch(operand, values[operand.name], point) for operand in spec.epilogue_inputs]
    finished = evaluate(spec.epilogue, [result.reshape(-1), *extra], point)
    return finished.astype(numpy_dtype(spec.output.dtype)).reshape(shape)


def view_of(graph: Graph, name: str, values: Mapping[str, Array]) -> Array:
    """Return a value of a graph, through its views."""
    views = {view.name: view for view in graph.views}
    if name not in views:
        return values[name]
    view = views[name]
    sources = [view_of(graph, source, values) for source in view.sources]
    if view.kind == "reshape":
        return sources[0].reshape(view.shape)
    if view.kind == "transpose":
        return sources[0].transpose(view.permutation)
    if view.kind == "concat":
        return np.concatenate(sources, axis=view.axis)
    if view.kind == "slice":
        index = np.ix_(
            *(o + s * np.arange(n) for o, s, n in zip(view.offsets, view.strides, view.shape, strict=True))
        )
        return sources[0][index]
    if view.kind == "broadcast":
        extents = [1] * len(view.shape)
        for d, extent in zip(view.dims, sources[0].shape, strict=True):
            extents[d] = extent
        return np.broadcast_to(sources[0].reshape(extents), view.shape)
    widths = [
        (low, n - low - have) for low, n, have in zip(view.low, view.shape, sources[0].shape, strict=True)
    ]
    return np.pad(
        sources[0], widths, constant_values=np.array(parse_constant(view.value)).astype(sources[0].dtype)
    )


def run(graph: Graph, given: Mapping[str, Array]) -> dict[str, Array]:
    """Return the results of a graph by public name; `given` has its inputs and weights by name."""
    values = dict(given)
    for spec in graph.operators:
        read = {o.name: view_of(graph, o.name, values) for o in spec.operands}
        values[spec.output.name] = compute(spec, read)
    return {output.name: view_of(graph, output.value, values) for output in graph.outputs}
