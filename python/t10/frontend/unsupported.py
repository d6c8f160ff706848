"""What of a model cannot be compiled: one record per node, and one error that lists them all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import onnx

from t10.errors import MissingConstantError, UnsupportedOpError
from t10.frontend.protobuf_fields import replace_all

LOCATION_KEY = "t10.location"
"""Where a node of a model stands that was not read from ONNX itself."""

STANDARD_DOMAINS = ("", "ai.onnx")

_MAX_NAMED = 20
_MOST_VERSION = 2**31
_MAX_LISTED = 200
_MAX_REASON = 300

_ENDS_INFERENCE = frozenset(
    {
        *(("", "RegexFullMatch"), ("ai.onnx", "RegexFullMatch"), ("ai.onnx.ml", "DictVectorizer")),
        *(("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "TreeEnsemble")),
    }
)

TEXT_HINT = "keep text on the host: give numbers to the model"
_FUSED_HINT = "export without the fusions of ONNX Runtime (optimization level 0)"
_QUANTISED_HINT = (
    "leave this operator out of the quantisation, or quantise with QuantizeLinear and DequantizeLinear"
)
_OWN_HINT = "ONNX has no such operator: rewrite it with ONNX operators before the export"
_FUSED = frozenset(
    {
        *(
            "Attention",
            "BiasAdd",
            "BiasDropout",
            "BiasGelu",
            "BiasSoftmax",
            "BiasSplitGelu",
            "BitmaskBiasDropout",
        ),
        *(
            "BitmaskDropout",
            "DecoderAttention",
            "DecoderMaskedMultiHeadAttention",
            "DecoderMaskedSelfAttention",
        ),
        *(
            "EmbedLayerNormalization",
            "FastGelu",
            "FusedConv",
            "FusedGemm",
            "FusedMatMul",
            "FusedMatMulActivation",
        ),
        *("GatedRelativePositionBias", "Gelu", "GemmFastGelu", "GroupNorm", "LongformerAttention"),
        *("MultiHeadAttention", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "PackedAttention"),
        *("PackedMultiHeadAttention", "QAttention", "QEmbedLayerNormalization", "QuickGelu"),
        *(
            "RelativePositionBias",
            "RemovePadding",
            "RestorePadding",
            "SkipGroupNorm",
            "SkipLayerNormalization",
        ),
        *("SkipSimplifiedLayerNormalization", "TransposeMatMul"),
    }
)
"""Operators that ONNX Runtime's fusions make of others; exporters write the rest of its own."""
_QUANTISED = ("DynamicQuantize", "MatMulBnb", "MatMulFpQ", "QGemm", "QLinear", "QMoE", "QOrdered")
"""What names of operators begin with that quantisers write."""
_CPU_HINT = "ONNX Runtime made it for this CPU: save the model at optimization level ORT_ENABLE_EXTENDED"
_DOMAIN_HINT = "define it as a function of the model, or rewrite it with ONNX operators before the export"
_OPERATOR_HINT = "rewrite it with other ONNX operators before the export, or try another opset"


VALUES = ("input", "constant")
"""What stands for an operator where a value, and no node, cannot be compiled."""


@dataclass(frozen=True, slots=True)
class UnsupportedNode:
    """A node that cannot be compiled: name, operator, location, why (what follows its operator), what helps.

    Of an input or a constant, `kind` says that it is one.
    """

    name: str
    kind: str
    location: str
    reason: str
    hint: str
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    """Inputs of the model that, were they constants, would make it possible."""

    def line(self) -> str:
        """Return all of it on one line."""
        where = "" if self.kind in VALUES else f"operator {self.name!r}: "
        return f"{self.location}: {where}{self.what()} ({self.hint})"

    def what(self) -> str:
        """Return the operator, or the value and its name, and why it cannot be compiled."""
        name = f" {self.name!r}" if self.kind in VALUES else ""
        return f"{self.kind}{name} {self.reason}"


def unsupported(
    node: Any, source: str, reason: str, hint: str = "", inputs: tuple[str, ...] = ()
) -> UnsupportedNode:
    """Return the record of a node; without a hint, what is known to help for its operator."""
    kind = node.op_type if node.domain in STANDARD_DOMAINS else f"{node.domain}.{node.op_type}"
    short = " ".join(reason.split())
    return UnsupportedNode(
        name=title_of(node),
        kind=kind,
        location=node_location(node, source),
        reason=short if len(short) <= _MAX_REASON else f"{short[: _MAX_REASON - 3]}...",
        hint=hint or hint_of(node),
        outputs=tuple(node.output),
        inputs=inputs,
    )


def title_of(node: Any) -> str:
    """Return the name of a node, that of what it makes if it has none."""
    return str(node.name or next((name for name in node.output if name), ""))


def hint_of(node: Any) -> str:
    """Return what helps where an operator is not supported."""
    if node.domain == "com.microsoft":
        is_quantised = node.op_type.startswith(_QUANTISED)
        return _FUSED_HINT if node.op_type in _FUSED else _QUANTISED_HINT if is_quantised else _OWN_HINT
    if node.domain not in STANDARD_DOMAINS:
        return _CPU_HINT if node.domain == "com.microsoft.nchwc" else _DOMAIN_HINT
    if node.op_type.startswith(("String", "Regex", "Tfidf")):
        return TEXT_HINT
    return _OPERATOR_HINT


