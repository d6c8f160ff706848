"""Which nodes of a model cannot be lowered, and why: all of them in one message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import onnx

from t10.dialect.location import location_text
from t10.dialect.mlir import walk
from t10.errors import UnsupportedOpError
from t10.frontend.unsupported import TEXT_HINT, UnsupportedNode, refuse, unsupported

Accepts = Callable[[Any], str]
"""Returns why a model of one node cannot be lowered, as words that follow its operator; empty if it can."""

_MAX_TRIALS = 1000
_PLANNABLE = frozenset({"builtin", "func", "arith", "math", "tensor", "linalg"})
_NUMBERS = frozenset(
    {
        *(onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE, onnx.TensorProto.BOOL),
        *(onnx.TensorProto.INT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64),
        *(onnx.TensorProto.UINT8, onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64),
    }
)
"""Element types that can be planned."""
_ILLEGAL = re.compile(r"failed to legalize operation '")
_STATIC_HINT = "every shape must be known before the model runs"


def refuse_unsupported(
    model: Any,
    source: str,
    refused: Sequence[UnsupportedNode],
    accepts: Accepts,
    error: Exception | None = None,
) -> NoReturn:
    """Raise `UnsupportedOpError` that names every node that cannot be lowered, those `refused` before among them.

    Called when the lowering of the whole model failed with `error`, or cannot be tried. What remains is lowered node by
    node; nodes that differ only in names are tried once.
    """
    found = [*refused, *without_types(model, source)]
    found += _refused_alone(model, source, {node.outputs for node in found}, accepts)
    if found:
        refuse(found, len(model.graph.node) + len(refused), source)
    raise UnsupportedOpError(
        f"the model cannot be lowered to linalg: {reason_of(str(error))}",
        location=source,
        hint="every node can be lowered alone; how they are combined cannot",
    ) from error


def without_types(model: Any, source: str) -> list[UnsupportedNode]:
    """Return the nodes that are the first to make something of an unknown type or shape, or of a type not planned."""
    kinds = _kinds(model.graph)
    read = {name for node in model.graph.node for name in node.input}
    read |= {value.name for value in model.graph.output}
    found = [*_wrong_inputs(model.graph, source), *_wrong_constants(model.graph, source)]
    for node in model.graph.node:
        if any(name and _trouble(kinds.get(name)) for name in node.input):
            continue
        for name in node.output:
            trouble = _trouble(kinds.get(name)) if name and name in read else None
            if trouble is not None:
                found.append(unsupported(node, source, f"makes {name!r}{trouble[0]}", trouble[1]))
                break
    return found


def _wrong_constants(graph: Any, source: str) -> list[UnsupportedNode]:
    """Return the constants of types that are not planned."""
    wrong = [(tensor.name, _trouble(tensor)) for tensor in graph.initializer]
    return [
        UnsupportedNode(name, "constant", source, f"is{trouble[0]}", trouble[1], (name,))
        for name, trouble in wrong
        if trouble is not None
    ]


def _wrong_inputs(graph: Any, source: str) -> list[UnsupportedNode]:
    """Return the inputs of types that are not planned; those without a type are what nodes made that were taken out."""
    found: list[UnsupportedNode] = []
    for value in graph.input:
        number = value.type.tensor_type.elem_type
        if number and number not in _NUMBERS:
            what, hint = _wrong_type(number)
            found.append(UnsupportedNode(value.name, "input", source, f"is{what}", hint, (value.name,)))
    return found


def leftovers(module: Any) -> dict[str, str]:
    """Return the operations that are not linalg on tensors (of a sort, a loop) by where they come from."""
    found: dict[str, str] = {}
    for op in walk(module):
        if op.operation.name.partition(".")[0] not in _PLANNABLE:
            found.setdefault(location_text(op.operation.location), op.operation.name)
    return found


def reason_of(text: str) -> str:
    """Return the part of MLIR's diagnostics that says what failed, in one short line."""
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    chosen = lines[0] if lines else " ".join(text.split())
    message = chosen.rpartition("error:")[2].strip()
    message = message.split(" note:", 1)[0]
    if _ILLEGAL.search(message):
        return "torch-mlir has no lowering for its attributes, types or shapes"
    return message if len(message) <= 160 else f"{message[:157]}..."


