"""The facts of an ONNX file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import onnx

from t10.errors import T10Error, UnsupportedOpError
from t10.frontend.contributed import READ
from t10.frontend.onnx_file import read_onnx
from t10.frontend.reach import check_reach
from t10.frontend.rules import MAX_PROBLEMS, broken_rules
from t10.frontend.shapes import has_long_row, one_line, reads_unknown_type, set_shapes
from t10.frontend.unsupported import STANDARD_DOMAINS, any_node, ends_inference, unknown_operators
from t10.inspect.dtypes import bytes_of
from t10.inspect.facts import ExternalFile, GraphFacts, ModelFacts, NodeFacts, Port, WeightFacts

_MAX_ATTRIBUTE_TEXT = 40
_MAX_BODY_DEPTH = 50
_DTYPE_BY_NAME = {
    "FLOAT": "f32", "FLOAT16": "f16", "DOUBLE": "f64", "BFLOAT16": "bf16", "BOOL": "i1", "STRING": "text",
    "INT4": "i4", "INT8": "i8", "INT16": "i16", "INT32": "i32", "INT64": "i64",
    "UINT4": "ui4", "UINT8": "ui8", "UINT16": "ui16", "UINT32": "ui32", "UINT64": "ui64",
    "COMPLEX64": "c64", "COMPLEX128": "c128",
}  # fmt: skip
_NAME_BY_NUMBER = {number: name for name, number in onnx.TensorProto.DataType.items()}


def onnx_facts(file: Path, shapes: Mapping[str, Sequence[int] | int]) -> ModelFacts:
    """Return the facts of a file; raises `InputError` if it holds no ONNX model."""
    model = read_onnx(file)
    problems: list[str] = []
    set_shapes(model, shapes)
    inferred = _inferred(model, problems)
    graph = inferred.graph
    tensors = {tensor.name: tensor for tensor in _constants(graph)}
    ports = [_port(value) for value in (*graph.input, *graph.value_info, *graph.output)]
    values = {port.name: port for port in ports} | {name: _tensor_port(t) for name, t in tensors.items()}
    problems += [node.line() for node in unknown_operators(model, str(file), READ)[:MAX_PROBLEMS]]
    return ModelFacts(
        source=str(file),
        form="ONNX",
        properties=_properties(model),
        functions=tuple((_kind(f.domain, f.name), len(f.node)) for f in model.functions),
        inputs=tuple(_port(value) for value in graph.input if value.name not in tensors),
        outputs=tuple(_port(value) for value in graph.output),
        weights=_weights(list(tensors.values()), file),
        graph=_graph(graph, graph.name, 0),
        values=values,
        weight_names=frozenset(tensors),
        problems=tuple(problems),
    )


def _inferred(model: Any, problems: list[str]) -> Any:
    """Return the model with inferred shapes, as it is where it breaks a rule or inference refuses it; says why."""
    problems += broken_rules(model)
    if problems or any_node(model, ends_inference):
        return model
    try:
        check_reach(model, "")
        if reads_unknown_type(model):
            return model
        plain = onnx.shape_inference.infer_shapes(model)
        return plain if has_long_row(plain) else onnx.shape_inference.infer_shapes(model, data_prop=True)
    except UnsupportedOpError as error:
        problems.append(f"operator {error.operator!r}: {error.message}")
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        problems.append(f"shapes do not fit together: {one_line(error)}")
    return model


def _properties(model: Any) -> tuple[tuple[str, str], ...]:
    opsets = ", ".join(f"{entry.domain or 'ai.onnx'} {entry.version}" for entry in model.opset_import)
    producer = f"{model.producer_name} {model.producer_version}".strip()
    metadata = ", ".join(entry.key for entry in model.metadata_props)
    rows = (
        ("IR version", str(model.ir_version)),
        ("opsets", opsets or "none stated"),
        ("producer", producer or "not stated"),
        ("graph", model.graph.name),
        ("metadata", metadata),
    )
    return tuple((label, text) for label, text in rows if text)


def _constants(graph: Any) -> Iterator[Any]:
    """Yield initializers and the tensors of Constant nodes, named by what they make."""
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant" and node.output and node.attribute and node.attribute[0].HasField("t"):
            tensor = node.attribute[0].t
            yield onnx.TensorProto(
                name=node.output[0],
                dims=tensor.dims,
                data_type=tensor.data_type,
                data_location=tensor.data_location,
                external_data=tensor.external_data,
            )


def _weights(tensors: list[Any], own: Path) -> WeightFacts:
    by_dtype: dict[str, int] = {}
    files: dict[str, int] = {}
    for tensor in tensors:
        port = _tensor_port(tensor)
        n_bytes = bytes_of(port.dtype, max(0, prod(tensor.dims)))
        by_dtype[port.dtype] = by_dtype.get(port.dtype, 0) + n_bytes
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
            if location != own.name:
                files[location] = files.get(location, 0) + n_bytes
    return WeightFacts(
        n_tensors=len(tensors),
        n_parameters=sum(max(0, prod(tensor.dims)) for tensor in tensors),
        n_bytes=sum(by_dtype.values()),
        bytes_by_dtype=tuple(sorted(by_dtype.items())),
        files=tuple(
            ExternalFile(name, size, _state(own.parent, name)) for name, size in sorted(files.items())
        ),
    )


def _state(folder: Path, location: str) -> str:
    """Return whether a file of weights is there, by the rules of who reads it."""
    from t10.frontend.external import external_file

    try:
        return "there" if external_file(folder, location) else "absent"
    except T10Error:
        return "refused"


def _graph(graph: Any, name: str, depth: int) -> GraphFacts:
    return GraphFacts(name, tuple(_node(node, depth) for node in graph.node))


def _node(node: Any, depth: int) -> NodeFacts:
    bodies: list[GraphFacts] = []
    attributes: list[tuple[str, str]] = []
    for attribute in node.attribute:
        if attribute.HasField("g") and depth < _MAX_BODY_DEPTH:
            bodies.append(_graph(attribute.g, attribute.name, depth + 1))
        elif not attribute.graphs:
            attributes.append((attribute.name, _attribute_text(attribute)))
    return NodeFacts(
        name=node.name or next((name for name in node.output if name), ""),
        kind=_kind(node.domain, node.op_type),
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attributes=tuple(attributes),
        bodies=tuple(bodies),
    )


def _attribute_text(attribute: Any) -> str:
    """Return an attribute's value, shortened; tensors as their type."""
    if attribute.HasField("t"):
        return _tensor_port(attribute.t).type_text()
    if attribute.HasField("s"):
        text = attribute.s[:_MAX_ATTRIBUTE_TEXT].decode(errors="replace")
    elif attribute.HasField("i"):
        text = str(attribute.i)
    elif attribute.HasField("f"):
        text = f"{attribute.f:g}"
    else:
        numbers = attribute.ints or attribute.floats
        text = "x".join(
            f"{number:g}" if numbers is attribute.floats else str(number) for number in numbers[:16]
        )
    return text if len(text) < _MAX_ATTRIBUTE_TEXT else f"{text[:_MAX_ATTRIBUTE_TEXT]}..."


def _kind(domain: str, name: str) -> str:
    return name if domain in STANDARD_DOMAINS else f"{domain}.{name}"


def _port(value: Any) -> Port:
    kind = value.type
    what = kind.WhichOneof("value")
    if what is None:
        return Port(value.name, "?", None)
    if what != "tensor_type":
        return Port(value.name, what.removesuffix("_type"), None)
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return Port(value.name, _dtype(tensor.elem_type), None)
    dims = tuple(
        dim.dim_value if dim.HasField("dim_value") else (dim.dim_param or "?") for dim in tensor.shape.dim
    )
    return Port(value.name, _dtype(tensor.elem_type), dims)


def _tensor_port(tensor: Any) -> Port:
    return Port(tensor.name, _dtype(tensor.data_type), tuple(tensor.dims))


def _dtype(number: int) -> str:
    name = _NAME_BY_NUMBER.get(number, f"type {number}")
    if name == "UNDEFINED":
        return "?"
    return _DTYPE_BY_NAME.get(name, name.lower().replace("float", "f"))
