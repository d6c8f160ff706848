"""ReverseSequence of known lengths as gathers at constant places: rows that are read backwards."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.reading import reading


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
            lengths = [int(n) for n in numpy_helper.to_array(constants[node.input[1]]).flat]
            with reading(node):
                nodes.extend(_gathers(graph, node, extents, lengths) if all(extents) else [node])
        else:
            nodes.append(node)
    replace_all(graph.node, nodes)


def _gathers(graph: Any, node: Any, extents: list[int], lengths: list[int]) -> list[Any]:
    """Return the nodes of one reversal; batch and time are its first two axes, in either order."""
    options: dict[str, int] = {attribute.name: attribute.i for attribute in node.attribute}
    batch, time = options.get("batch_axis", 1), options.get("time_axis", 0)
    if max(lengths, default=0) > extents[time] or len(lengths) != extents[batch]:
        raise ValueError(f"lengths {lengths[:8]} on {extents[batch]} sequences of {extents[time]}")
    make, name, output = onnx.helper.make_node, node.name or node.output[0], node.output[0]

    def gather(source: str, made: str, places: list[int], axis: int) -> Any:
        values = numpy_helper.from_array(np.array(places, np.int64), f"{made}.places")
        graph.initializer.append(values)
        return make("Gather", [source, values.name], [made], name=name, axis=axis)

    def backwards(length: int) -> list[int]:
        return [*range(length - 1, -1, -1), *range(length, extents[time])]

    if len(set(lengths)) == 1:
        return [gather(node.input[0], output, backwards(lengths[0]), time)]
    nodes: list[Any] = []
    for i, length in enumerate(lengths):
        nodes.append(gather(node.input[0], f"{output}.row.{i}", [i], batch))
        nodes.append(gather(f"{output}.row.{i}", f"{output}.back.{i}", backwards(length), time))
    rows = [f"{output}.back.{i}" for i in range(len(lengths))]
    return [*nodes, make("Concat", rows, [output], name=name, axis=batch)]
