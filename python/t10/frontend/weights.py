"""Weights become inputs of the graph: their data stays out of the IR, and small constants stay so that shapes fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.errors import InputError, UnsupportedOpError
from t10.frontend.external import mapped_array
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.read_names import names_read, names_read_by

MAX_FLOAT_CONSTANT = 16
"""Largest number of elements of a floating-point constant that stays in the IR."""
MAX_OTHER_CONSTANT = 512
"""Largest number of elements of an integer or boolean constant that stays in the IR (indices, shapes, masks)."""

_FLOATS = frozenset(
    {
        onnx.TensorProto.FLOAT,
        onnx.TensorProto.FLOAT16,
        onnx.TensorProto.DOUBLE,
        onnx.TensorProto.BFLOAT16,
    }
)


@dataclass
class Weights:
    """The weights found so far: every name in order of discovery, and the values that exist.

    `mapped` holds values that are mapped into memory and belong to initializers that are not lifted yet; `bits` those
    of numbers in bytes that need fewer than 8.
    """

    names: list[str] = field(default_factory=list[str])
    values: dict[str, NDArray[np.generic]] = field(default_factory=dict[str, NDArray[np.generic]])
    mapped: dict[str, NDArray[np.generic]] = field(default_factory=dict[str, NDArray[np.generic]])
    bits: dict[str, int] = field(default_factory=dict[str, int])


def stays_constant(data_type: int, shape: tuple[int, ...]) -> bool:
    """Return whether a tensor of an ONNX data type and a shape is small enough to be a constant of the IR."""
    limit = MAX_FLOAT_CONSTANT if data_type in _FLOATS else MAX_OTHER_CONSTANT
    return prod(shape) <= limit


def load_external(model: Any, folder: Path, weights: Weights, own: Path | None = None) -> None:
    """Find external data in `folder` or the model's own file: large tensors are mapped, what stays constant is read.

    Initializers whose file is absent become weights without values. Raises `InputError` for locations that are refused
    (`t10.frontend.external`), if a file does not hold what it should, or if an absent one holds a shape or index.
    """
    graph = model.graph
    kept: list[Any] = []
    lifted: list[Any] = []
    for tensor in graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            kept.append(tensor)
            continue
        values = mapped_array(tensor, folder, own)
        if values is None:
            _require_not_shape(tensor)
            lifted.append(_as_input(tensor))
            continue
        kept.append(tensor)
        if stays_constant(tensor.data_type, tuple(tensor.dims)):
            _fill(tensor, values)
        else:
            weights.mapped[tensor.name] = values
    _lift(graph, lifted, weights)
    if len(kept) != len(graph.initializer):
        replace_all(graph.initializer, kept)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_location == onnx.TensorProto.EXTERNAL:
                name = attribute.t.name or next(iter(node.output), node.name)
                values = mapped_array(attribute.t, folder, own)
                if values is None:
                    raise InputError(
                        f"the external data of constant {name!r} is absent (expected beside the model file)"
                    )
                if node.op_type == "Constant" and not stays_constant(attribute.t.data_type, values.shape):
                    weights.mapped[node.output[0]] = values
                else:
                    _fill(attribute.t, values)


def _fill(tensor: Any, values: NDArray[np.generic]) -> None:
    """Write values into a tensor that had them elsewhere."""
    tensor.raw_data = values.tobytes()
    tensor.data_location = onnx.TensorProto.DEFAULT
    del tensor.external_data[:]


def _require_not_shape(tensor: Any) -> None:
    """Raise `InputError` if a tensor without values may decide shapes."""
    is_shape = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    if is_shape and stays_constant(tensor.data_type, tuple(tensor.dims)):
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        raise InputError(
            f"the external data file {location!r} of constant {tensor.name!r} is absent",
            hint="weights may be absent, but shapes and indices may not",
        )


def lift_weights(model: Any, weights: Weights) -> None:
    """Turn every large initializer and constant node into a graph input; the rest of the constants become initializers.

    A weight nothing reads is dropped. An initializer that is also listed as a graph input is no longer listed.
    """
    graph = model.graph
    _constants_to_initializers(graph)
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initializers]
    replace_all(graph.input, inputs)
    read = names_read(graph)
    kept: list[Any] = []
    lifted: list[Any] = []
    for tensor in graph.initializer:
        if tensor.name not in read:
            continue
        if stays_constant(tensor.data_type, tuple(tensor.dims)):
            kept.append(tensor)
            continue
        mapped = weights.mapped.pop(tensor.name, None)
        weights.values[tensor.name] = _to_array(tensor) if mapped is None else mapped
        lifted.append(_as_input(tensor))
    _lift(graph, lifted, weights)
    replace_all(graph.initializer, kept)
    unread = [name for name in weights.names if name not in read]
    for name in unread:
        weights.names.remove(name)
        weights.values.pop(name, None)
    remaining = [value for value in graph.input if value.name not in unread]
    replace_all(graph.input, remaining)


def widen_cast_weights(model: Any, weights: Weights) -> None:
    """Turn, in place, weights of bf16 that only Casts read into f32, which has all values of bf16."""
    graph = model.graph
    others = [node for node in graph.node if node.op_type != "Cast" or node.domain not in ("", "ai.onnx")]
    read = {value.name for value in graph.output} | names_read_by(others)
    cast = frozenset(weights.names) - read
    for value in graph.input:
        kind = value.type.tensor_type
        if value.name in cast and kind.elem_type == onnx.TensorProto.BFLOAT16:
            kind.elem_type = onnx.TensorProto.FLOAT
            if value.name in weights.values:
                weights.values[value.name] = weights.values[value.name].astype(np.float32)


def _as_input(tensor: Any) -> Any:
    return onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))


def _lift(graph: Any, lifted: list[Any], weights: Weights) -> None:
    """Make tensors inputs of the graph, in place of inputs of their names: all at once, as there may be thousands."""
    if not lifted:
        return
    names = [value.name for value in lifted]
    taken = set(names)
    listed = [value for value in graph.input if value.name not in taken]
    replace_all(graph.input, (*listed, *lifted))
    weights.names.extend(names)


def _constants_to_initializers(graph: Any) -> None:
    kept: list[Any] = []
    for node in graph.node:
        if node.op_type != "Constant" or node.domain not in ("", "ai.onnx"):
            kept.append(node)
            continue
        graph.initializer.append(constant_tensor(node))
    if len(kept) == len(graph.node):
        return
    replace_all(graph.node, kept)


def constant_tensor(node: Any) -> Any:
    """Return the tensor of a Constant node, named by its output; raises `UnsupportedOpError` for text."""
    attribute: Any = node.attribute[0] if node.attribute else onnx.AttributeProto(name="nothing")
    kind = attribute.name
    if kind == "value":
        tensor = onnx.TensorProto.FromString(attribute.t.SerializeToString())
        tensor.name = node.output[0]
        return tensor
    arrays: dict[str, Any] = {
        "value_int": lambda: np.array(attribute.i, np.int64),
        "value_ints": lambda: np.array(list(attribute.ints), np.int64),
        "value_float": lambda: np.array(attribute.f, np.float32),
        "value_floats": lambda: np.array(list(attribute.floats), np.float32),
    }
    if kind not in arrays:
        raise UnsupportedOpError(
            f"Constant with {kind} (expected value, value_int(s) or value_float(s))",
            operator=node.name or node.output[0],
        )
    return numpy_helper.from_array(arrays[kind](), node.output[0])


def _to_array(tensor: Any) -> NDArray[np.generic]:
    """Return a tensor's values; raises `InputError` if there are too few or too many bytes."""
    try:
        return np.ascontiguousarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError) as error:
        raise InputError(f"initializer {tensor.name!r} of shape {list(tensor.dims)}: {error}") from error
