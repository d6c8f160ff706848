"""Refuse windows and slices that reach further than any tensor: ONNX's inference and integers of 64 bits end there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx as untyped_onnx
from onnx import numpy_helper

from t10.errors import UnsupportedOpError
from t10.frontend.unsupported import any_node, node_location

onnx: Any = untyped_onnx

MOST_REACH = 1 << 26
"""Elements from one that is read to the next, either way."""
WINDOW_ATTRIBUTES = ("kernel_shape", "strides", "dilations", "pads", "output_padding")
SLICE_STEPS = 4
"""Which input of Slice holds the steps."""


def check_reach(model: Any, source: str) -> None:
    """Raise `UnsupportedOpError` for a window or a slice with a number beyond `MOST_REACH`, naming the node.

    Steps of a slice are looked at where the file states them.
    """
    steps: dict[str, list[int]] = {}
    for tensor in model.graph.initializer:
        _enter(steps, tensor.name, tensor)

    def is_beyond(node: Any) -> bool:
        for name, numbers in _numbers(node, steps):
            far = next((number for number in numbers if abs(number) > MOST_REACH), None)
            if far is not None:
                raise UnsupportedOpError(
                    f"{node.op_type}: {name} of {far:,} (expected at most {MOST_REACH:,}, forward or back)",
                    operator=node.name or None,
                    location=node_location(node, source),
                )
        for attribute in node.attribute:
            for tensor in attribute.g.initializer:
                _enter(steps, tensor.name, tensor)
            if node.op_type == "Constant" and attribute.name == "value":
                _enter(steps, node.output[0], attribute.t)
            elif node.op_type == "Constant" and attribute.name == "value_ints":
                steps[node.output[0]] = list(attribute.ints)
        return False

    any_node(model, is_beyond)


def _enter(steps: dict[str, list[int]], name: str, tensor: Any) -> None:
    """Enter a tensor that may be steps."""
    is_inside = tensor.data_location != onnx.TensorProto.EXTERNAL and len(tensor.dims) == 1
    if is_inside and tensor.data_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64):
        steps[name] = numpy_helper.to_array(tensor).tolist()


def _numbers(node: Any, steps: dict[str, list[int]]) -> Iterator[tuple[str, list[int]]]:
    for attribute in node.attribute:
        if attribute.name in WINDOW_ATTRIBUTES and attribute.type == onnx.AttributeProto.INTS:
            yield attribute.name, list(attribute.ints)
    if node.op_type == "Slice" and len(node.input) > SLICE_STEPS:
        yield "steps", steps.get(node.input[SLICE_STEPS], [])