def node_location(node: Any, source: str) -> str:
    """Return where a node stands; text that MLIR read from memory is named after the file."""
    found = next((entry.value for entry in node.metadata_props if entry.key == LOCATION_KEY), source)
    return f"{source}{found[1:]}" if found.startswith("-:") else found


def refuse(found: Sequence[UnsupportedNode], n_nodes: int, source: str) -> NoReturn:
    """Raise `UnsupportedOpError` that names every node of `found`, out of `n_nodes`; `details` has a line for each."""
    raise _refusal(found, n_nodes, source)


def _refusal(found: Sequence[UnsupportedNode], n_nodes: int, source: str) -> UnsupportedOpError:
    inputs = tuple(sorted({name for node in found for name in node.inputs}))
    kind = (
        partial(MissingConstantError, inputs=inputs) if all(n.inputs for n in found) else UnsupportedOpError
    )
    first = found[0]
    if len(found) == 1:
        operator = None if first.kind in VALUES else first.name
        return kind(first.what(), operator=operator, location=first.location, hint=first.hint)
    names = [f"{node.kind} {node.name!r}" for node in found[:_MAX_NAMED]]
    lines = [node.line() for node in found[:_MAX_LISTED]]
    if len(found) > _MAX_NAMED:
        names.append(f"and {len(found) - _MAX_NAMED} more")
    if len(found) > _MAX_LISTED:
        lines.append(f"and {len(found) - _MAX_LISTED} more")
    return kind(
        f"{_counted(found, n_nodes)} cannot be lowered: {', '.join(names)}",
        location=source,
        details=tuple(lines),
    )


def _counted(found: Sequence[UnsupportedNode], n_nodes: int) -> str:
    """Return how many nodes of how many, and how many inputs and constants, which are no nodes."""
    parts: list[str] = []
    for kind in VALUES:
        n_values = sum(node.kind == kind for node in found)
        if n_values:
            parts.append(f"{n_values} {kind}" + ("s" if n_values > 1 else ""))
    n_found = sum(node.kind not in VALUES for node in found)
    if n_found:
        parts.insert(0, f"{n_found} of {n_nodes} nodes")
    return " and ".join(parts)


def unknown_operators(
    model: Any, source: str, known: Collection[tuple[str, str]] = ()
) -> list[UnsupportedNode]:
    """Return the nodes whose operator is neither of ONNX in the model's opset nor a function of the model.

    `known` are domain and name of others that are read.
    """
    functions = {(function.domain, function.name) for function in model.functions}
    versions = {entry.domain: entry.version for entry in model.opset_import}
    found: list[UnsupportedNode] = []
    made: set[str] = set()
    for node in model.graph.node:
        is_stated = node.domain in versions or not node.domain
        if (node.domain, node.op_type) in functions or (is_stated and (node.domain, node.op_type) in known):
            continue
        if is_typed_eye(node) and not made.isdisjoint(node.input):
            found.append(unsupported(node, source, "reads what an unknown operator makes"))
            continue
        if ends_inference(node):
            found.append(
                unsupported(node, source, "works on text or tables, which are not lowered", TEXT_HINT)
            )
            continue
        domain = "" if node.domain in STANDARD_DOMAINS else node.domain
        version = versions.get(domain, versions.get(domain or "ai.onnx"))
        if (
            version is not None
            and 0 < version < _MOST_VERSION
            and onnx.defs.has(node.op_type, version, domain)
        ):
            continue
        found.append(unsupported(node, source, _unknown(node, domain, version)))
        made.update(node.output)
    return found


def any_node(model: Any, accepts: Callable[[Any], bool]) -> bool:
    """Return whether a node that is accepted stands in the graph, a function, or a body of control flow of a model."""
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    while waiting:
        for node in waiting.pop():
            if accepts(node):
                return True
            for attribute in node.attribute:
                waiting.extend(graph.node for graph in (attribute.g, *attribute.graphs) if graph.node)
    return False


def ends_inference(node: Any) -> bool:
    """Return whether ONNX's shape inference may end the process at a node: it takes types of inputs for granted."""
    return (node.domain, node.op_type) in _ENDS_INFERENCE


def is_typed_eye(node: Any) -> bool:
    """Return whether a node is an EyeLike that states its type: inference then takes that of its input for granted."""
    return node.op_type == "EyeLike" and any(attribute.name == "dtype" for attribute in node.attribute)


def _unknown(node: Any, domain: str, version: int | None) -> str:
    if domain:
        return f"is of domain {domain!r}, which is not ONNX's, and no function of the model"
    if onnx.defs.has(node.op_type, domain):
        return f"is not in opset {version}, which the model states"
    return f"is no operator of ONNX (known up to opset {onnx.defs.onnx_opset_version()})"


def excise(model: Any, found: Sequence[UnsupportedNode]) -> None:
    """Take nodes out of a graph in place: what they make becomes an input, of the type the file states if it does.

    The rest of the model can then be looked at, so that one run tells everything.
    """
    graph = model.graph
    made = {node.outputs for node in found}
    known = {value.name: value for value in (*graph.value_info, *graph.output)}
    present = {value.name for value in graph.input}
    kept: list[Any] = []
    for node in graph.node:
        if tuple(node.output) not in made:
            kept.append(node)
            continue
        for name in node.output:
            if name and name not in present:
                graph.input.append(known.get(name, onnx.ValueInfoProto(name=name)))
    replace_all(graph.node, kept)
