"""Softmax, LogSoftmax and Hardmax as before opset 13, where the dims from `axis` on are one row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import onnx

from t10.frontend.names import fresh, value_names
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.unsupported import STANDARD_DOMAINS

COERCED = frozenset({"Hardmax", "LogSoftmax", "Softmax"})
"""Operators whose input opsets below 13 coerce to [product of dims before axis, product of the others]."""
_DEFAULT_AXIS = 1


def flatten_rows(graph: Any, operators: Collection[str] = COERCED) -> None:
    """Write, in place, `operators` of a graph and of the graphs inside its nodes over rows of a matrix.

    In all opsets they then mean what they mean below 13.
    """
    _flatten(graph, operators, set(value_names(graph)))


def _flatten(graph: Any, operators: Collection[str], taken: set[str]) -> None:
    """Do what `flatten_rows` does; values that are added have names that are not `taken`."""
    nodes: list[Any] = []
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                _flatten(inner, operators, taken)
        is_coerced = node.op_type in operators and node.domain in STANDARD_DOMAINS
        nodes.extend(_over_rows(node, taken) if is_coerced else [node])
    replace_all(graph.node, nodes)


def _over_rows(node: Any, taken: set[str]) -> list[Any]:
    """Return what stands for a node; the last axis is a row already."""
    axis = next((int(each.i) for each in node.attribute if each.name == "axis"), _DEFAULT_AXIS)
    if axis == -1:
        return [node]
    x, y, make = node.input[0], node.output[0], onnx.helper.make_node
    flat, rows, extents = (fresh(f"{y}.{what}", taken) for what in ("flat", "rows", "shape"))
    written: list[Any] = [
        make("Flatten", [x], [flat], axis=axis),
        make(node.op_type, [flat], [rows], axis=-1),
        make("Shape", [x], [extents]),
        make("Reshape", [rows, extents], [y]),
    ]
    for each in written:
        each.name = node.name
        each.metadata_props.extend(node.metadata_props)
    return written
