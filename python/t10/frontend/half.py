"""`--dtype fp16`: a model as if it had been exported in half precision. `--bf16`: one of bf16 in f32 or f16.

Every f32, f64 and bf16 tensor becomes f16, or every bf16 tensor alone f32 or f16, inputs and outputs included; names
stay. Where an operator takes no f16 (the scales of a Resize) it keeps what it takes: constants stay as they are, and
casts go around computed values. What ONNX itself computes in another type (`stash_type` of a LayerNormalization) stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import inliner, numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.schemas import opset_versions, schema_of
from t10.frontend.shapes import infer_shapes
from t10.frontend.weights import Weights

_T = onnx.TensorProto


@dataclass(frozen=True, slots=True)
class Change:
    """Element types that become another one."""

    kinds: frozenset[int]
    to: int

    def array(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values in the other type."""
        return half_array(values) if self.to == _T.FLOAT16 else values.astype(np.float32)


CHANGES: dict[str, Change] = {
    "fp16": Change(frozenset({_T.FLOAT, _T.DOUBLE, _T.BFLOAT16}), _T.FLOAT16),
    "bf16=f32": Change(frozenset({_T.BFLOAT16}), _T.FLOAT),
    "bf16=f16": Change(frozenset({_T.BFLOAT16}), _T.FLOAT16),
}
"""What `dtype` asks for, by its text."""
_TEXT = {_T.FLOAT: "tensor(float)", _T.DOUBLE: "tensor(double)", _T.BFLOAT16: "tensor(bfloat16)"}
_TARGET_TEXT: dict[int, str] = {_T.FLOAT: "tensor(float)", _T.FLOAT16: "tensor(float16)"}
_TYPE_ATTRIBUTES = frozenset({"to", "dtype", "output_dtype", "output_datatype"})
_FLOAT_ATTRIBUTES = frozenset({"value_float", "value_floats"})
LARGEST = float(np.finfo(np.float16).max)


def change_floats(model: Any, weights: Weights, source: str, change: Change) -> Any:
    """Return the model with other floats, and change the values in `weights` so; functions are inlined."""
    if model.functions:
        model = infer_shapes(inliner.inline_local_functions(model), source)
    versions = opset_versions(model)
    _convert_graph(model.graph, change, versions, {})
    for name, values in list(weights.values.items()):
        if onnx.helper.np_dtype_to_tensor_dtype(values.dtype) in change.kinds:
            weights.values[name] = change.array(values)
    return model


def half_array(values: NDArray[Any]) -> NDArray[np.float16]:
    """Return values rounded to f16; finite ones beyond its range become the largest it has, infinities stay."""
    wide = values.astype(np.float32) if values.dtype.itemsize < 4 else values
    limited = np.clip(wide, -LARGEST, LARGEST)
    with np.errstate(over="ignore"):
        return np.where(np.isinf(wide), wide, limited).astype(np.float16)


def _convert_graph(graph: Any, change: Change, versions: Mapping[str, int], outer: Mapping[str, int]) -> None:
    """Convert a graph and those inside its nodes in place; `outer` are the element types of values around it."""
    values = (*graph.input, *graph.value_info, *graph.output)
    kinds = (
        dict(outer)
        | {v.name: v.type.tensor_type.elem_type for v in values}
        | {tensor.name: tensor.data_type for tensor in graph.initializer}
    )
    for value in values:
        if value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in change.kinds:
            value.type.tensor_type.elem_type = change.to
    constants = {tensor.name: tensor for tensor in graph.initializer}
    kept: dict[str, Any] = {}
    nodes: list[Any] = []
    for node in graph.node:
        nodes.extend(_converted(node, change, versions, kinds, constants, kept))
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _convert_graph(inner, change, versions, kinds)
    for tensor in graph.initializer:
        if tensor.data_type in change.kinds:
            _change_tensor(tensor, change)
    graph.initializer.extend(kept.values())
    replace_all(graph.node, nodes)


def _converted(
    node: Any,
    change: Change,
    versions: Mapping[str, int],
    kinds: Mapping[str, int],
    constants: Mapping[str, Any],
    kept: dict[str, Any],
) -> list[Any]:
    """Return what stands for a node: itself, with casts around it where it takes or makes none of the other type."""
    _convert_attributes(node, change)
    schema = schema_of(node, versions)
    if schema is None:
        return [node]
    before: list[Any] = []
    for i, name in enumerate(node.input):
        kind = kinds.get(name, 0)
        if kind not in change.kinds or _takes(change.to, schema, schema.inputs, i):
            continue
        node.input[i] = f"{name}.wide"
        if name in constants:
            wide = onnx.TensorProto.FromString(constants[name].SerializeToString())
            wide.name = f"{name}.wide"
            kept[name] = wide
        else:
            made = f"{name}.{node.output[0]}.wide"
            before.append(onnx.helper.make_node("Cast", [name], [made], name=made, to=kind))
            node.input[i] = made
    behind: list[Any] = []
    for i, name in enumerate(node.output):
        if name and kinds.get(name, 0) in change.kinds and not _takes(change.to, schema, schema.outputs, i):
            node.output[i] = f"{name}.wide"
            behind.append(
                onnx.helper.make_node("Cast", [node.output[i]], [name], name=f"{name}.half", to=change.to)
            )
    return [*before, node, *behind]


def _takes(kind: int, schema: Any, formals: Any, i: int) -> bool:
    """Return whether a type is among those of an input or output; the last formal may stand for many."""
    if not formals:
        return True
    formal = formals[min(i, len(formals) - 1)]
    allowed = next(
        (c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == formal.type_str),
        [formal.type_str],
    )
    return _TARGET_TEXT[kind] in allowed or not set(_TEXT.values()) & set(allowed)


def _convert_attributes(node: Any, change: Change) -> None:
    """Turn element types and tensors that a node states into the other type."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in change.kinds:
            attribute.i = change.to
        elif attribute.HasField("t") and attribute.t.data_type in change.kinds:
            _change_tensor(attribute.t, change)
        elif _T.FLOAT in change.kinds and node.op_type == "Constant" and attribute.name in _FLOAT_ATTRIBUTES:
            numbers = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            half = numpy_helper.from_array(half_array(np.array(numbers, np.float32)), "value")
            attribute.CopyFrom(onnx.helper.make_attribute("value", half))


def _change_tensor(tensor: Any, change: Change) -> None:
    """Round the values of a constant."""
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(change.array(values)), tensor.name))
