"""Nodes the lowering refuses, rewritten to equal ones it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx

from t10.frontend.protobuf_fields import all_nodes, replace_all
from t10.frontend.read_names import names_read


def legalize(model: Any) -> None:
    """Rewrite, in place, every node that has a rule; other nodes stay untouched."""
    graph = model.graph
    read = names_read(graph)
    nodes: list[Any] = []
    for node in graph.node:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        nodes.append(node if rule is None else rule(node, read))
    replace_all(graph.node, nodes)


def drop_misread_inputs(model: Any) -> None:
    """Drop, in place, inputs that ONNX's shape inference reads otherwise than ONNX Runtime."""
    _drop_empty_axes(model)
    _drop_splits_into_ones(model)


def _drop_empty_axes(model: Any) -> None:
    """Drop, in place, axes of a Squeeze that are none: ONNX Runtime takes out all dims of extent 1, inference none."""
    empty = {tensor.name for tensor in model.graph.initializer if list(tensor.dims) == [0]}
    for node in model.graph.node:
        if node.op_type == "Constant":
            is_empty = any(list(each.t.dims) == [0] and each.name == "value" for each in node.attribute)
            empty.update(node.output if is_empty else ())
        elif node.op_type == "Squeeze" and len(node.input) > 1 and node.input[1] in empty:
            del node.input[1:]


def _drop_splits_into_ones(model: Any) -> None:
    """Drop, in place, that parts of a SplitToSequence have one element: then `keepdims` counts, as in ONNX Runtime."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    nodes = [node for body in bodies for node in all_nodes(body)]
    splits = [node for node in nodes if node.op_type == "SplitToSequence" and _drops_axis(node)]
    if not splits:
        return
    ones = {tensor.name for tensor in model.graph.initializer if _is_one(tensor)}
    for node in (node for node in nodes if node.op_type == "Constant"):
        if any(_is_one(each.t) or (each.name, each.i) == ("value_int", 1) for each in node.attribute):
            ones.update(node.output)
    for node in splits:
        if len(node.input) > 1 and node.input[1] in ones:
            del node.input[1:]


def _drops_axis(node: Any) -> bool:
    return any(attribute.name == "keepdims" and not attribute.i for attribute in node.attribute)


def _is_one(tensor: Any) -> bool:
    """Return whether a tensor in the file is the whole number 1."""
    is_whole = tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32) and not tensor.dims
    is_here = tensor.data_location != onnx.TensorProto.EXTERNAL
    return is_whole and is_here and onnx.numpy_helper.to_array(tensor).item() == 1


def drop_absent_inputs(model: Any) -> None:
    """Drop, in place, trailing inputs without a name: ONNX allows them, the lowering of Conv counts inputs."""
    for node in model.graph.node:
        while len(node.input) > 1 and not node.input[-1]:
            del node.input[-1]


def _without_unread_outputs(node: Any, read: set[str]) -> Any:
    """Drop trailing outputs that nothing reads (statistics of BatchNormalization, indices of MaxPool).

    One in front of an output that is read gets a name: an empty one would be taken for no output at all.
    """
    while len(node.output) > 1 and node.output[-1] not in read:
        del node.output[-1]
    for place, name in enumerate(node.output):
        node.output[place] = name or f"{node.output[0]}.unread_{place}"
    return node


def _identity(node: Any, read: set[str]) -> Any:
    """Hand the input of a Dropout through, as it is meant at inference, if nothing reads its mask."""
    may_train = len(node.input) > 2 and node.input[2]
    if may_train or any(name in read for name in node.output[1:]):
        return node
    return onnx.helper.make_node("Identity", [node.input[0]], [node.output[0]], name=node.name)


_RULES: dict[str, Callable[[Any, set[str]], Any]] = {
    "BatchNormalization": _without_unread_outputs,
    "MaxPool": _without_unread_outputs,
    "LayerNormalization": _without_unread_outputs,
    "Dropout": _identity,
}
