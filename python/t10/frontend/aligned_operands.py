"""Operands that opsets below 7 align at an `axis`, written with trailing dims of extent 1, as they broadcast since."""

from __future__ import annotations

from typing import Any

import onnx

from t10.frontend.names import fresh, value_names
from t10.frontend.protobuf_fields import replace_all

BROADCASTING = 7
"""The first opset in which dims broadcast from the last one on."""
_OPERATORS = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")


def align_operands(model: Any) -> None:
    """Write the alignment of second operands with known ranks as an Unsqueeze, in place."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    ranks = {tensor.name: len(tensor.dims) for tensor in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.tensor_type.HasField("shape"):
            ranks[value.name] = len(value.type.tensor_type.shape.dim)
    taken = {*value_names(model.graph)}
    nodes: list[Any] = []
    for node in model.graph.node:
        axis = next((a.i for a in node.attribute if a.name == "axis"), None)
        if node.op_type in _OPERATORS and axis is not None and ranks.keys() >= set(node.input):
            rank, of = (ranks[name] for name in node.input)
            axis %= max(rank, 1)
            if axis + of < rank:
                made = fresh(f"{node.input[1]}.aligned", taken)
                places = list(range(of, rank - axis))
                nodes.append(onnx.helper.make_node("Unsqueeze", [node.input[1]], [made], axes=places))
                node.input[1] = made
            replace_all(node.attribute, [a for a in node.attribute if a.name != "axis"])
        nodes.append(node)
    replace_all(model.graph.node, nodes)
