"""Operations only onnx-mlir has: old versions of operators under names like `SqueezeV11`, and splits of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from t10.errors import UnsupportedOpError

NewConstant = Callable[[Any], str]

_VERSIONED = re.compile(r"(\w+?)V(\d+)")
_AXES_TO_INPUT = frozenset(
    {
        "Squeeze",
        "Unsqueeze",
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceL1",
        "ReduceL2",
    }
    | {"ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"}
)


@dataclass(frozen=True, slots=True)
class NodeParts:
    """A node before it is made; `input_shapes` are static shapes where known. The lists belong to this node alone."""

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    input_shapes: list[tuple[int, ...] | None]
    location: str = ""


def to_latest(node: NodeParts, new_constant: NewConstant) -> NodeParts:
    """Return the node as an operator of current ONNX; `new_constant` adds an initializer and returns its name.

    Raises `UnsupportedOpError` for an old version whose meaning differs.
    """
    renamed = {"MaxPoolSingleOut": "MaxPool", "BatchNormalizationInferenceMode": "BatchNormalization"}.get(
        node.kind
    )
    if renamed is not None:
        return replace(node, kind=renamed)
    if node.kind == "Dim":
        axis = int(node.attributes.get("axis", 0))
        return replace(node, kind="Shape", attributes={"start": axis, "end": axis + 1})
    match = _VERSIONED.fullmatch(node.kind)
    if node.kind == "Split":
        return _equal_split(node)
    if match is None:
        return node
    plain = replace(node, kind=match[1])
    if plain.kind in _AXES_TO_INPUT:
        return _attribute_to_input(plain, "axes", new_constant)
    if plain.kind == "Split":
        return _equal_split(_attribute_to_input(plain, "split", new_constant))
    if plain.kind in ("Softmax", "LogSoftmax"):
        return _old_softmax(plain)
    if plain.kind in ("Resize", "GridSample", "DFT") and int(match[2]) >= 13:
        return plain
    if plain.kind == "Clip":
        bounds = [plain.attributes.get(key, default) for key, default in (("min", -3.4e38), ("max", 3.4e38))]
        return replace(
            plain,
            inputs=[plain.inputs[0], *(new_constant(np.array(b, np.float32)) for b in bounds)],
            attributes={},
        )
    raise UnsupportedOpError(
        f"onnx.{node.kind}: this old form is not handled",
        operator=node.name,
        location=node.location,
        hint="convert the model to a current opset (onnx.version_converter) before onnx-mlir",
    )


def _attribute_to_input(node: NodeParts, key: str, new_constant: NewConstant) -> NodeParts:
    """Return the node with an attribute of old opsets as its second input, as current opsets have it."""
    attributes = {name: value for name, value in node.attributes.items() if name != key}
    if key not in node.attributes:
        return replace(node, attributes=attributes)
    values = new_constant(np.array(node.attributes[key], np.int64))
    return replace(node, inputs=[node.inputs[0], values], attributes=attributes)


def _equal_split(node: NodeParts) -> NodeParts:
    """Return a Split that says into how many parts, as opset 18 demands where no sizes are given."""
    if any(node.inputs[1:]) or "num_outputs" in node.attributes:
        return node
    return replace(
        node, inputs=node.inputs[:1], attributes={**node.attributes, "num_outputs": len(node.outputs)}
    )


def _old_softmax(node: NodeParts) -> NodeParts:
    """Return a softmax of opset 11, which flattens from `axis` on, where that means the last dim only."""
    shape = node.input_shapes[0]
    axis = int(node.attributes.get("axis", 1))
    if shape is None or prod(shape[axis % len(shape) + 1 :]) != 1:
        raise UnsupportedOpError(
            f"onnx.{node.kind}V11 over several dims (axis {axis} of shape {shape})",
            operator=node.name,
            location=node.location,
        )
    return replace(node, attributes={"axis": axis})
