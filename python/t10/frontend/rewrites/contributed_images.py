"""Operators that ONNX Runtime's optimiser makes of diffusion models, on images whose channels are last.

GroupNorm       y = (x - mean) / sqrt(variance + epsilon) * gamma + beta over a group of channels; y * sigmoid(y)
SkipGroupNorm   GroupNorm of x + skip + bias
BiasSplitGelu   y = left * Gelu(right), the halves of x + bias
NhwcConv        Conv of an image and a kernel whose channels are last
"""

from __future__ import annotations

from math import prod, sqrt

from t10.frontend.rewrites.contributed import half, wide_kind
from t10.frontend.rewrites.site import KIND, Rule, Site

_FLOATS = (KIND.FLOAT, KIND.FLOAT16)


def _in_order(site: Site, x: str, rank: int) -> str:
    """Write an image with its channels before its pixels."""
    return site.transpose(x, (0, rank - 1, *range(1, rank - 1)))


def _channels_last(site: Site, x: str, rank: int) -> str:
    """Write an image with its channels behind its pixels."""
    return site.transpose(x, (0, *range(2, rank), 1))


def _max_pool(site: Site) -> bool:
    rank = len(site.shape(0) or ())
    if rank < 3:
        return False
    pooled = site.op("MaxPool", _in_order(site, site.input(0), rank), **site.options)
    site.give(_channels_last(site, pooled, rank))
    return True


def _conv(site: Site) -> bool:
    rank = len(site.shape(0) or ())
    if rank < 3:
        return False
    biases = [site.input(2)] if site.input(2) else []
    factors = [_in_order(site, site.input(place), rank) for place in (0, 1)]
    site.give(_channels_last(site, site.op("Conv", *factors, *biases, **site.options), rank))
    return True


def _group_norm(site: Site) -> bool:
    return _normal_groups(site, site.input(0))


def _skip_group_norm(site: Site) -> bool:
    shape, skip = site.shape(0), site.shape(3)
    if shape is None or skip is None or not site.option("channels_last", 1):
        return False
    added = site.input(3)
    if len(skip) == 2:
        added = site.reshape(added, (skip[0], *[1] * (len(shape) - 2), skip[1]))
    total = site.op("Add", site.input(0), added)
    if site.input(4):
        total = site.op("Add", total, site.input(4))
    site.give(total, 1)
    return _normal_groups(site, total)


def _normal_groups(site: Site, x: str) -> bool:
    """Write the norm of an image of the extents and type of the first input, all of it in f32 at least."""
    shape, kind, groups = site.shape(0), site.kind(0), int(site.option("groups", 0))
    is_last = bool(site.option("channels_last", 1))
    if shape is None or len(shape) < 3 or kind not in _FLOATS:
        return False
    channels = shape[-1] if is_last else shape[1]
    if groups < 1 or channels % groups:
        return False
    inner, of_group, pixels = wide_kind(kind), channels // groups, prod(shape) // (shape[0] * channels)
    apart = (shape[0], pixels, groups, of_group) if is_last else (shape[0], groups, of_group, pixels)
    axes = [1, 3] if is_last else [2, 3]
    wide = site.reshape(x if kind == inner else site.cast(x, inner), apart)
    centred = site.op("Sub", wide, site.reduce("ReduceMean", wide, axes, keep=True))
    variance = site.reduce("ReduceMean", site.op("Mul", centred, centred), axes, keep=True)
    epsilon = site.scalar(float(site.option("epsilon", 1e-5)), inner)
    made = site.reshape(site.op("Div", centred, site.op("Sqrt", site.op("Add", variance, epsilon))), shape)
    for operator, place in (("Mul", 1), ("Add", 2)):
        row = site.input(place) if site.kind(place) == inner else site.cast(site.input(place), inner)
        row = row if is_last else site.reshape(row, (channels, *[1] * (len(shape) - 2)))
        made = site.op(operator, made, row)
    if site.option("activation", 0):
        made = site.op("Mul", made, site.op("Sigmoid", made))
    site.give(made if kind == inner else site.cast(made, kind))
    return True


def _bias_split_gelu(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or kind not in _FLOATS or shape[-1] % 2:
        return False
    x, last, middle = site.op("Add", site.input(0), site.input(1)), len(shape) - 1, shape[-1] // 2
    left, right = site.slice(x, last, 0, middle), site.slice(x, last, middle, 2 * middle)
    power = site.op("Erf", site.op("Div", right, site.scalar(sqrt(2), kind)))
    site.give(site.op("Mul", left, half(site, kind, right, power)))
    return True


RULES: dict[str, Rule] = {
    "BiasSplitGelu": _bias_split_gelu,
    "GroupNorm": _group_norm,
    "NhwcConv": _conv,
    "NhwcMaxPool": _max_pool,
    "SkipGroupNorm": _skip_group_norm,
}
