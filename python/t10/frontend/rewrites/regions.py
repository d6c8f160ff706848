"""Regions of images at computed places: RoiAlign as two products, DeformConv as a GridSample and a product.

wy[r, o, h] = mean over the samples s of bin o of region r: max(0, 1 - |y_s - h|)
y[r, c]     = wy[r] x[batch of r, c] transpose(wx[r])
"""

from __future__ import annotations

from math import prod

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

_HALF_PIXELS_FROM = 16
"""The opset since which a pixel's middle is at a half unless RoiAlign says otherwise."""


def _roi_align(site: Site) -> bool:
    """Write the mean over a fixed number of samples per bin; maxima, and numbers that the region decides, stay."""
    shape, regions = site.shape(0), site.shape(1)
    n_samples = int(site.option("sampling_ratio", 0))
    kinds = (site.kind(0), site.kind(1))
    if shape is None or regions is None or kinds != (KIND.FLOAT, KIND.FLOAT):
        return False
    if len(shape) != 4 or n_samples < 1 or str(site.option("mode", "avg")) != "avg":
        return False
    counts = int(site.option("output_height", 1)), int(site.option("output_width", 1))
    images = site.op("Gather", site.input(0), site.input(2), axis=0)
    # A region is x1, y1, x2, y2.
    down, across = (
        _bins(site, regions[0], corner, counts[axis], shape[2 + axis]) for axis, corner in ((0, 1), (1, 0))
    )
    rows = site.op("MatMul", site.reshape(down, (regions[0], 1, counts[0], shape[2])), images)
    columns = site.reshape(site.transpose(across, (0, 2, 1)), (regions[0], 1, shape[3], counts[1]))
    site.give(site.op("MatMul", rows, columns))
    return True


def _bins(site: Site, n: int, corner: int, n_bins: int, extent: int) -> str:
    """Return how much of every row of an image each bin of each region takes, (regions, bins, extent)."""
    n_samples = int(site.option("sampling_ratio", 0))
    default = "half_pixel" if site.facts.opset >= _HALF_PIXELS_FROM else "output_half_pixel"
    is_aligned = str(site.option("coordinate_transformation_mode", default)) == "half_pixel"

    def number(value: float) -> str:
        return site.scalar(value, KIND.FLOAT)

    scale = number(float(site.option("spatial_scale", 1.0)))
    start, end = (
        site.op("Mul", site.slice(site.input(1), 1, place, place + 1), scale)
        for place in (corner, corner + 2)
    )
    size = site.op("Sub", end, start)
    if is_aligned:
        start = site.op("Sub", start, number(0.5))
    else:
        size = site.op("Max", size, number(1.0))
    # The middle of each sample, in parts of the region.
    parts = (np.arange(n_bins * n_samples, dtype=np.float32) + 0.5) / (n_bins * n_samples)
    y = site.op("Add", start, site.op("Mul", size, site.constant(parts.reshape(1, -1))))
    is_inside = site.op(
        "And",
        site.op("GreaterOrEqual", y, number(-1.0)),
        site.op("LessOrEqual", y, number(float(extent))),
    )
    clipped = site.op("Min", site.op("Max", y, number(0.0)), number(extent - 1.0))
    rows = site.constant(np.arange(extent, dtype=np.float32).reshape(1, 1, extent))
    away = site.op("Abs", site.op("Sub", site.reshape(clipped, (n, n_bins * n_samples, 1)), rows))
    weight = site.op("Max", site.op("Sub", number(1.0), away), number(0.0))
    chosen = site.op("Where", site.reshape(is_inside, (n, n_bins * n_samples, 1)), weight, number(0.0))
    by_bin = site.reshape(chosen, (n, n_bins, n_samples, extent))
    return site.reduce("ReduceMean", by_bin, [2], keep=False)


def _deform_conv(site: Site) -> bool:
    """Read every pixel of every window where its offset says, then multiply as a convolution does."""
    shape, kernel, offsets = site.shape(0), site.shape(1), site.shape(2)
    if shape is None or kernel is None or offsets is None or len(shape) != 4 or min(shape[2:]) < 2:
        return False
    if {site.kind(place) for place in range(3)} != {KIND.FLOAT}:
        return False
    n, channels, taps, pixels = shape[0], shape[1], prod(kernel[2:]), prod(offsets[2:])
    groups, kinds = int(site.option("group", 1)), int(site.option("offset_group", 1))
    grid = _places(site, shape, kernel, offsets)
    images = site.reshape(site.input(0), (n * kinds, channels // kinds, *shape[2:]))
    read = site.op("GridSample", images, grid, mode=_LINEAR[site.facts.opset >= 20], align_corners=1)
    if site.input(4):
        read = site.op("Mul", read, site.reshape(site.input(4), (n * kinds, 1, taps, pixels)))
    columns = site.reshape(read, (n, groups, channels // groups * taps, pixels))
    weight = site.reshape(site.input(1), (1, groups, kernel[0] // groups, kernel[1] * taps))
    made = site.reshape(site.op("MatMul", weight, columns), (n, kernel[0], *offsets[2:]))
    if site.input(3):
        made = site.op("Add", made, site.reshape(site.input(3), (1, kernel[0], 1, 1)))
    site.give(made)
    return True


_LINEAR = {False: "bilinear", True: "linear"}
"""What GridSample calls it before opset 20, and since."""


def _places(site: Site, shape: Shape, kernel: Shape, offsets: Shape) -> str:
    """Return where every tap of every window reads: (images and offset groups, taps, windows, 2), x first, -1 .. 1."""
    kinds = int(site.option("offset_group", 1))
    strides, dilations = (list(site.option(word, [1, 1])) for word in ("strides", "dilations"))
    pads = list(site.option("pads", [0, 0, 0, 0]))
    taps, windows = kernel[2:], offsets[2:]
    moved = site.reshape(site.input(2), (shape[0] * kinds, prod(taps), 2, prod(windows)))
    moved = site.transpose(moved, (0, 1, 3, 2))
    steps = [
        np.arange(taps[axis])[:, None] * dilations[axis]
        + np.arange(windows[axis])[None, :] * strides[axis]
        - pads[axis]
        for axis in (0, 1)
    ]
    rows = np.broadcast_to(steps[0][:, None, :, None], (*taps, *windows))
    columns = np.broadcast_to(steps[1][None, :, None, :], (*taps, *windows))
    still = np.stack([rows, columns], axis=-1).reshape(1, prod(taps), prod(windows), 2)
    places = site.op("Add", moved, site.constant(still, np.float32))
    scales = np.array([2 / (extent - 1) for extent in shape[2:]], np.float32)
    scaled = site.op("Sub", site.op("Mul", places, site.constant(scales)), site.scalar(1.0, KIND.FLOAT))
    return site.op("Gather", scaled, site.constant([1, 0], np.int64), axis=3)


RULES: dict[str, Rule] = {"DeformConv": _deform_conv, "RoiAlign": _roi_align}
