"""Normalisations over channels, and reductions written with others."""

from __future__ import annotations

from math import prod

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Site

_LOWERED_FROM = 15
"""From this opset on, BatchNormalization is lowered as it is."""


def _batch_normalization(site: Site) -> bool:
    """Write (x - mean) * (scale / sqrt(variance + epsilon)) + bias, as at inference; in training if means are read."""
    shape, kind = site.shape(0), site.kind(0)
    is_read = any(site.output(place) for place in range(1, len(site.node.output)))
    if is_read and shape is not None and kind and site.option("training_mode", 0):
        return _batch_statistics(site, len(shape), kind)
    if site.facts.opset >= _LOWERED_FROM or shape is None or len(shape) < 2 or not kind or is_read:
        return False
    column = (shape[1], *[1] * (len(shape) - 2))
    noise = site.scalar(site.option("epsilon", 1e-5), kind)
    factor = site.op("Div", site.input(1), site.op("Sqrt", site.op("Add", site.input(4), noise)))
    centred = site.op("Sub", site.input(0), site.reshape(site.input(3), column))
    scaled = site.op("Mul", centred, site.reshape(factor, column))
    site.give(site.op("Add", scaled, site.reshape(site.input(2), column)))
    return True


def _batch_statistics(site: Site, rank: int, kind: int) -> bool:
    """Write the normalisation by statistics of the batch, and these mixed into the running ones."""
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    x, scale, bias, *running = (site.cast(site.input(place), inner) for place in range(5))
    axes, momentum = [0, *range(2, rank)], float(site.option("momentum", 0.9))
    mean = site.reduce("ReduceMean", x, axes, keep=True)
    centred = site.op("Sub", x, mean)
    variance = site.reduce("ReduceMean", site.op("Mul", centred, centred), axes, keep=True)
    noise = site.scalar(site.option("epsilon", 1e-5), inner)
    column, channels = (-1, *[1] * (rank - 2)), (-1,)
    factor = site.op("Div", site.reshape(scale, column), site.op("Sqrt", site.op("Add", variance, noise)))
    scaled = site.op("Add", site.op("Mul", centred, factor), site.reshape(bias, column))
    site.cast(scaled, kind, output=site.node.output[0])
    for place, (old, new) in enumerate(zip(running, (mean, variance), strict=True), start=1):
        if site.output(place):
            kept = site.op("Mul", old, site.scalar(momentum, inner))
            added = site.op("Mul", site.reshape(new, channels), site.scalar(1 - momentum, inner))
            site.cast(site.op("Add", kept, added), site.kind(place + 2), output=site.node.output[place])
    return True


def _local_response(site: Site) -> bool:
    """Write x / (bias + alpha / size * sum of squares)^beta, the sum over neighbouring channels."""
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or len(shape) < 2 or not kind:
        return False
    size, n = int(site.option("size", 1)), shape[1]
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    square = site.op("Mul", site.input(0), site.input(0))
    zero = site.scalar(0, kind)

    def zeros(count: int) -> list[str]:
        extents = site.constant([shape[0], count, *shape[2:]], np.int64)
        return [site.op("Expand", zero, extents)] if count else []

    parts = [*zeros(before), square, *zeros(after)]
    padded = site.concat(parts, 1) if len(parts) > 1 else square
    total = site.slice(padded, 1, 0, n)
    for start in range(1, size):
        total = site.op("Add", total, site.slice(padded, 1, start, start + n))
    scaled = site.op("Mul", total, site.scalar(site.option("alpha", 1e-4) / size, kind))
    base = site.op("Add", scaled, site.scalar(site.option("bias", 1.0), kind))
    power = site.op("Pow", base, site.scalar(site.option("beta", 0.75), kind))
    site.op("Div", site.input(0), power, output=site.node.output[0])
    return True