def _kinds(graph: Any) -> dict[str, Any]:
    """Return the types of values by name, as `TypeProto` or, for constants, `TensorProto`."""
    values = (*graph.input, *graph.value_info, *graph.output)
    return {value.name: value.type for value in values} | {
        tensor.name: tensor for tensor in graph.initializer
    }


def _trouble(kind: Any) -> tuple[str, str] | None:
    """Return what is wrong with the type of a value, and what would help; None if it can be planned."""
    unknown = (
        " of unknown type and shape",
        "ONNX's shape inference does not know the operator; expand it before export",
    )
    if kind is None:
        return unknown
    if isinstance(kind, onnx.TensorProto):
        return None if kind.data_type in _NUMBERS else _wrong_type(kind.data_type)
    what = kind.WhichOneof("value")
    if what is None or (what == "tensor_type" and not kind.tensor_type.elem_type):
        return unknown
    if what != "tensor_type":
        return f", a {what.removesuffix('_type').replace('_', ' ')}", "only tensors can be planned"
    if kind.tensor_type.elem_type not in _NUMBERS:
        return _wrong_type(kind.tensor_type.elem_type)
    if not _is_static(kind.tensor_type):
        return ", whose shape depends on data or is not known", _STATIC_HINT
    return None


def _wrong_type(number: int) -> tuple[str, str]:
    names = {value: name for name, value in onnx.TensorProto.DataType.items()}
    name = names.get(number, str(number)).lower()
    hint = {"string": TEXT_HINT, "bfloat16": "--bf16 f32 or --bf16 f16 computes it in another type"}.get(
        name, "cast it to one of these before the export"
    )
    return (
        f" of element type {name} (expected float16, float, double, int8 to int64, uint8 to uint64 or bool)",
        hint,
    )


def _is_static(kind: Any) -> bool:
    return bool(kind.HasField("shape")) and all(dim.HasField("dim_value") for dim in kind.shape.dim)


def _refused_alone(
    model: Any, source: str, known: set[tuple[str, ...]], accepts: Accepts
) -> list[UnsupportedNode]:
    """Return the nodes with types and shapes, but for those `known`, that are not accepted alone."""
    kinds = _kinds(model.graph)
    verdicts: dict[bytes, str] = {}
    found: list[UnsupportedNode] = []
    for node in model.graph.node:
        names = [name for name in (*node.input, *node.output) if name]
        read = [name for name in names if name in kinds or name in node.input]
        if tuple(node.output) in known or any(_trouble(kinds.get(name)) for name in read):
            continue
        single = _alone(model, node)
        key = _signature(single)
        if key not in verdicts and len(verdicts) < _MAX_TRIALS:
            verdicts[key] = accepts(single)
        if verdicts.get(key):
            found.append(unsupported(node, source, verdicts[key]))
    return found


def _alone(model: Any, node: Any) -> Any:
    """Return a model of one node, with the constants it reads."""
    graph = model.graph
    known = {value.name: value for value in (*graph.input, *graph.value_info, *graph.output)}
    constants = [tensor for tensor in graph.initializer if tensor.name in node.input]
    fixed = {tensor.name for tensor in constants}
    inputs = [
        known[name] for name in dict.fromkeys(node.input) if name and name not in fixed and name in known
    ]
    outputs = [known[name] for name in node.output if name and name in known]
    single = onnx.helper.make_graph([node], "node", inputs, outputs, initializer=constants)
    return onnx.helper.make_model(single, opset_imports=list(model.opset_import), ir_version=model.ir_version)


def _signature(single: Any) -> bytes:
    """Return what decides whether a model of one node is lowered: everything but the names."""
    copy = onnx.ModelProto.FromString(single.SerializeToString())
    names: dict[str, str] = {"": ""}
    graph = copy.graph
    for node in graph.node:
        node.name = node.doc_string = ""
        del node.metadata_props[:]
        for row in (node.input, node.output):
            for i, name in enumerate(row):
                row[i] = names.setdefault(name, f"v{len(names)}")
    for value in (*graph.input, *graph.output, *graph.initializer):
        value.name = names.get(value.name, "")
    return copy.SerializeToString(deterministic=True)
