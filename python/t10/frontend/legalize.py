"""Nodes the lowering refuses, rewritten to equal ones it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.reading import reading

MOST_SCANNED = 1 << 13
"""Longest axis whose running sum is a product with a triangle, which has the square of its elements."""


def legalize(model: Any) -> None:
    """Rewrite, in place, every node that has a rule; other nodes stay untouched."""
    graph = model.graph
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    nodes: list[Any] = []
    for node in graph.node:
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        nodes.append(node if rule is None else rule(node, read))
    replace_all(graph.node, nodes)


def expand_scans(model: Any) -> None:
    """Rewrite every CumSum over a known, static axis as a product with a triangle of ones."""
    graph = model.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    types = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info)}
    nodes: list[Any] = []
    for node in graph.node:
        is_scan = node.op_type == "CumSum" and node.domain in ("", "ai.onnx")
        if is_scan and node.input[0] in types and node.input[1] in constants:
            with reading(node):
                axis = int(numpy_helper.to_array(constants[node.input[1]]).reshape(()))
                nodes.extend(_triangular_product(graph, node, types[node.input[0]], axis))
        else:
            nodes.append(node)
    replace_all(graph.node, nodes)


def _triangular_product(graph: Any, node: Any, kind: Any, axis: int) -> list[Any]:
    """Return y[.., j] = sum over i of x[.., i] * T[i, j], with the scanned axis moved last and back again."""
    extents = [dim.dim_value for dim in kind.shape.dim]
    if not extents or not all(extents):
        return [node]
    options = {attribute.name: attribute.i for attribute in node.attribute}
    n, shift = extents[axis], 1 if options.get("exclusive", 0) else 0
    if n > MOST_SCANNED:
        return [node]
    ones = np.ones((n, n), onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
    matrix = np.tril(ones, -shift) if options.get("reverse", 0) else np.triu(ones, shift)
    name, output = node.name or node.output[0], node.output[0]
    graph.initializer.append(numpy_helper.from_array(matrix, f"{output}.triangle"))
    last = len(extents) - 1
    order = list(range(len(extents)))
    order[axis % len(extents)], order[last] = order[last], order[axis % len(extents)]
    make = onnx.helper.make_node
    return [
        make("Transpose", [node.input[0]], [f"{output}.rows"], name=f"{name}.rows", perm=order),
        make("MatMul", [f"{output}.rows", f"{output}.triangle"], [f"{output}.sums"], name=name),
        make("Transpose", [f"{output}.sums"], [output], name=f"{name}.back", perm=order),
    ]


def _without_unread_outputs(node: Any, read: set[str]) -> Any:
    """Drop trailing outputs that nothing reads (statistics of BatchNormalization, indices of MaxPool)."""
    while len(node.output) > 1 and node.output[-1] not in read:
        del node.output[-1]
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
