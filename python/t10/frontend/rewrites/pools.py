"""Pools whose last window may reach beyond the padding (`ceil_mode`), and powers summed over windows.

AveragePool, ceil_mode    the mean over whole windows, times taps of a window / taps that count
LpPool                    (mean of |x|^p over whole windows * taps of a window)^(1/p)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.errors import InputError
from t10.frontend.rewrites.site import KIND, Rule, Shape, Site


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows along one axis: `n` elements between `low` and `high` given zeros; `n_windows` of them are computed."""

    n: int
    kernel: int
    stride: int
    dilation: int
    low: int
    high: int
    n_windows: int

    @property
    def reach(self) -> int:
        """Return how many zeros the last window needs behind the elements."""
        last = (self.n_windows - 1) * self.stride + (self.kernel - 1) * self.dilation + 1
        return max(last - self.n - self.low, 0)

    def counts(self, *, with_padding: bool) -> NDArray[np.float64]:
        """Return how many taps of every window lie on elements, or on elements and given zeros."""
        windows, taps = np.arange(self.n_windows)[:, None], np.arange(self.kernel)[None, :]
        places = windows * self.stride + taps * self.dilation - self.low
        low, high = (self.low, self.high) if with_padding else (0, 0)
        return ((places >= -low) & (places < self.n + high)).sum(axis=1).astype(np.float64)


def _windows(site: Site, spatial: Shape, kernel: Shape) -> tuple[Windows, ...]:
    """Return the windows of a pool along every spatial axis; raises `InputError` where the model declares others."""
    rank = len(spatial)
    strides, dilations = (tuple(site.option(name, [1] * rank)) for name in ("strides", "dilations"))
    pads, auto = tuple(site.option("pads", [0] * 2 * rank)), str(site.option("auto_pad", "NOTSET"))
    is_ceil = bool(site.option("ceil_mode", 0))
    found: list[Windows] = []
    for i, n in enumerate(spatial):
        span = (kernel[i] - 1) * dilations[i] + 1
        low, high = (pads[i], pads[i + rank]) if auto == "NOTSET" else (0, 0)
        if auto.startswith("SAME"):
            missing = max((-(-n // strides[i]) - 1) * strides[i] + span - n, 0)
            low = missing // 2 if auto == "SAME_UPPER" else missing - missing // 2
            high = missing - low
        room = n + low + high - span
        count = (-(-room // strides[i]) if is_ceil else room // strides[i]) + 1
        # A window that would start behind the elements and the zeros before them is left out.
        is_behind = is_ceil and (count - 1) * strides[i] >= n + low
        found.append(Windows(n, kernel[i], strides[i], dilations[i], low, high, count - int(is_behind)))
    made, declared = tuple(axis.n_windows for axis in found), site.facts.shapes.get(site.node.output[0])
    if declared is not None and declared[2:] != made:
        raise InputError(
            f"{site.node.op_type} makes {made}, the model declares {declared[2:]} behind batch and channels",
            operator=site.node.name or site.stem,
            hint="leave the shape out of the model, or export it again",
        )
    return tuple(found)


def _average_pool(site: Site) -> bool:
    """Write a mean with `ceil_mode`; others are lowered as they are."""
    shape, kernel, kind = site.shape(0), site.option("kernel_shape", None), site.kind(0)
    if shape is None or not kernel or len(kernel) != len(shape) - 2 or not site.option("ceil_mode", 0):
        return False
    windows = _windows(site, shape[2:], tuple(kernel))
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    mean = _window_mean(site, site.cast(site.input(0), inner), shape, windows)
    with_padding = bool(site.option("count_include_pad", 0))
    counts = reduce(np.multiply.outer, (axis.counts(with_padding=with_padding) for axis in windows))
    share = prod(kernel) / np.maximum(counts, 1)
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
    mean = _window_mean(site, power, shape, _windows(site, shape[2:], tuple(kernel)))
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
