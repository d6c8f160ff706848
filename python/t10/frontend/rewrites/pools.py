"""Averages over windows that reach further on one side, and powers summed over windows.

AveragePool     the mean over whole windows, times taps of a window / taps on elements
LpPool          (mean of |x|^p over whole windows * taps of a window)^(1/p)
"""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np

from t10.frontend.pool_windows import Windows, windows_of
from t10.frontend.rewrites.site import KIND, Rule, Shape, Site


def _average_pool(site: Site) -> bool:
    """Write a mean over elements where one side has more zeros than the other; others are lowered as they are."""
    shape, kernel, kind = site.shape(0), site.option("kernel_shape", None), site.kind(0)
    if shape is None or not kernel or len(kernel) != len(shape) - 2 or site.option("count_include_pad", 0):
        return False
    windows = windows_of(site.node, shape[2:])
    if all(axis.low == axis.high and axis.dilation == 1 for axis in windows):
        return False
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    mean = _window_mean(site, site.cast(site.input(0), inner), shape, windows)
    share = prod(kernel) / np.maximum(reduce(np.multiply.outer, (axis.counts() for axis in windows)), 1)
    if (share != 1).any():
        mean = site.op("Mul", mean, site.constant(share, np.promote_types(site.dtype(0), np.float32)))
    site.cast(mean, kind, output=site.node.output[0])
    return True


def _lp_pool(site: Site) -> bool:
    """Write (sum of |x|^p over a window)^(1/p)."""
    shape, kernel, kind = site.shape(0), site.option("kernel_shape", None), site.kind(0)
    if shape is None or not kernel or len(kernel) != len(shape) - 2 or kind not in (KIND.FLOAT, KIND.DOUBLE):
        return False
    p, x = int(site.option("p", 2)), site.input(0)
    power = site.op("Mul", x, x) if p == 2 else site.op("Pow", site.op("Abs", x), site.scalar(p, kind))
    mean = _window_mean(site, power, shape, windows_of(site.node, shape[2:]))
    total = site.op("Mul", mean, site.scalar(prod(kernel), kind))
    site.give(site.op("Sqrt", total) if p == 2 else site.op("Pow", total, site.scalar(1 / p, kind)))
    return True


def _window_mean(site: Site, x: str, shape: Shape, windows: tuple[Windows, ...]) -> str:
    """Write the mean over all taps of every window, zeros outside: a pool, or a convolution where taps lie apart."""
    kernel, strides = [axis.kernel for axis in windows], [axis.stride for axis in windows]
    pads = [axis.low for axis in windows] + [axis.reach for axis in windows]
    if all(axis.dilation == 1 for axis in windows):
        return site.op("AveragePool", x, kernel_shape=kernel, strides=strides, pads=pads, count_include_pad=1)
    images = site.reshape(x, (shape[0] * shape[1], 1, *shape[2:]))
    weights = site.constant(
        np.full((1, 1, *kernel), 1 / prod(kernel)), np.promote_types(site.dtype(0), np.float32)
    )
    dilations = [axis.dilation for axis in windows]
    mean = site.op("Conv", images, weights, strides=strides, pads=pads, dilations=dilations)
    return site.reshape(mean, (*shape[:2], *(axis.n_windows for axis in windows)))


RULES: dict[str, Rule] = {"AveragePool": _average_pool, "LpPool": _lp_pool}
