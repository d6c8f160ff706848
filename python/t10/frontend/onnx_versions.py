"""Old versions of operators, which onnx-mlir keeps under names like `SqueezeV11`, as their current forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from t10.errors import UnsupportedOpError

_VERSIONED = re.compile(r"(\w+?)V(\d+)")
_REDUCTIONS = frozenset(
    f"Reduce{what}"
    for what in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
)
_SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")
_AXES_TO_INPUT = _REDUCTIONS | {"Squeeze", "Unsqueeze"}
_SAME_SINCE = {
    "Resize": 13,
    "GridSample": 13,
    "DFT": 13,
    "Clip": 11,
    "Pad": 11,
    "Split": 13,
    "BatchNormalization": 9,
}
"""From which version on an operator's old form means the same as the current one, written the same way."""
_UPSAMPLING = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@dataclass(frozen=True, slots=True)
class Fresh:
    """What makes new names: of a constant added to the model, and of a value, by a stem."""

    constant: Callable[[Any], str]
    value: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class NodeParts:
    """A node before it is made. The lists belong to this node alone.

    `input_shapes` are static shapes where known, `input_ranks` numbers of dims.
    """

    kind: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    input_shapes: list[tuple[int, ...] | None]
    location: str = ""
    domain: str = ""
    input_ranks: tuple[int | None, ...] = ()


def to_latest(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return the node as operators of current ONNX, in order.

    Raises `UnsupportedOpError` for an old version whose meaning differs.
    """
    match = _VERSIONED.fullmatch(node.kind)
    if match is None:
        return (_unversioned(node, fresh.constant),)
    plain, version = replace(node, kind=match[1]), int(match[2])
    if plain.kind in _SOFTMAXES and version < 13:
        return _old_softmax(plain, fresh)
    return (_from_version(plain, version, fresh.constant),)


def _unversioned(node: NodeParts, new_constant: Callable[[Any], str]) -> NodeParts:
    """Return a node that is current but for deprecated names, and for operands that were attributes."""
    if node.kind == "Split":
        return _equal_split(node)
    if node.kind == "Upsample":
        return _resize(node, node.inputs[1])
    if node.kind == "Scatter":
        return replace(node, kind="ScatterElements")
    if node.kind == "TopK" and not any(node.inputs[1:]) and "k" in node.attributes:
        return _attribute_to_input(node, "k", new_constant)
    return node


def _from_version(plain: NodeParts, version: int, new_constant: Callable[[Any], str]) -> NodeParts:
    """Return a node of an old version of its operator, whose name `plain` has already, in its current form."""
    if plain.kind in _AXES_TO_INPUT:
        return _attribute_to_input(plain, "axes", new_constant)
    if plain.kind == "Split":
        return _equal_split(plain if version >= 13 else _attribute_to_input(plain, "split", new_constant))
    if version >= _SAME_SINCE.get(plain.kind, 10**9):
        return plain
    if plain.kind == "Clip":
        bounds = [plain.attributes.get(key, default) for key, default in (("min", -3.4e38), ("max", 3.4e38))]
        return replace(
            plain,
            inputs=[plain.inputs[0], *(new_constant(np.array(b, np.float32)) for b in bounds)],
            attributes={},
        )
    if plain.kind == "Pad":
        pads = new_constant(np.array(plain.attributes["pads"], np.int64))
        value = new_constant(np.array(plain.attributes.get("value", 0.0), np.float32))
        mode = {key: plain.attributes[key] for key in ("mode",) if key in plain.attributes}
        return replace(plain, inputs=[plain.inputs[0], pads, value], attributes=mode)
    if plain.kind == "Upsample":
        return _resize(plain, new_constant(np.array(plain.attributes["scales"], np.float32)))
    if plain.kind == "Resize" and version == 10:
        return _resize(plain, plain.inputs[1])
    if plain.kind == "Resize":
        return plain
    raise UnsupportedOpError(
        f"onnx.{plain.kind}V{version}: this old form is not handled",
        operator=plain.name,
        location=plain.location,
        hint="convert the model to a current opset (onnx.version_converter) before onnx-mlir",
    )


def _attribute_to_input(node: NodeParts, key: str, new_constant: Callable[[Any], str]) -> NodeParts:
    """Return the node with an attribute of old opsets as its second input, as current opsets have it."""
    attributes = {name: value for name, value in node.attributes.items() if name != key}
    if key not in node.attributes:
        return replace(node, attributes=attributes)
    values = new_constant(np.array(node.attributes[key], np.int64).reshape(-1))
    return replace(node, inputs=[node.inputs[0], values], attributes=attributes)


def _equal_split(node: NodeParts) -> NodeParts:
    """Return a Split that says into how many parts, as opset 18 demands where no sizes are given."""
    if any(node.inputs[1:]) or "num_outputs" in node.attributes:
        return node
    return replace(
        node, inputs=node.inputs[:1], attributes={**node.attributes, "num_outputs": len(node.outputs)}
    )


def _resize(node: NodeParts, scales: str) -> NodeParts:
    """Return an Upsample, or a Resize of opset 10, as Resize: both read at `i / scale`, rounded down."""
    mode = node.attributes.get("mode", "nearest")
    attributes = {**_UPSAMPLING, "mode": mode}
    return replace(node, kind="Resize", inputs=[node.inputs[0], "", scales], attributes=attributes)


def _old_softmax(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a softmax of opset 11: it takes all dims from `axis` on as one."""
    shape = node.input_shapes[0]
    axis = int(node.attributes.get("axis", 1))
    if shape is not None and prod(shape[axis % len(shape) + 1 :]) == 1:
        return (replace(node, attributes={"axis": axis}),)
    flat, chosen, extents = (fresh.value(f"{node.name}.{what}") for what in ("flat", "rows", "shape"))
    return (
        step(node, "Flatten", node.inputs[:1], [flat], axis=axis),
        step(node, node.kind, [flat], [chosen], axis=-1),
        step(node, "Shape", node.inputs[:1], [extents]),
        step(node, "Reshape", [chosen, extents], node.outputs),
    )


def step(node: NodeParts, kind: str, inputs: list[str], outputs: list[str], **attributes: Any) -> NodeParts:
    """Return one of the nodes that stand for `node`."""
    unknown: list[tuple[int, ...] | None] = [None] * len(inputs)
    return NodeParts(kind, node.name, inputs, outputs, attributes, unknown, node.location)
