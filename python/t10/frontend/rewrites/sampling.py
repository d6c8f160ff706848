"""GridSample as two products: every place asked for is a weighted sum of rows and of columns.

    wy[p, h] = sum over taps t of weight_t(y_p) where the row of tap t is h
    y[p]     = sum over h of wy[p, h] * sum over w of wx[p, w] * x[h, w]

Rows that lie outside are no row at all (zeros), the nearest one (border), or the one they are mirrored to (reflection).

AffineGrid is one product: the places of a regular grid, which are constant, times the map.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.frontend.rewrites.site import KIND, Rule, Site


@dataclass(frozen=True, slots=True)
class _Sampling:
    mode: str
    padding: str
    is_aligned: bool


def _grid_sample(site: Site) -> bool:
    shape, grid = site.shape(0), site.shape(1)
    kinds = (site.kind(0), site.kind(1))
    if shape is None or grid is None or len(shape) < 4 or kinds != (KIND.FLOAT, KIND.FLOAT):
        return False
    mode = str(site.option("mode", "linear"))
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    how = _Sampling(mode, str(site.option("padding_mode", "zeros")), bool(site.option("align_corners", 0)))
    n, channels, spatial = shape[0], shape[1], shape[2:]
    n_places = prod(grid[1:-1])
    x = site.input(0)
    # One axis after the other, the last first, as coordinates come. With the first, places take the place of the axis.
    for number, extent in enumerate(reversed(spatial)):
        place = site.slice(site.input(1), len(grid) - 1, number, number + 1)
        weights = _weights(site, site.reshape(place, (n, n_places, 1)), extent, how)
        rest = spatial[: len(spatial) - 1 - number]
        if number == 0:
            flat = site.reshape(x, (n, channels * prod(rest), extent))
            x = site.op("MatMul", flat, site.transpose(weights, (0, 2, 1)))
            x = site.reshape(x, (n, channels, *rest, n_places))
            continue
        outer = site.reshape(site.transpose(weights, (0, 2, 1)), (n, *[1] * len(rest), 1, extent, n_places))
        x = site.reduce("ReduceSum", site.op("Mul", x, outer), [2 + len(rest)], keep=False)
    site.give(site.reshape(x, (n, channels, *grid[1:-1])))
    return True


def _weights(site: Site, place: str, extent: int, how: _Sampling) -> str:
    """Return how much of every row each place takes, (batch, places, extent)."""
    number = _Numbers(site)
    if how.is_aligned:
        y = number.times(number.plus(place, 1.0), (extent - 1) / 2)
    else:
        y = number.plus(number.times(number.plus(place, 1.0), extent / 2), -0.5)
    if how.mode == "nearest":
        y = site.op("Round", y)
    y = _inside(number, y, extent, how, is_tap=False)
    below = site.op("Floor", y)
    part = site.op("Sub", y, below)
    taps = {"nearest": ((0, ""),), "linear": ((0, "linear"), (1, "linear"))}.get(
        how.mode, tuple((tap, "cubic") for tap in (-1, 0, 1, 2))
    )
    rows = site.constant(np.arange(extent, dtype=np.float32).reshape(1, 1, extent))
    total = ""
    for tap, kernel in taps:
        row = number.plus(below, float(tap)) if kernel else y
        is_row = site.op("Equal", _inside(number, row, extent, how, is_tap=True), rows)
        weight = _kernel(number, part, tap) if kernel == "cubic" else number.constant(1.0)
        if kernel == "linear":
            weight = part if tap else number.plus(number.times(part, -1.0), 1.0)
        term = site.op("Where", is_row, weight, number.constant(0.0))
        total = site.op("Add", total, term) if total else term
    return total


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Arithmetic with numbers."""

    site: Site

    def constant(self, value: float) -> str:
        return self.site.scalar(value, KIND.FLOAT)

    def plus(self, x: str, value: float) -> str:
        return self.site.op("Add", x, self.constant(value))

    def times(self, x: str, value: float) -> str:
        return self.site.op("Mul", x, self.constant(value))