def _prelu(site: Site) -> bool:
    """Write a slope per channel, as old opsets have it, in extents that broadcast."""
    shape, slope = site.shape(0), site.shape(1)
    if shape is None or slope is None or len(shape) < 3 or slope != (shape[1],) or slope[0] in (1, shape[-1]):
        return False
    column = site.reshape(site.input(1), (slope[0], *[1] * (len(shape) - 2)))
    site.op("PRelu", site.input(0), column, output=site.node.output[0])
    return True


def _root_of_squares(site: Site) -> bool:
    """Write the root of a sum of squares: torch-mlir's own lowering aborts where all axes are of extent 1."""
    axes, kind = _reduced_axes(site), site.kind(0)
    if not axes or kind not in (KIND.FLOAT, KIND.DOUBLE):
        return False
    square = site.op("Mul", site.input(0), site.input(0))
    total = site.reduce("ReduceSum", square, axes, keep=bool(site.option("keepdims", 1)))
    site.op("Sqrt", total, output=site.node.output[0])
    return True


def _product(site: Site) -> bool:
    """Write a product of f16 over f32: what it goes through may be much larger or smaller than what comes out."""
    if site.kind(0) != KIND.FLOAT16:
        return False
    others = [site.input(1)] if site.input(1) else []
    wide = site.op("ReduceProd", site.cast(site.input(0), KIND.FLOAT), *others, **site.options)
    site.cast(wide, KIND.FLOAT16, output=site.node.output[0])
    return True


def _log_sum_exp(site: Site) -> bool:
    """Write m + log(sum of exp(x - m)) with the largest element m, or 0 where that is infinite: no power overflows."""
    shape, axes, kind = site.shape(0), _reduced_axes(site), site.kind(0)
    if shape is None or axes is None or not kind:
        return False
    if not axes:
        site.give(site.input(0))
        return True
    is_float = kind in (KIND.FLOAT, KIND.DOUBLE)
    inner = kind if is_float else KIND.FLOAT
    x = site.input(0) if is_float else site.cast(site.input(0), inner)
    largest = site.reduce("ReduceMax", x, axes, keep=True)
    shift = site.op("Where", site.op("IsInf", largest), site.scalar(0, inner), largest)
    total = site.reduce("ReduceSum", site.op("Exp", site.op("Sub", x, shift)), axes, keep=True)
    result = site.op("Add", site.op("Log", total), shift)
    if not site.option("keepdims", 1):
        result = site.reshape(result, [n for axis, n in enumerate(shape) if axis not in axes])
    site.cast(result, kind, output=site.node.output[0])
    return True


def _mean(site: Site) -> bool:
    """Write the mean of integers as their sum in int64, divided towards zero as ONNX Runtime does."""
    axes, shape, kind = _reduced_axes(site), site.shape(0), site.kind(0)
    if axes is None or shape is None or kind not in (KIND.INT32, KIND.INT64):
        return False
    if not axes:
        site.give(site.input(0))
        return True
    wide = site.cast(site.input(0), KIND.INT64)
    total = site.reduce("ReduceSum", wide, axes, keep=bool(site.option("keepdims", 1)))
    n_summed = site.scalar(max(1, prod(shape[axis] for axis in axes)), KIND.INT64)
    site.cast(site.op("Div", total, n_summed), kind, output=site.node.output[0])
    return True


def _reduced_axes(site: Site) -> list[int] | None:
    """Return the axes that a reduction goes over, none where it hands its input on; None if they are unknown."""
    shape = site.shape(0)
    given = site.constant_input(1) if site.input(1) else np.array(site.option("axes", []), np.int64)
    if shape is None or given is None:
        return None
    if given.size or site.option("noop_with_empty_axes", 0):
        return [int(axis) % len(shape) for axis in given]
    return list(range(len(shape)))


RULES: dict[str, Rule] = {
    "BatchNormalization": _batch_normalization,
    "LRN": _local_response,
    "PRelu": _prelu,
    "ReduceL2": _root_of_squares,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMean": _mean,
    "ReduceProd": _product,
}
