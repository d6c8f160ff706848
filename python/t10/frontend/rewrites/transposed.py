"""ConvTranspose as a Conv: zeros between the pixels, the kernel turned round, channels in and out exchanged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.frontend.rewrites.site import Rule, Shape, Site


@dataclass(frozen=True, slots=True)
class _Window:
    """Per spatial axis: stride, dilation, kernel, and how much of the full result is cut off (or, below 0, added)."""

    strides: Shape
    dilations: Shape
    kernel: Shape
    cut_low: Shape
    cut_high: Shape


def _conv_transpose(site: Site) -> bool:
    shape, weight = site.shape(0), site.shape(1)
    if shape is None or weight is None or len(shape) < 3 or not site.kind(0):
        return False
    n_groups = int(site.option("group", 1))
    window = _window(site, shape[2:], weight[2:])
    x, extents = site.input(0), list(shape)
    for dim, stride in enumerate(window.strides, start=2):
        x = _spread_out(site, x, extents, dim, stride)
    pads = [(k - 1) * d for k, d in zip(window.kernel, window.dilations, strict=True)]
    low = [pad - cut for pad, cut in zip(pads, window.cut_low, strict=True)]
    high = [pad - cut for pad, cut in zip(pads, window.cut_high, strict=True)]
    for dim, (before, after) in enumerate(zip(low, high, strict=True), start=2):
        if before < 0 or after < 0:
            start, end = max(0, -before), extents[dim] - max(0, -after)
            x = site.slice(x, dim, start, end)
            extents[dim] = end - start
    turned = _turned(site, weight, n_groups)
    inputs = [x, turned] + ([site.input(2)] if site.input(2) else [])
    site.op(
        "Conv", *inputs, output=site.node.output[0], group=n_groups, dilations=list(window.dilations),
        kernel_shape=list(window.kernel), pads=[max(0, p) for p in (*low, *high)],
    )  # fmt: skip
    return True


def _window(site: Site, spatial: Shape, kernel: Shape) -> _Window:
    """Return the window; `output_shape` and `auto_pad` determine what is cut off, explicit pads otherwise."""
    rank = len(spatial)
    strides = tuple(site.option("strides", [1] * rank))
    dilations = tuple(site.option("dilations", [1] * rank))
    more = tuple(site.option("output_padding", [0] * rank))
    full = [
        s * (n - 1) + (k - 1) * d + 1 for n, s, k, d in zip(spatial, strides, kernel, dilations, strict=True)
    ]
    auto, wanted = site.option("auto_pad", "NOTSET"), site.option("output_shape", None)
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        # Never more than there is: nothing is padded for it.
        wanted = [
            min(n * s, all_ + add) for n, s, all_, add in zip(spatial, strides, full, more, strict=True)
        ]
    if wanted is None:
        pads = site.option("pads", [0] * (2 * rank)) if auto == "NOTSET" else [0] * (2 * rank)
        high = tuple(pad - add for pad, add in zip(pads[rank:], more, strict=True))
        return _Window(strides, dilations, kernel, tuple(pads[:rank]), high)
    wanted = wanted[-rank:]
    total = [max(0, n + add - out) for n, add, out in zip(full, more, wanted, strict=True)]
    half = [t // 2 for t in total]
    low = half if auto == "SAME_UPPER" else [t - h for t, h in zip(total, half, strict=True)]
    cut_high = [n - out - before for n, out, before in zip(full, wanted, low, strict=True)]
    return _Window(strides, dilations, kernel, tuple(low), tuple(cut_high))


def _spread_out(site: Site, x: str, extents: list[int], dim: int, stride: int) -> str:
    """Return `x` with `stride - 1` zeros between neighbours along a dim; `extents` follow."""
    n = extents[dim]
    if stride == 1 or n == 1:
        return x
    column = [*extents[: dim + 1], 1, *extents[dim + 1 :]]
    filler = [*extents[: dim + 1], stride - 1, *extents[dim + 1 :]]
    zeros = site.op("Expand", site.scalar(0, site.kind(0)), site.constant(filler, np.int64))
    both = site.concat((site.reshape(x, column), zeros), dim + 1)
    extents[dim] = n * stride
    flat = site.reshape(both, extents)
    extents[dim] = n * stride - (stride - 1)
    return site.slice(flat, dim, 0, extents[dim])


def _turned(site: Site, weight: Shape, n_groups: int) -> str:
    """Return the weight (C, M/g, ...) as (M, C/g, ...), its spatial dims backwards."""
    c, m, kernel = weight[0], weight[1], weight[2:]
    w = site.input(1)
    for dim, extent in enumerate(kernel, start=2):
        if extent > 1:
            w = site.op("Gather", w, site.constant(np.arange(extent - 1, -1, -1, dtype=np.int64)), axis=dim)
    if n_groups == 1:
        return site.transpose(w, (1, 0, *range(2, len(weight))))
    grouped = site.reshape(w, (n_groups, c // n_groups, m, *kernel))
    moved = site.transpose(grouped, (0, 2, 1, *range(3, len(weight) + 1)))
    return site.reshape(moved, (n_groups * m, c // n_groups, *kernel))


RULES: dict[str, Rule] = {"ConvTranspose": _conv_transpose}
