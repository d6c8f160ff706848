"""Whether nodes are written as their operators are defined: attributes, their types, numbers of inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx

from t10.frontend.unsupported import STANDARD_DOMAINS

_PAYLOADS = {
    onnx.AttributeProto.FLOAT: "f",
    onnx.AttributeProto.INT: "i",
    onnx.AttributeProto.STRING: "s",
    onnx.AttributeProto.TENSOR: "t",
    onnx.AttributeProto.GRAPH: "g",
    onnx.AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    onnx.AttributeProto.TYPE_PROTO: "tp",
}
"""The field that holds a value of a type; lists are in fields that may be empty."""

MAX_RANK = 64
"""Most dims of a tensor."""
_BOUNDS = {
    **dict.fromkeys(("axis", "axes", "batch_axis", "time_axis"), (-MAX_RANK, MAX_RANK)),
    "batch_dims": (0, MAX_RANK),
}
"""What attributes that name dims can be. ONNX's inference takes it for granted, and ends the process."""

_TERM = rb"[A-Za-z\s]*(?:\.\.\.[A-Za-z\s]*)?"
_EQUATION = re.compile(_TERM + rb"(?:," + _TERM + rb")*(?:->" + _TERM + rb")?")
"""An equation of Einsum. ONNX's inference does not end at other characters, nor where a term has two ellipses."""


def schema_problems(model: Any) -> Iterator[str]:
    """Yield what does not fit the definitions of operators, in the graph, in bodies of control flow and in functions.

    Operators without a definition in the opset that the model states are not looked at.
    """
    versions = opset_versions(model)
    waiting: list[tuple[Any, dict[str, int]]] = [(model.graph.node, versions)]
    waiting += [(function.node, versions | opset_versions(function)) for function in model.functions]
    own = {(function.domain, function.name) for function in model.functions}
    while waiting:
        nodes, known = waiting.pop()
        for node in nodes:
            for attribute in node.attribute:
                waiting.extend(
                    (graph.node, known) for graph in (attribute.g, *attribute.graphs) if graph.node
                )
            schema = None if (node.domain, node.op_type) in own else schema_of(node, known)
            if schema is not None:
                yield from _problems(node, schema)


def opset_versions(model: Any) -> dict[str, int]:
    """Return the versions of operators that a model states, by domain; that of ONNX's own is empty."""
    return {"" if e.domain in STANDARD_DOMAINS else e.domain: e.version for e in model.opset_import}


def schema_of(node: Any, versions: Mapping[str, int]) -> Any:
    """Return the definition of a node's operator in the opset of its domain, None where there is none."""
    domain = "" if node.domain in STANDARD_DOMAINS else node.domain
    version = versions.get(domain, 0)
    if not 0 < version < 2**31 or not onnx.defs.has(node.op_type, version, domain):
        return None
    return onnx.defs.get_schema(node.op_type, version, domain)


def _problems(node: Any, schema: Any) -> Iterator[str]:
    title = f"{node.op_type[:80]} node {(node.name or next(iter(node.output), ''))[:80]!r}"
    for what, names, least, most in (
        ("inputs", node.input, schema.min_input, schema.max_input),
        ("outputs", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            yield f"{title} has {len(names)} {what} (expected {least} to {most})"
    given = set[str]()
    for attribute in node.attribute:
        given.add(attribute.name)
        formal = schema.attributes.get(attribute.name)
        if formal is None:
            yield f"{title} has the attribute {attribute.name[:80]!r}, which its operator has not"
            return
        expected = int(formal.type.value)
        if attribute.ref_attr_name:
            continue
        payload = _PAYLOADS.get(attribute.type, "")
        if attribute.type != expected or (payload in ("t", "g", "tp") and not attribute.HasField(payload)):
            kinds = onnx.AttributeProto.AttributeType
            found = kinds.Name(attribute.type) if attribute.type in kinds.values() else str(attribute.type)
            yield f"{title} has {attribute.name!r} of type {found.lower()} (expected {kinds.Name(expected).lower()})"
        yield from _out_of_bounds(title, attribute)
        if node.op_type == "Einsum" and not _EQUATION.fullmatch(attribute.s):
            yield f"{title} has the equation {attribute.s[:40]!r} (expected terms of letters and one '...')"
    counts = [attribute.i for attribute in node.attribute if attribute.name == "num_outputs"]
    if node.op_type == "Split" and any(count != len(node.output) for count in counts):
        # ONNX's inference takes this for granted, and ends the process or its memory.
        yield f"{title} has {len(node.output)} outputs (expected num_outputs, {counts[0]})"
    for name in sorted(schema.attributes):
        if schema.attributes[name].required and name not in given:
            yield f"{title} lacks the attribute {name!r}"


def _out_of_bounds(title: str, attribute: Any) -> Iterator[str]:
    """Yield the first number of an attribute that names a dim which no tensor has."""
    if attribute.name not in _BOUNDS:
        return
    least, most = _BOUNDS[attribute.name]
    for number in (attribute.i, *attribute.ints):
        if not least <= number <= most:
            yield f"{title} has {attribute.name!r} {number} (expected {least} to {most})"
            return
