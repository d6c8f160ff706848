"""Static shapes: overrides from the user, ONNX's shape inference, and a clear error for what stays dynamic."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import onnx

from t10.errors import InputError, UnsupportedOpError
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.unsupported import any_node, ends_inference, is_typed_eye, node_location

MOST_EXTENT = (1 << 53) - 1
_MOST_PROPAGATED = 1 << 16
_INFERRED = "t10.inferred"
"""Metadata of an output: which of its dims the file does not state."""
_NO_TENSOR = {
    "sequence": "give or return its elements one by one",
    "optional": "leave it out, or make it a tensor that is always there",
}


def set_shapes(model: Any, shapes: Mapping[str, Sequence[int] | int]) -> None:
    """Write the extents of `shapes` into the graph's inputs, by input name or by dim parameter.

    One extent for a name that is both is the dim's, unless the input has one dim.

    Raises `InputError` for names that are neither, for a wrong rank, and for an extent that contradicts the model.
    """
    inputs = {value.name: value for value in _real_inputs(model)}
    extent_by_param: dict[str, int] = {}
    params = {dim.dim_param for value in model.graph.input for dim in _dims(value) if dim.dim_param}
    for name, wanted in shapes.items():
        extents = (wanted,) if isinstance(wanted, int) else tuple(wanted)
        # An input without elements is a constant; only its type counts.
        if any(extent < 0 for extent in extents):
            raise InputError(f"--shape {name}: extents must be at least 0, found {_text(extents)}")
        if any(extent > MOST_EXTENT for extent in extents):
            raise InputError(
                f"--shape {name}: extents must be at most {MOST_EXTENT:,}, found {_text(extents)}"
            )
        is_dim = name in params and len(extents) == 1
        if name in inputs and not (is_dim and len(_dims(inputs[name])) != 1):
            _set_input(inputs[name], extents, extent_by_param)
        elif is_dim:
            _bind(extent_by_param, name, extents[0])
        else:
            listed = ", ".join(f"{value.name}[{_shape_text(value)}]" for value in _real_inputs(model))
            raise InputError(
                f"--shape {name}: the model has no such input or symbolic dim (inputs: {listed})"
            )
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        for dim in _dims(value):
            if dim.dim_param in extent_by_param:
                dim.dim_value = extent_by_param[dim.dim_param]


def _set_input(value: Any, extents: tuple[int, ...], extent_by_param: dict[str, int]) -> None:
    dims = _dims(value)
    if not value.type.tensor_type.HasField("shape"):
        for _ in extents:
            value.type.tensor_type.shape.dim.add()
        dims = _dims(value)
    if len(dims) != len(extents):
        raise InputError(
            f"--shape {value.name}={_text(extents)} has {len(extents)} dims "
            f"(expected {len(dims)}: {_shape_text(value)})"
        )
    for dim, extent in zip(dims, extents, strict=True):
        if dim.HasField("dim_value") and dim.dim_value != extent:
            raise InputError(
                f"--shape {value.name}={_text(extents)} contradicts the model, which says {_shape_text(value)}"
            )
        if dim.dim_param:
            _bind(extent_by_param, dim.dim_param, extent)
        else:
            dim.dim_value = extent


def _bind(extent_by_param: dict[str, int], param: str, extent: int) -> None:
    if extent_by_param.setdefault(param, extent) != extent:
        raise InputError(
            f"--shape gives the symbolic dim {param!r} two extents, {extent_by_param[param]} and {extent}"
        )


def infer_shapes(model: Any, source: str, *, strict: bool = False) -> Any:
    """Return the model with the shape of every value it can infer; those the file states are inferred anew.

    `strict` raises `InputError` if an operator's inputs do not fit together; without it their result stays unknown, as
    it may while parts of the model are not yet static. `UnsupportedOpError` for what ends the process in inference.
    """
    del model.graph.value_info[:]
    _forget_inferred(model)
    is_open = {value.name: _open_dims(value) for value in model.graph.output}
    if any_node(model, ends_inference):
        raise UnsupportedOpError(
            f"{source}: operators on text or tables inside functions or bodies are not lowered"
        )
    try:
        if reads_unknown_type(model):
            raise UnsupportedOpError(f"{source}: EyeLike reads what no operator gives a type")
        plain = onnx.shape_inference.infer_shapes(model)
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=not has_long_row(plain))
        if strict:
            # Without data: its propagation takes every tensor of one dim for a shape, and refuses outer sums of two.
            inferred = onnx.shape_inference.infer_shapes(inferred, check_type=True, strict_mode=True)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise InputError(f"{source}: shapes do not fit together: {one_line(error)}") from error
    for value in inferred.graph.output:
        if is_open[value.name]:
            value.metadata_props.add(key=_INFERRED, value=is_open[value.name])
    return inferred


def _open_dims(value: Any) -> str:
    """Return which dims of a tensor have no extent, by number; `all` where it has no shape."""
    if not value.type.HasField("tensor_type"):
        return ""
    if not value.type.tensor_type.HasField("shape"):
        return "all"
    return " ".join(str(i) for i, dim in enumerate(_dims(value)) if not dim.HasField("dim_value"))


def settle(output: Any, shape: tuple[int, ...]) -> None:
    """Say for good, in place, which extents an output has where the file does not state them."""
    kind = output.type.tensor_type
    if not kind.HasField("shape"):
        kind.shape.SetInParent()
        for _ in shape:
            kind.shape.dim.add()
    for dim, extent in zip(_dims(output), shape, strict=False):
        if not dim.HasField("dim_value"):
            dim.dim_value = extent
    del output.metadata_props[:]


def _forget_inferred(model: Any) -> None:
    """Take back what only inference says of outputs: of some operators it is wrong until they are written otherwise."""
    for value in model.graph.output:
        for entry in [each for each in value.metadata_props if each.key == _INFERRED]:
            if entry.value == "all":
                value.type.tensor_type.ClearField("shape")
            open_dims = set(entry.value.split())
            for i, dim in enumerate(_dims(value)):
                if str(i) in open_dims:
                    dim.ClearField("dim_value")
            value.metadata_props.remove(entry)


def reads_unknown_type(model: Any) -> bool:
    """Return whether an EyeLike that states its own type may read a value without one, which ends the process."""
    eyes = [node.output[0] for node in model.graph.node if is_typed_eye(node) and node.output]
    if not eyes:
        return any_node(model, is_typed_eye)
    rest = onnx.ModelProto.FromString(model.SerializeToString())
    kept = [node for node in rest.graph.node if not is_typed_eye(node)]
    replace_all(rest.graph.node, kept)
    if any_node(rest, is_typed_eye):
        return True
    graph = onnx.shape_inference.infer_shapes(rest).graph
    typed = {value.name for value in (*graph.input, *graph.value_info) if value.type.WhichOneof("value")}
    typed |= {tensor.name for tensor in graph.initializer}
    return any(is_typed_eye(node) and node.input[0] not in typed for node in model.graph.node)


def has_long_row(model: Any) -> bool:
    """Return whether a value of one dim is so long that ONNX must not propagate data: it keeps a record per element."""
    values = (*model.graph.input, *model.graph.value_info, *model.graph.output)
    longest = (dims[0].dim_value for dims in map(_dims, values) if len(dims) == 1)
    tensors = (tensor.dims[0] for tensor in model.graph.initializer if len(tensor.dims) == 1)
    return max((*longest, *tensors), default=0) > _MOST_PROPAGATED


def one_line(error: Exception) -> str:
    """Return an error's text on one line of bounded length: ONNX's own may quote whole attributes."""
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:297]}..."


def check_static_inputs(model: Any, weights: Collection[str], source: str) -> None:
    """Raise `InputError` for the first input with a dim that is not a number, naming it, its place and the remedy."""
    for value in model.graph.input:
        if value.name in weights:
            continue
        try:
            _check_value(value, "input")
        except InputError as error:
            error.location = node_location(value, source)
            raise


def check_static_outputs(model: Any) -> None:
    """Raise `InputError` for the first output with a dim that is not a number, naming it.

    One that is a constant gets its shape, in place: it is no longer the result of an operator, from which ONNX infers.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for value in model.graph.output:
        kind, tensor = value.type.tensor_type, constants.get(value.name)
        if tensor is not None:
            kind.shape.Clear()
            kind.shape.SetInParent()
            for extent in tensor.dims:
                kind.shape.dim.add().dim_value = extent
        _check_value(value, "output")