def _inside(number: _Numbers, y: str, extent: int, how: _Sampling, *, is_tap: bool) -> str:
    """Return where a place, or a tap beside it, is read; unchanged where what lies outside is zero."""
    site = number.site
    if how.padding == "zeros":
        return y
    low, high = (0.0, extent - 1.0) if how.is_aligned else (-0.5, extent - 0.5)
    if how.padding == "border":
        clamped = site.op("Min", site.op("Max", y, number.constant(0.0)), number.constant(extent - 1.0))
        if is_tap or how.mode != "cubic":
            return clamped
        # The outer half of a border row is inside: its value changes there, because taps on either side do.
        below, above = site.op("Less", y, number.constant(low)), site.op("Greater", y, number.constant(high))
        return site.op("Where", site.op("Or", below, above), clamped, y)
    span = high - low
    if span <= 0:
        return number.times(y, 0.0)
    # A wave: distance from `low`, folded into 0 .. 2 span, the second half on its way back.
    away = number.plus(y, -low)
    periods = site.op("Floor", number.times(away, 1 / (2 * span)))
    folded = site.op("Sub", away, number.times(periods, 2 * span))
    back = number.plus(number.times(folded, -1.0), 2 * span)
    mirrored = number.plus(site.op("Min", folded, back), low)
    if is_tap:
        return site.op("Min", site.op("Max", mirrored, number.constant(0.0)), number.constant(extent - 1.0))
    return mirrored


_CUBIC = -0.75
MOST_PLACES = 1 << 20
"""A grid of more places would be a large constant of the program."""


def _kernel(number: _Numbers, part: str, tap: int) -> str:
    """Return the weight of a tap at -1, 0, 1 or 2 from the row below a place, `part` of a row away from it."""
    site, a = number.site, _CUBIC
    x = {
        -1: lambda: number.plus(part, 1.0),
        0: lambda: part,
        1: lambda: number.plus(number.times(part, -1.0), 1.0),
        2: lambda: number.plus(number.times(part, -1.0), 2.0),
    }[tap]()
    if tap in (0, 1):
        inner = number.plus(number.times(x, a + 2), -(a + 3))
        return number.plus(site.op("Mul", site.op("Mul", inner, x), x), 1.0)
    inner = number.plus(number.times(x, a), -5 * a)
    inner = number.plus(site.op("Mul", inner, x), 8 * a)
    return number.plus(site.op("Mul", inner, x), -4 * a)


def _affine_grid(site: Site) -> bool:
    """Return the places that a grid of -1 .. 1 has after an affine map: (batch, rows, columns, 2), or so with depth.

    A place that is read last varies fastest, and comes first in the result.
    """
    size, kind, shape = site.constant_input(1), site.kind(0), site.shape(0)
    if size is None or not kind or shape is None or size.size not in (4, 5) or (size < 1).any():
        return False
    extents = [int(extent) for extent in size.reshape(-1)[2:]]
    if prod(extents) > MOST_PLACES:
        return False
    is_aligned = bool(site.option("align_corners", 0))
    steps = [_steps(extent, is_aligned) for extent in extents]
    places = np.stack([*np.meshgrid(*steps, indexing="ij")[::-1], np.ones(extents)], axis=-1)
    grid = site.constant(places.reshape(-1, len(extents) + 1), site.dtype(0))
    made = site.op("MatMul", grid, site.transpose(site.input(0), (0, 2, 1)))
    site.give(site.reshape(made, (shape[0], *extents, len(extents))))
    return True


def _steps(extent: int, is_aligned: bool) -> NDArray[Any]:
    """Return where an axis of -1 .. 1 is looked at: its ends included, or the middles of as many equal parts.

    A single place with its ends included is -1, as ONNX's function body has it for depth.
    """
    return np.linspace(-1, 1, extent) if is_aligned else (2 * np.arange(extent) + 1) / extent - 1


RULES: dict[str, Rule] = {"AffineGrid": _affine_grid, "GridSample": _grid_sample}
