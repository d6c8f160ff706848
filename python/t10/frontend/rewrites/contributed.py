"""Operators that ONNX Runtime adds to ONNX's for transformers, written with ONNX's own: norms, activations, products.

SimplifiedLayerNormalization      y = x / sqrt(mean(x^2) + epsilon) * scale
SkipLayerNormalization            y = LayerNormalization(x + skip + bias)
QuickGelu                         y = x * sigmoid(alpha * x)
FastGelu                          y = x / 2 * (1 + tanh(0.7978846 * (x + 0.044715 * x^3)))
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Site

DOMAIN = "com.microsoft"
_FLOATS = (KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE)


def wide_kind(kind: int) -> int:
    """Return the type in which means are taken."""
    return KIND.FLOAT if kind == KIND.FLOAT16 else kind


def root_mean_square(
    site: Site, x: str, scale: str, kind: int, axes: list[int], epsilon: float, output: str = ""
) -> tuple[str, str]:
    """Write x / sqrt(mean(x^2) + epsilon) * scale, the mean in f32 at least; return it and the factor 1 / sqrt."""
    inner = wide_kind(kind)
    wide = x if inner == kind else site.cast(x, inner)
    mean = site.reduce("ReduceMean", site.op("Mul", wide, wide), axes, keep=True)
    root = site.op("Sqrt", site.op("Add", mean, site.scalar(epsilon, inner)))
    factor = site.op("Reciprocal", root)
    scaled = site.op("Mul", wide, factor)
    narrow = scaled if inner == kind else site.cast(scaled, kind)
    return site.op("Mul", narrow, scale, output=output), factor


def _simplified(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or kind not in _FLOATS:
        return False
    axes = list(range(int(site.option("axis", -1)) % len(shape), len(shape)))
    epsilon = float(site.option("epsilon", 1e-5))
    _, factor = root_mean_square(site, site.input(0), site.input(1), kind, axes, epsilon, site.node.output[0])
    if site.output(1):
        site.give(factor, 1)
    return True


def _summed(site: Site, bias: int) -> str:
    """Write the sum of the first two inputs and of the bias, if there is one."""
    total = site.op("Add", site.input(0), site.input(1))
    if site.input(bias):
        total = site.op("Add", total, site.input(bias))
    site.give(total, 3)
    return total


def _skip_simplified(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or kind not in _FLOATS:
        return False
    total, epsilon = _summed(site, 3), float(site.option("epsilon", 1e-12))
    _, factor = root_mean_square(
        site, total, site.input(2), kind, [len(shape) - 1], epsilon, site.node.output[0]
    )
    site.give(site.constant(np.zeros((*shape[:-1], 1)), np.float32), 1)  # as ONNX Runtime has the mean here
    _give_single(site, factor, 2)
    return True


def _give_single(site: Site, x: str, place: int) -> None:
    """Make `x` an output in f32, if anything reads that."""
    if site.output(place):
        site.cast(x, KIND.FLOAT, output=site.output(place))


def layer_norm(
    site: Site, x: str, scale: str, bias: str, kind: int, rank: int, epsilon: float
) -> tuple[str, str, str]:
    """Write LayerNormalization over the last axis, without a bias too; opsets below 17 have no operator for it.

    Returns it, the mean and the root of the variance.
    """
    inner = wide_kind(kind)
    wide = x if inner == kind else site.cast(x, inner)
    mean = site.reduce("ReduceMean", wide, [rank - 1], keep=True)
    centred = site.op("Sub", wide, mean)
    variance = site.reduce("ReduceMean", site.op("Mul", centred, centred), [rank - 1], keep=True)
    root = site.op("Sqrt", site.op("Add", variance, site.scalar(epsilon, inner)))
    normal = site.op("Div", centred, root)
    narrow = normal if inner == kind else site.cast(normal, kind)
    scaled = site.op("Mul", narrow, scale)
    return site.op("Add", scaled, bias) if bias else scaled, mean, root


def _skip_layer(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or kind not in _FLOATS:
        return False
    total, epsilon = _summed(site, 4), float(site.option("epsilon", 1e-12))
    made, mean, root = layer_norm(site, total, site.input(2), site.input(3), kind, len(shape), epsilon)
    site.give(made)
    _give_single(site, mean, 1)
    if site.output(2):
        _give_single(site, site.op("Reciprocal", root), 2)
    return True


def _embeddings(site: Site) -> bool:
    """Write the norm of the sum of word, place and segment embeddings, and how many words there are."""
    shape, kind = site.shape(0), site.kind(2)
    if shape is None or kind not in _FLOATS:
        return False
    total = site.op("Gather", site.input(2), site.input(0), axis=0)
    places = site.input(8) or site.constant(np.arange(shape[1])[None], np.int64)
    total = site.op("Add", total, site.op("Gather", site.input(3), places, axis=0))
    if site.input(1) and site.input(4):
        total = site.op("Add", total, site.op("Gather", site.input(4), site.input(1), axis=0))
    site.give(total, 2)
    epsilon = float(site.option("epsilon", 1e-12))
    site.give(layer_norm(site, total, site.input(5), site.input(6), kind, 3, epsilon)[0])
    if not site.output(1):
        return True
    if site.input(7):
        site.give(site.reduce("ReduceSum", site.cast(site.input(7), KIND.INT32), [1], keep=False), 1)
    else:
        site.give(site.constant(np.zeros(shape[0]), np.int32), 1)
    return True


def _gelu(site: Site) -> bool:
    """Write x / 2 * (1 + erf(x / sqrt(2))), with or without a bias before it."""
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    x = _with_bias(site)
    power = site.op("Erf", site.op("Div", x, site.scalar(sqrt(2), kind)))
    half(site, kind, x, power, site.node.output[0])
    return True


def _fast_gelu(site: Site) -> bool:
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    tanh_gelu(site, _with_bias(site), kind, output=site.node.output[0])
    return True


def tanh_gelu(site: Site, x: str, kind: int, output: str = "") -> str:
    """Write x / 2 * (1 + tanh(0.7978846 * (x + 0.044715 * x^3)))."""
    cube = site.op("Mul", site.op("Mul", site.op("Mul", x, x), x), site.scalar(0.044715, kind))
    inner = site.op("Mul", site.op("Add", x, cube), site.scalar(sqrt(2 / pi), kind))
    return half(site, kind, x, site.op("Tanh", inner), output)


def _with_bias(site: Site) -> str:
    """Return the first input with the second added, if there is one."""
    return site.op("Add", site.input(0), site.input(1)) if site.input(1) else site.input(0)


def half(site: Site, kind: int, x: str, power: str, output: str = "") -> str:
    """Write x / 2 * (1 + power)."""
    double = site.op("Mul", x, site.op("Add", power, site.scalar(1, kind)))
    return site.op("Mul", double, site.scalar(0.5, kind), output=output)


def _quick_gelu(site: Site) -> bool:
    kind = site.kind(0)
    if kind not in _FLOATS:
        return False
    scaled = site.op("Mul", site.input(0), site.scalar(float(site.option("alpha", 1.702)), kind))
    site.op("Mul", site.input(0), site.op("Sigmoid", scaled), output=site.node.output[0])
    return True


def _bias_add(site: Site) -> bool:
    site.op("Add", site.op("Add", site.input(0), site.input(1)), site.input(2), output=site.node.output[0])
    return True


def _bias_softmax(site: Site) -> bool:
    """Write a softmax of a sum; the bias is that of a row of batches, or of one batch."""
    shape, bias = site.shape(0), site.shape(1)
    if shape is None or bias is None:
        return False
    axis = int(site.option("axis", 1)) % len(shape)
    is_whole = len(bias) == len(shape) and all(b in (1, n) for b, n in zip(bias, shape, strict=True))
    if axis != len(shape) - 1 or not is_whole or site.facts.opset < 13:
        return False
    total = site.op("Add", site.input(0), site.input(1))
    site.op("Softmax", total, output=site.node.output[0], axis=-1)
    return True


def _turned(site: Site, place: int, *, rows: bool, batch: bool) -> tuple[str, int] | None:
    """Write an operand of FusedMatMul in the order in which it is multiplied, and its rank."""
    shape = site.shape(place)
    if shape is None:
        return None
    order, rank = list(range(len(shape))), len(shape)
    if batch:
        if rank < 3:
            return None
        # The batch is the second last axis, behind the rows: [rows, batch.., columns].
        order = [*order[1:-1], 0, order[-1]]
    if rows and rank > 1:
        order[-2:] = order[:-3:-1]
    name = site.input(place)
    return (name if order == sorted(order) else site.transpose(name, order)), rank


def _fused_matmul(site: Site) -> bool:
    a = _turned(site, 0, rows=bool(site.option("transA", 0)), batch=bool(site.option("transBatchA", 0)))
    b = _turned(site, 1, rows=bool(site.option("transB", 0)), batch=bool(site.option("transBatchB", 0)))
    kind = site.kind(0)
    if a is None or b is None or kind not in _FLOATS:
        return False
    product, alpha = site.op("MatMul", a[0], b[0]), float(site.option("alpha", 1.0))
    if alpha != 1.0:
        product = site.op("Mul", product, site.scalar(alpha, kind))
    site.give(product)
    return True


def _activated(site: Site, x: str) -> str | None:
    """Write the activation that a fused node names, with its parameters."""
    name = str(site.option("activation", "")) or "Identity"
    given = [float(value) for value in site.option("activation_params", [])]
    if name == "Identity":
        return x
    if name == "Clip" and len(given) == 2:
        return site.op("Clip", x, *(site.scalar(value, site.kind(0)) for value in given))
    words = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Relu": (), "Tanh": (), "Sigmoid": ()}
    if name not in words or len(given) > len(words[name]):
        return None
    attributes: dict[str, Any] = dict(zip(words[name], given, strict=False))
    return site.op(name, x, **attributes)


def _fused_conv(site: Site) -> bool:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    options = {name: site.option(name, None) for name in names}
    biases = [site.input(2)] if site.input(2) else []
    made = site.op("Conv", site.input(0), site.input(1), *biases, **options)
    if site.input(3):
        made = site.op("Add", made, site.input(3))
    result = _activated(site, made)
    if result is not None:
        site.give(result)
    return result is not None


def _fused_gemm(site: Site) -> bool:
    """Write a Gemm whose activation may have the parameters `activation_alpha` and `activation_beta`."""
    options = {name: site.option(name, None) for name in ("alpha", "beta", "transA", "transB")}
    biases = [site.input(2)] if site.input(2) else []
    made = site.op("Gemm", site.input(0), site.input(1), *biases, **options)
    name = str(site.option("activation", "")) or "Identity"
    if name not in ("Identity", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid"):
        return False
    words = {"alpha": site.option("activation_alpha", None), "beta": site.option("activation_beta", None)}
    site.give(made if name == "Identity" else site.op(name, made, **words))
    return True


def _standard(site: Site) -> bool:
    """Write an operator that ONNX has under the same name since."""
    inputs = [site.input(place) for place in range(len(site.node.input))]
    site.several(site.node.op_type, inputs, site.node.output, **site.options)
    return True


RULES: dict[str, Rule] = {
    "BiasAdd": _bias_add,
    "BiasGelu": _gelu,
    "BiasSoftmax": _bias_softmax,
    "DequantizeLinear": _standard,
    "EmbedLayerNormalization": _embeddings,
    "FastGelu": _fast_gelu,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "GatherND": _standard,
    "Gelu": _gelu,
    "Pad": _standard,
    "QuantizeLinear": _standard,
    "QuickGelu": _quick_gelu,
    "Range": _standard,
    "SimplifiedLayerNormalization": _simplified,
    "SkipLayerNormalization": _skip_layer,
    "SkipSimplifiedLayerNormalization": _skip_simplified,
    "TransposeMatMul": _fused_matmul,
    "Trilu": _standard,
}
