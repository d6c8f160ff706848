"""Which nodes of a model cannot be lowered, and why: all of them in one message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import onnx

from t10.dialect.location import location_text
from t10.dialect.mlir import walk
from t10.errors import UnsupportedOpError

_MAX_NAMED = 20
_PLANNABLE = frozenset({"builtin", "func", "arith", "math", "tensor", "linalg"})


def refuse_unsupported(model: Any, error: Exception, accepts: Callable[[Any], str]) -> NoReturn:
    """Raise `UnsupportedOpError` that names every node which `accepts` refuses alone (it returns a reason or "").

    Called after the lowering of the whole model failed with `error`. Nodes that differ only in names are tried once.
    """
    verdicts: dict[bytes, str] = {}
    refused: list[tuple[Any, str]] = []
    typed = _typed_names(model.graph)
    for node in model.graph.node:
        if any(name and name not in typed for name in node.input):
            continue
        single = _alone(model, node)
        key = _signature(single)
        if key not in verdicts:
            verdicts[key] = accepts(single)
        if verdicts[key]:
            refused.append((node, _reason(verdicts[key])))
    if not refused:
        raise UnsupportedOpError(
            f"the model cannot be lowered to linalg: {_reason(str(error))}",
            hint="every node can be lowered alone; how they are combined cannot",
        ) from error
    lines = [f"{node.op_type} node {node.name!r}: {reason}" for node, reason in refused[:_MAX_NAMED]]
    if len(refused) > _MAX_NAMED:
        lines.append(f"and {len(refused) - _MAX_NAMED} more")
    kinds = ", ".join(sorted({node.op_type for node, _ in refused}))
    raise UnsupportedOpError(
        f"{len(refused)} of {len(model.graph.node)} nodes cannot be lowered: {'; '.join(lines)}",
        hint=f"export the model without {kinds}, or with another opset",
    ) from error


def refuse_untyped(model: Any) -> None:
    """Raise `UnsupportedOpError` for the first node whose results have no known element type or a dynamic shape."""
    typed = _typed_names(model.graph)
    dynamic = {
        value.name for value in (*model.graph.value_info, *model.graph.output) if not _is_static(value)
    }
    read = {name for node in model.graph.node for name in node.input} | {
        value.name for value in model.graph.output
    }
    for node in model.graph.node:
        for name in node.output:
            if name not in read or not name:
                continue
            if name not in typed:
                raise UnsupportedOpError(
                    f"{node.op_type} node {node.name!r} makes {name!r} of unknown type and shape",
                    hint="ONNX's shape inference does not know the operator; expand it before export",
                )
            if name in dynamic:
                raise UnsupportedOpError(
                    f"{node.op_type} node {node.name!r} makes {name!r}, whose shape depends on data or is not known",
                    hint="every shape must be known before the model runs",
                )


def refuse_leftovers(module: Any) -> None:
    """Raise `UnsupportedOpError` that names every node whose lowering is not linalg on tensors (a sort, a loop)."""
    found: dict[str, str] = {}
    for op in walk(module):
        dialect = op.operation.name.partition(".")[0]
        if dialect not in _PLANNABLE:
            found.setdefault(location_text(op.operation.location), op.operation.name)
    if found:
        listed = "; ".join(f"node {name!r} becomes {kind}" for name, kind in found.items())
        raise UnsupportedOpError(
            f"{len(found)} nodes have no form as tensor expressions: {listed}",
            hint="sorts, scans and data-dependent loops cannot be planned",
        )


def _typed_names(graph: Any) -> set[str]:
    """Return the names of tensors whose element type is known."""
    values = (*graph.input, *graph.value_info, *graph.output)
    named = {value.name for value in values if value.type.tensor_type.elem_type}
    return named | {tensor.name for tensor in graph.initializer}


def _is_static(value: Any) -> bool:
    kind = value.type.tensor_type
    return bool(kind.HasField("shape")) and all(dim.HasField("dim_value") for dim in kind.shape.dim)


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


def _reason(text: str) -> str:
    """Return the part of MLIR's diagnostics that says what failed, in one short line."""
    lines = [line.strip() for line in text.splitlines() if "error:" in line]
    chosen = lines[0] if lines else " ".join(text.split())
    message = chosen.rpartition("error:")[2].strip()
    message = message.split(" note:", 1)[0]
    return message if len(message) <= 160 else f"{message[:157]}..."
