"""Operations that onnx-mlir adds to the onnx dialect, as operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from t10.errors import InputError, UnsupportedOpError
from t10.frontend import im2col
from t10.frontend.onnx_versions import Fresh, NodeParts, step, to_latest
from t10.frontend.unsupported import STANDARD_DOMAINS

ANNOTATIONS = frozenset({"EntryPoint", "DimGroup", "PrintSignature"})
"""Operations that say something about a program and compute nothing."""

INLINED = frozenset({"Fused", "Fork"})
"""Operations that group others: their region is part of the program as it stands."""

_PROPERTIES = {
    "Custom": ("function_name", "domain_name"),
    "Dim": ("axis",),
    "ConcatShapeTranspose": ("axis", "start", "end", "perm"),
    "RMSLayerNormalization": ("axis", "epsilon", "stash_type"),
    "Im2Col": ("auto_pad", "dilations", "kernel_shape", "pads", "strides"),
    "UpsampleAndPad": ("strides", "pads"),
}
_STANDS_FOR = {"MaxPoolSingleOut": "MaxPool", "BatchNormalizationInferenceMode": "BatchNormalization"}
_END = 2**63 - 1
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
    """Return a node as the model had it: of another domain, or an operator of ONNX that onnx-mlir does not know."""
    del fresh
    kept = {key: value for key, value in node.attributes.items() if key not in _SHAPE_HINTS}
    kind, domain = (str(node.attributes.get(key, "")) for key in ("function_name", "domain_name"))
    if domain in STANDARD_DOMAINS:
        return (replace(node, kind=kind or "Custom", attributes=kept),)
    return (replace(node, kind=kind or "Custom", domain=domain, attributes=kept),)


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


def _im2col(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return columns with explicit pads: a function of the model computes them (`t10.frontend.im2col`)."""
    del fresh
    kernel = _integers(node, "kernel_shape")
    window = {
        "kernel_shape": kernel,
        "strides": _integers(node, "strides") or [1] * len(kernel),
        "dilations": _integers(node, "dilations") or [1] * len(kernel),
    }
    if min(chain(*window.values()), default=0) < 1 or len({len(values) for values in window.values()}) != 1:
        raise InputError(f"Im2Col of window {window}", operator=node.name, location=node.location)
    pads = _pads(node, *window.values())
    return (replace(node, kind=im2col.OPERATOR, domain=im2col.DOMAIN, attributes=window | {"pads": pads}),)


def _integers(node: NodeParts, key: str) -> list[int]:
    """Return an attribute of several integers, none if it is absent."""
    return [int(each) for each in list[Any](node.attributes.get(key) or ())]


def _pads(node: NodeParts, kernel: list[int], strides: list[int], dilations: list[int]) -> list[int]:
    """Return the pads of a window, all those before first; raises `UnsupportedOpError` if extents determine them."""
    mode = node.attributes.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        return (mode == "NOTSET" and _integers(node, "pads")) or [0] * (2 * len(kernel))
    shape = node.input_shapes[0]
    if shape is None and max(strides) > 1:
        raise UnsupportedOpError(
            f"Im2Col pads as {mode} says, which depends on extents that the text does not state",
            operator=node.name,
            location=node.location,
            hint="give onnx-mlir the shapes (--shapeInformation), or --disable-conv-to-matmul",
        )
    spatial = [1] * len(kernel) if shape is None else shape[2:]
    rows = zip(spatial, kernel, strides, dilations, strict=True)
    totals = [max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n) for n, k, s, d in rows]
    halves = [total // 2 for total in totals]
    others = [total - half for total, half in zip(totals, halves, strict=True)]
    return halves + others if mode == "SAME_UPPER" else others + halves


def _upsample_and_pad(node: NodeParts, fresh: Fresh) -> tuple[NodeParts, ...]:
    """Return zeros between the elements of the innermost dims, and around them; a negative pad takes away.

    Dim by dim, so that extents need not be known: `(.., n) -> (.., n, 1) -> (.., n, s) -> (.., n·s)`, and the last
    `s - 1` zeros of each are taken away with the pads.
    """
    strides, pads = (_integers(node, key) for key in ("strides", "pads"))
    n_dims = len(strides) or len(pads) // 2
    strides, pads = strides or [1] * n_dims, pads or [0] * (2 * n_dims)
    rank = node.input_ranks[0]
    if rank is None or len(pads) != 2 * n_dims or n_dims > rank or min(strides, default=1) < 1:
        raise InputError(
            f"UpsampleAndPad of strides {strides} and pads {pads}", operator=node.name, location=node.location
        )
    steps: list[NodeParts] = []
    x = node.inputs[0]

    def add(kind: str, inputs: list[str], **attributes: Any) -> str:
        steps.append(step(node, kind, inputs, [fresh.value(f"{node.name}.{kind.lower()}")], **attributes))
        return steps[-1].outputs[0]

    def constant(values: list[int]) -> str:
        return fresh.constant(np.array(values, np.int64))

    for dim, stride in enumerate(strides, start=rank - n_dims):
        if stride == 1:
            continue
        order = [*range(dim), *range(dim + 1, rank), dim]
        x = add("Transpose", [x], perm=order) if dim < rank - 1 else x
        x = add("Unsqueeze", [x, constant([rank])])
        x = add("Pad", [x, constant([0] * (2 * rank + 1) + [stride - 1])])
        x = add("Reshape", [x, constant([0] * (rank - 1) + [-1])])
        back = sorted(range(rank), key=order.__getitem__)
        x = add("Transpose", [x], perm=back) if dim < rank - 1 else x
    ends = [pad - (stride - 1) for pad, stride in zip(pads[n_dims:], strides, strict=True)]
    both = [*pads[:n_dims], *ends]
    if min(both, default=0) < 0:
        low, high = ([max(0, -pad) for pad in side] for side in (both[:n_dims], both[n_dims:]))
        bounds = low, [-cut or _END for cut in high], list(range(rank - n_dims, rank))
        x = add("Slice", [x, *map(constant, bounds)])
    outer = [0] * (rank - n_dims)
    widths = [max(0, pad) for pad in both]
    around = constant([*outer, *widths[:n_dims], *outer, *widths[n_dims:]])
    return (*steps, step(node, "Pad", [x, around], node.outputs))


_RULES: dict[str, Callable[[NodeParts, Fresh], tuple[NodeParts, ...]]] = {
    "MaxPoolSingleOut": _renamed,
    "BatchNormalizationInferenceMode": _renamed,
    "Dim": _dim,
    "Dropout": _dropout,
    "LayoutTransform": _layout,
    "Custom": _custom,
    "ConcatShapeTranspose": _concat_shape_transpose,
    "RMSLayerNormalization": _rms_normalization,
    "Im2Col": _im2col,
    "UpsampleAndPad": _upsample_and_pad,
}
