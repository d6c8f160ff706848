"""Nodes the lowering refuses, rewritten to equal ones it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx


def legalize(model: Any) -> None:
    """Rewrite, in place, every node that has a rule; other nodes stay untouched."""
    nodes: list[Any] = []
    for node in model.graph.node:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        nodes.extend([node] if rule is None else rule(node))
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)


def _without_training_outputs(node: Any) -> list[Any]:
    """Drop trailing outputs that inference never makes (mask of Dropout, statistics of BatchNormalization)."""
    training = next((attribute.i for attribute in node.attribute if attribute.name == "training_mode"), 0)
    if training:
        return [node]
    del node.output[1:]
    return [node]


def _identity(node: Any) -> list[Any]:
    """Inference-time Dropout hands its input through."""
    if any(node.output[1:]):
        return [node]
    return [onnx.helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name)]


_RULES: dict[str, Callable[[Any], list[Any]]] = {
    "BatchNormalization": _without_training_outputs,
    "Dropout": _identity,
}
