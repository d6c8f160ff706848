"""Values of fewer than 8 bits and of float8: computed in types that hold all of theirs, as the chip has none of these.

    int4, uint4, int2, uint2          -> int8, uint8         one number per byte
    float8 of 4 kinds, float4         -> f16                 every value of them is one of f16
    float8e8m0                        -> f32                 powers of 2 that f16 has not

Inputs, outputs, weights and values in between have the wider type. What makes such a value rounds, saturates or wraps
as ONNX says (`t10.frontend.narrow_casts`), so that no other value gets into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import inliner, numpy_helper

from t10.frontend.narrow_casts import INTEGERS, Writer
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.reading import reading
from t10.frontend.shapes import infer_shapes
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import Weights

_T = onnx.TensorProto
_WIDER = {
    **dict.fromkeys(("INT2", "INT4"), _T.INT8),
    **dict.fromkeys(("UINT2", "UINT4"), _T.UINT8),
    **dict.fromkeys(("FLOAT4E2M1", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ"), _T.FLOAT16),
    **dict.fromkeys(("FLOAT8E5M2", "FLOAT8E5M2FNUZ"), _T.FLOAT16),
    "FLOAT8E8M0": _T.FLOAT,
}
WIDENED: dict[int, int] = {number: _WIDER[name] for name, number in _T.DataType.items() if name in _WIDER}
"""What an element type becomes; the newest are not in every version of onnx."""
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype"})

Array = NDArray[Any]


def widen_types(model: Any, weights: Weights, source: str) -> Any:
    """Return the model with values of few bits in wider types, those in `weights` too; functions are inlined."""
    if not _has_narrow(model):
        return model
    if model.functions:
        model = inliner.inline_local_functions(model)
    weights.bits.update(_few_bits(model, weights))
    copy = type(model)()
    copy.CopyFrom(model)
    _widen_graph(model.graph, infer_shapes(copy, source).graph, {}, {})
    for name in weights.names:
        values = weights.values.get(name)
        if values is not None:
            weights.values[name] = widened(values)
    return model


def _few_bits(model: Any, weights: Weights) -> dict[str, int]:
    """Return the bits of weights that are integers of few."""
    names = frozenset(weights.names)
    kinds = {v.name: v.type.tensor_type.elem_type for v in model.graph.input if v.name in names}
    return {
        name: int(_T.DataType.Name(kind).lstrip("UINT")) for name, kind in kinds.items() if kind in INTEGERS
    }


def widened(values: Array) -> Array:
    """Return values of few bits in the type that holds them; others stay as they are."""
    kind = _kind_of(values.dtype)
    if kind not in WIDENED:
        return values
    return values.astype(np.float32).astype(onnx.helper.tensor_dtype_to_np_dtype(WIDENED[kind]))


def _kind_of(dtype: np.dtype[Any]) -> int:
    """Return ONNX's number of a numpy type; 0 for those that it has not."""
    try:
        return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))
    except (KeyError, ValueError):
        return 0


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and those inside its nodes."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield current
        for node in current.node:
            for attribute in node.attribute:
                waiting.extend(_bodies(attribute))


def _bodies(attribute: Any) -> list[Any]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _has_narrow(model: Any) -> bool:
    """Return whether anything that a model states is of few bits."""
    nodes = [node for function in model.functions for node in function.node]
    for graph in _graphs(model.graph):
        values = (*graph.input, *graph.output, *graph.value_info)
        if any(value.type.tensor_type.elem_type in WIDENED for value in values):
            return True
        if any(tensor.data_type in WIDENED for tensor in graph.initializer):
            return True
        nodes.extend(graph.node)
    return any(
        (attribute.name in _TYPE_ATTRIBUTES and attribute.i in WIDENED)
        or (attribute.HasField("t") and attribute.t.data_type in WIDENED)
        for node in nodes
        for attribute in node.attribute
    )


def _widen_graph(graph: Any, inferred: Any, outer: dict[str, int], shapes: dict[str, Any]) -> None:
    """Widen a graph and those inside its nodes in place; `inferred` is the same graph with types and shapes."""
    kinds, shapes = dict(outer), dict(shapes)
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        kinds[value.name] = value.type.tensor_type.elem_type
        shapes[value.name] = value.type.tensor_type.shape
    for tensor in inferred.initializer:
        kinds[tensor.name] = tensor.data_type
        shapes[tensor.name] = onnx.helper.make_tensor_type_proto(
            tensor.data_type, list(tensor.dims)
        ).tensor_type.shape
    nodes: list[Any] = []
    for node, typed in zip(graph.node, inferred.node, strict=True):
        for attribute, of_typed in zip(node.attribute, typed.attribute, strict=True):
            for inner, of_inner in zip(_bodies(attribute), _bodies(of_typed), strict=True):
                _widen_graph(inner, of_inner, kinds, shapes)
        with reading(node):
            written = _written(node, kinds, shapes)
        if written is None:
            _widen_attributes(node)
            written = [node]
        nodes.extend(written)
    replace_all(graph.node, nodes)
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if value.type.HasField("tensor_type") and kind.elem_type in WIDENED:
            kind.elem_type = WIDENED[kind.elem_type]
    for tensor in graph.initializer:
        _widen_tensor(tensor)


def _written(node: Any, kinds: dict[str, int], shapes: dict[str, Any]) -> list[Any] | None:
    """Return what takes the place of a node that makes values of few bits; None where it only hands them on."""
    if node.domain not in STANDARD_DOMAINS or not node.output:
        return None
    options = {attribute.name: attribute.i for attribute in node.attribute}
    writer = Writer(node, kinds, shapes)
    if node.op_type in ("Cast", "CastLike"):
        kind = options.get("to", 0) if node.op_type == "Cast" else kinds.get(node.input[1], 0)
        if kind not in WIDENED:
            return None
        return writer.cast(kind, WIDENED[kind], saturate=bool(options.get("saturate", 1)))
    if node.op_type == "QuantizeLinear":
        zero = node.input[2] if len(node.input) > 2 else ""
        kind = kinds.get(zero, 0) or options.get("output_dtype", 0)
        return writer.quantized(kind, WIDENED[kind]) if kind in WIDENED else None
    return None


def _widen_attributes(node: Any) -> None:
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _widen_tensor(attribute.t)


def _widen_tensor(tensor: Any) -> None:
    if tensor.data_type in WIDENED:
        tensor.CopyFrom(numpy_helper.from_array(widened(numpy_helper.to_array(tensor)), tensor.name))