def _check_value(value: Any, what: str) -> None:
    if not value.type.HasField("tensor_type"):
        found = (value.type.WhichOneof("value") or "").removesuffix("_type").replace("_", " ")
        raise InputError(
            f"{what} {value.name!r} {f'is of type {found}' if found else 'has no type'} (expected a tensor)",
            hint=_NO_TENSOR.get(found),
        )
    if not value.type.tensor_type.HasField("shape"):
        raise InputError(
            f"{what} {value.name!r} has no shape (expected static extents)",
            hint=f"give them with --shape {value.name}=1x128" if what == "input" else None,
        )
    for i, dim in enumerate(_dims(value)):
        if dim.HasField("dim_value") and dim.dim_value >= 1:
            continue
        found = (
            repr(dim.dim_param)
            if dim.dim_param
            else (str(dim.dim_value) if dim.HasField("dim_value") else "unknown")
        )
        example = "x".join(str(max(1, d.dim_value)) for d in _dims(value))
        remedy = f"give it with --shape {value.name}={example}" + (
            f" or --shape {dim.dim_param}=1" if dim.dim_param else ""
        )
        if what == "output":
            remedy = (
                "it has no elements: leave it out of the model"
                if dim.HasField("dim_value")
                else "the extents of the inputs do not determine it"
            )
        raise InputError(
            f"dim {i} of {what} {value.name!r} is {found} (expected a number, at least 1)", hint=remedy
        )


def _real_inputs(model: Any) -> list[Any]:
    constants = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in constants]


def _dims(value: Any) -> Any:
    return value.type.tensor_type.shape.dim


def _shape_text(value: Any) -> str:
    if not value.type.tensor_type.HasField("shape"):
        return "?"
    return "x".join(
        dim.dim_param or (str(dim.dim_value) if dim.HasField("dim_value") else "?") for dim in _dims(value)
    )


def _text(extents: Sequence[int]) -> str:
    return "x".join(map(str, extents))


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Return (name, extents) of one `--shape` option, `name=1x128` or `batch=1`; raises `InputError` if malformed."""
    name, equals, extents = text.rpartition("=")
    parts = extents.split("x")
    if not equals or not name or not all(part.isdigit() for part in parts):
        raise InputError(f"--shape {text!r} is malformed (expected name=1x128 or symbolic_dim=1)")
    return name, tuple(int(part) for part in parts)


def parse_shapes(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Return extents by name of several `--shape` options; raises `InputError` for one given twice or malformed."""
    shapes: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, extents = parse_shape(text)
        if name in shapes:
            raise InputError(f"--shape {name} is given twice")
        shapes[name] = extents
    return shapes
