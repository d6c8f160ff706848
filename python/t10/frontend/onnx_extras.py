"""Operations that onnx-mlir adds to the onnx dialect, as operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from t10.frontend.onnx_versions import Fresh, NodeParts, step, to_latest

ANNOTATIONS = frozenset({"EntryPoint", "DimGroup", "PrintSignature"})
"""Operations that say something about a program and compute nothing."""

INLINED = frozenset({"Fused", "Fork"})
"""Operations that group others: their region is part of the program as it stands."""

_PROPERTIES = {
    "Custom": ("function_name", "domain_name"),
    "Dim": ("axis",),
    "ConcatShapeTranspose": ("axis", "start", "end", "perm"),
    "RMSLayerNormalization": ("axis", "epsilon", "stash_type"),
}
_STANDS_FOR = {"MaxPoolSingleOut": "MaxPool", "BatchNormalizationInferenceMode": "BatchNormalization"}
_SHAPE_HINTS = frozenset(
    {"function_name", "domain_name", "output_element_type", "shape_infer_pattern", "inputs_for_infer"}
)


def known_properties(kind: str) -> tuple[str, ...]:
    """Return the names of the properties of an operation that no ONNX schema tells."""
    return _PROPERTIES.get(kind, ())


def schema_name(kind: str) -> str:
    """Return the ONNX operator whose attributes an operation has."""
    base = kind.rpartition("V")[0] if kind[-1].isdigit() and "V" in kind else kind
    return _STANDS_FOR.get(base, base)


def to_operators(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return the operators of current ONNX that an operation of the onnx dialect stands for, in order.

    Raises `UnsupportedOpError` for an old version whose meaning differs.
    """
    rule = _RULES.get(node.kind)
    return to_latest(node, fresh) if rule is None else rule(node, fresh)


def _renamed(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    del fresh
    return (replace(node, kind=_STANDS_FOR[node.kind]),)


def _dim(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a dim as a slice of the shape."""
    del fresh
    axis = int(node.attributes.get("axis", 0))
    return (replace(node, kind="Shape", attributes={"start": axis, "end": axis + 1}),)


def _layout(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a change of how a tensor lies in memory: T10 chooses that itself."""
    del fresh
    return (replace(node, kind="Identity", inputs=node.inputs[:1], attributes={}),)


def _custom(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a node of another domain as the model had it."""
    del fresh
    kept = {key: value for key, value in node.attributes.items() if key not in _SHAPE_HINTS}
    kind, domain = (str(node.attributes.get(key, "")) for key in ("function_name", "domain_name"))
    return (replace(node, kind=kind or "Custom", domain=domain or "onnx-mlir", attributes=kept),)


def _concat_shape_transpose(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a concatenation of which the shape and the transpose are wanted."""
    joined = fresh.value(f"{node.name}.concat")
    bounds = {key: node.attributes[key] for key in ("start", "end") if key in node.attributes}
    order = {key: node.attributes[key] for key in ("perm",) if key in node.attributes}
    shape, transposed = (name or fresh.value(node.name) for name in node.outputs)
    return (
        step(node, "Concat", node.inputs, [joined], axis=node.attributes["axis"]),
        step(node, "Shape", [joined], [shape], **bounds),
        step(node, "Transpose", [joined], [transposed], **order),
    )


def _dropout(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return a dropout of an old opset, whose ratio was an attribute, as it is at inference."""
    del fresh
    is_old = "ratio" in node.attributes
    return (replace(node, inputs=node.inputs[:1], attributes={}) if is_old else node,)


def _rms_normalization(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return `x / sqrt(mean(x²) + epsilon) * scale + bias`, the mean over all dims from `axis` on."""
    x, scale, bias = (*node.inputs, "")[:3]
    shape = node.input_shapes[0]
    axis = int(node.attributes.get("axis", -1))
    axes = range(axis % len(shape), len(shape)) if shape is not None else range(axis, 0)
    stems = ("square", "mean", "eps", "sqrt", "inverse", "normal", "scaled")
    square, mean, eps, root, inverse, normal, scaled = (fresh.value(f"{node.name}.{stem}") for stem in stems)
    y, inverse_out = (*node.outputs, "")[:2]
    inverse = inverse_out or inverse
    epsilon = fresh.constant(np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    over = fresh.constant(np.array(list(axes), np.int64))
    wide = fresh.value(f"{node.name}.epsilon")
    steps = [
        step(node, "Mul", [x, x], [square]),
        step(node, "ReduceMean", [square, over], [mean], keepdims=1),
        step(node, "CastLike", [epsilon, mean], [wide]),
        step(node, "Add", [mean, wide], [eps]),
        step(node, "Sqrt", [eps], [root]),
        step(node, "Reciprocal", [root], [inverse]),
        step(node, "Mul", [x, inverse], [normal]),
        step(node, "Mul", [normal, scale], [scaled if bias else y]),
    ]
    if bias:
        steps.append(step(node, "Add", [scaled, bias], [y]))
    return tuple(steps)


_RULES: dict[str, Callable[[NodeParts, Fresh], tuple[NodeParts, ...]]] = {
    "MaxPoolSingleOut": _renamed,
    "BatchNormalizationInferenceMode": _renamed,
    "Dim": _dim,
    "Dropout": _dropout,
    "LayoutTransform": _layout,
    "Custom": _custom,
    "ConcatShapeTranspose": _concat_shape_transpose,
    "RMSLayerNormalization": _rms_normalization,
}
