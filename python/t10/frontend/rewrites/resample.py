"""Resize as one product per axis with a constant matrix of weights.

    y[.., o, ..] = sum over i of M[o, i] * x[.., i, ..]

Where every row has a single 1, elements are only moved: repeated, sliced or, if those follow no rule, gathered.
M follows from the coordinates that ONNX defines, for all its modes, antialiasing and excluded borders included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a Resize; `scale` is as given: `n_in * scale` need not be `n_out`; `roi` is its start and end."""

    n_in: int
    n_out: int
    scale: float
    roi: tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Filter:
    """How a value between pixels is found."""

    mode: str
    coordinates: str
    nearest: str
    cubic: float
    excludes_outside: bool
    is_antialiased: bool


def _resize(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    axes = None if shape is None else _axes(site, shape)
    if shape is None or axes is None:
        return False
    how = _Filter(
        mode=str(site.option("mode", "nearest")),
        coordinates=str(site.option("coordinate_transformation_mode", "half_pixel")),
        nearest=str(site.option("nearest_mode", "round_prefer_floor")),
        cubic=float(site.option("cubic_coeff_a", -0.75)),
        excludes_outside=bool(site.option("exclude_outside", 0)),
        is_antialiased=bool(site.option("antialias", 0)),
    )
    is_exact = how.mode == "nearest"
    if not is_exact and kind not in (KIND.FLOAT, KIND.FLOAT16):
        return False
    x, outside = site.input(0), list[tuple[int, NDArray[np.bool_]]]()
    for dim, axis in axes.items():
        matrix, is_outside = _matrix(axis, how)
        if is_outside.any():
            outside.append((dim, is_outside))
        if axis.n_in == axis.n_out and np.array_equal(matrix, np.eye(axis.n_in)):
            continue
        x = _applied(site, x, matrix, dim, shape, kind)
        shape = (*shape[:dim], axis.n_out, *shape[dim + 1 :])
    if outside:
        x = _extrapolated(site, x, outside, len(shape), kind)
    site.give(x)
    return True


def _axes(site: Site, shape: Shape) -> dict[int, _Axis] | None:
    """Return the axes that are resized, None where sizes or scales are not constant."""
    scales, sizes, roi = (site.constant_input(place) for place in (2, 3, 1))
    dims = [int(dim) % len(shape) for dim in site.option("axes", range(len(shape)))]
    n = len(dims)
    if roi is None or roi.size != 2 * n:
        roi = np.array([0.0] * n + [1.0] * n)
    spans = [(float(roi[i]), float(roi[i + n])) for i in range(n)]
    if sizes is not None and sizes.size == n:
        ratios = [int(size) / shape[dim] for size, dim in zip(sizes, dims, strict=True)]
        policy = str(site.option("keep_aspect_ratio_policy", "stretch"))
        if policy != "stretch":
            one = min(ratios) if policy == "not_larger" else max(ratios)
            ends = [math.floor(one * shape[dim] + 0.5) for dim in dims]
            ratios = [one] * n
        else:
            ends = [int(size) for size in sizes]
    elif scales is not None and scales.size == n:
        ratios = [float(scale) for scale in scales]
        # Scales are f32, and so is the product: 5 * 1.4 is 7 elements, though 1.4 as f32 is less.
        ends = [math.floor(np.float32(shape[dim]) * scale) for dim, scale in zip(dims, scales, strict=True)]
    else:
        return None
    return {
        dim: _Axis(shape[dim], end, ratio, span)
        for dim, end, ratio, span in zip(dims, ends, ratios, spans, strict=True)
    }


def _matrix(axis: _Axis, how: _Filter) -> tuple[Matrix, NDArray[np.bool_]]:
    """Return the weights (n_out, n_in), and which rows lie outside of what is cropped."""
    matrix = np.zeros((axis.n_out, axis.n_in))
    is_outside = np.zeros(axis.n_out, np.bool_)
    # In f32, as scales are given and runtimes compute: what is nearest may hang on the last bit.
    number: Any = np.float32 if how.mode == "nearest" else float
    axis = replace(axis, scale=number(axis.scale))
    for row in range(axis.n_out):
        place = float(_coordinate(number(row), axis, how.coordinates))
        is_outside[row] = how.coordinates == "tf_crop_and_resize" and not 0 <= place <= axis.n_in - 1
        for source, weight in _weights(place, axis, how):
            matrix[row, min(max(source, 0), axis.n_in - 1)] += weight
    return matrix, is_outside


def _coordinate(row: float, axis: _Axis, mode: str) -> float:
    """Return the place among the inputs that an output stands at."""
    width = axis.scale * axis.n_in
    if mode == "align_corners":
        return 0.0 if width == 1 else row * (axis.n_in - 1) / (width - 1)
    if mode == "asymmetric":
        return row / axis.scale
    if mode == "tf_half_pixel_for_nn":
        return row if axis.scale == 1 else (row + 0.5) / axis.scale
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        span = (end - start) * (axis.n_in - 1)
        return (
            span / 2 + start * (axis.n_in - 1)
            if width == 1
            else row * span / (width - 1) + start * (axis.n_in - 1)
        )
    if mode == "pytorch_half_pixel" and width == 1:
        return -0.5
    offset = axis.n_in / 2 * (1 - axis.n_out / width) if mode == "half_pixel_symmetric" else 0.0
    return offset + (row + 0.5) / axis.scale - 0.5


def _weights(place: float, axis: _Axis, how: _Filter) -> list[tuple[int, float]]:
    """Return the inputs that an output is made of, and their parts in it; inputs outside stand for the border."""
    below = math.floor(place)
    if how.mode == "nearest":
        return [(_nearest(place, below, how.nearest), 1.0)]
    stretch = min(axis.scale, 1.0) if how.is_antialiased else 1.0
    reach = (2 if how.mode == "cubic" else 1) / stretch
    sources = range(math.floor(place - reach) + 1, math.ceil(place + reach))
    found = [(i, _kernel((i - place) * stretch, how)) for i in sources]
    total = sum(weight for _, weight in found)
    if how.is_antialiased:
        found = [(i, weight / total) for i, weight in found]
    if how.excludes_outside:
        found = [(i, weight) for i, weight in found if 0 <= i < axis.n_in]
        total = sum(weight for _, weight in found)
        found = [(i, weight / total) for i, weight in found]
    return found


def _nearest(place: float, below: int, mode: str) -> int:
    if place == below or mode == "floor":
        return below
    if mode == "ceil":
        return below + 1
    part = place - below
    return below + int(part > 0.5 or (part == 0.5 and mode == "round_prefer_ceil"))


def _kernel(distance: float, how: _Filter) -> float:
    x, a = abs(distance), how.cubic
    if how.mode != "cubic":
        return max(0.0, 1 - x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _applied(site: Site, x: str, matrix: Matrix, dim: int, shape: Shape, kind: int) -> str:
    """Return `x` of a shape with a matrix applied along one of its dims."""
    is_single = ((matrix != 0).sum(axis=1) == 1).all() and np.isin(matrix, (0.0, 1.0)).all()
    if is_single:
        return _taken(site, x, matrix.argmax(axis=1).astype(np.int64), dim, shape)
    dtype, rank = np.float16 if kind == KIND.FLOAT16 else np.float32, len(shape)
    if dim == rank - 1:
        return site.op("MatMul", x, site.constant(np.ascontiguousarray(matrix.T), dtype))
    if dim == rank - 2:
        return site.op("MatMul", site.constant(matrix, dtype), x)
    order = [*(d for d in range(rank) if d != dim), dim]
    moved = site.op("MatMul", site.transpose(x, order), site.constant(np.ascontiguousarray(matrix.T), dtype))
    return site.transpose(moved, np.argsort(order).tolist())


def _taken(site: Site, x: str, rows: NDArray[np.int64], dim: int, shape: Shape) -> str:
    """Return `x` of a shape with these rows along one of its dims."""
    n, taken = shape[dim], [int(row) for row in rows]
    step = taken[1] - taken[0] if len(taken) > 1 else 1
    if taken and step > 0 and taken == list(range(taken[0], taken[-1] + 1, step)):
        return site.slice(x, dim, taken[0], taken[-1] + 1, step)
    times = len(taken) // n
    if times == 0 or taken != [row for row in range(n) for _ in range(times)]:
        return site.op("Gather", x, site.constant(rows), axis=dim)
    before, after = shape[:dim], shape[dim + 1 :]
    one = site.reshape(x, (*before, n, 1, *after))
    several = site.op("Expand", one, site.constant(np.array((*before, n, times, *after), np.int64)))
    return site.reshape(several, (*before, n * times, *after))


def _extrapolated(
    site: Site, x: str, outside: list[tuple[int, NDArray[np.bool_]]], rank: int, kind: int
) -> str:
    """Return `x` with the extrapolation value where any axis lies outside."""
    value = site.scalar(site.option("extrapolation_value", 0.0), kind)
    for dim, is_outside in outside:
        mask = is_outside.reshape([-1 if axis == dim else 1 for axis in range(rank)])
        x = site.op("Where", site.constant(mask), value, x)
    return x


RULES: dict[str, Rule] = {"Resize": _resize}
