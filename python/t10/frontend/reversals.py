"""ReverseSequence of known lengths as gathers at constant places: rows that are read backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper


def expand_reversals(model: Any) -> None:
    """Rewrite, in place, every ReverseSequence whose lengths are constant and whose axes are static.

    One length for all sequences makes one Gather; several make a Gather per sequence and a concatenation.
    """
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    known = {v.name: v.type.tensor_type for v in (*graph.input, *graph.value_info, *graph.output)}
    nodes: list[Any] = []
    for node in graph.node:
        is_reversal = node.op_type == "ReverseSequence" and node.domain in ("", "ai.onnx")
        if is_reversal and node.input[1] in constants and node.input[0] in known:
            extents = [dim.dim_value for dim in known[node.input[0]].shape.dim]
            lengths = numpy_helper.to_array(constants[node.input[1]])
            nodes.extend(_gathers(graph, node, extents, lengths) if all(extents) else [node])
        else:
            nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _gathers(graph: Any, node: Any, extents: list[int], lengths: NDArray[Any]) -> list[Any]:
    """Return the nodes of one reversal; batch and time are its first two axes, in either order."""
    options = {attribute.name: attribute.i for attribute in node.attribute}
    batch, time = options.get("batch_axis", 1), options.get("time_axis", 0)
    make, name, output = onnx.helper.make_node, node.name or node.output[0], node.output[0]

    def places(length: int) -> str:
        added = f"{output}.places.{length}"
        if all(tensor.name != added for tensor in graph.initializer):
            order = np.concatenate([np.arange(length)[::-1], np.arange(length, extents[time])])
            graph.initializer.append(numpy_helper.from_array(order.astype(np.int64), added))
        return added

    if len(set(lengths.tolist())) == 1:
        return [make("Gather", [node.input[0], places(int(lengths[0]))], [output], name=name, axis=time)]
    rows = [f"{output}.row.{i}" for i in range(len(lengths))]
    split = make("Split", [node.input[0]], rows, name=f"{name}.rows", axis=batch, num_outputs=len(rows))
    reversed_rows = [f"{row}.reversed" for row in rows]
    gathers = [
        make("Gather", [row, places(int(length))], [reversed_row], name=f"{name}.{i}", axis=time)
        for i, (row, reversed_row, length) in enumerate(zip(rows, reversed_rows, lengths, strict=True))
    ]
    return [split, *gathers, make("Concat", reversed_rows, [output], name=name, axis=batch)]
