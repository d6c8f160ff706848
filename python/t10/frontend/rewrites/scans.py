"""Running sums and products, and products with a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

MOST_STEPS = 512
"""Longer running products are left as they are, and refused by name."""

WHOLE = 64
"""Longer axes are summed up in chunks: the work grows with the square of what is summed up at once."""


def _cumulative_product(site: Site) -> bool:
    """Write each element as the product of those up to it, chosen by a triangle: a reduction, like any other."""
    shape, scan = site.shape(0), _scan(site)
    if scan is None or shape is None or shape[scan.axis] > MOST_STEPS:
        return False
    chosen = _up_to_each(site, site.input(0), shape, scan, site.scalar(1, site.kind(0)))
    site.reduce("ReduceProd", chosen, [scan.axis + 1], keep=False, output=site.node.output[0])
    return True


def _cumulative_sum(site: Site) -> bool:
    """Write each element as the sum of those up to it; f16 is added up in f32.

    They are chosen, not multiplied by a triangle of ones and zeros: an infinity that is left out would become a NaN.
    """
    shape, kind, scan = site.shape(0), site.kind(0), _scan(site)
    if scan is None or shape is None:
        return False
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    x = site.cast(site.input(0), inner) if inner != kind else site.input(0)
    sums = _running_sums(site, x, shape, scan, inner)
    site.cast(sums, kind, output=site.node.output[0]) if inner != kind else site.give(sums)
    return True


@dataclass(frozen=True, slots=True)
class _Scan:
    """Along which axis to go, from its end if `backwards`, and whether an element counts for itself."""

    axis: int
    is_exclusive: bool
    is_backwards: bool


def _scan(site: Site) -> _Scan | None:
    shape, axis = site.shape(0), site.constant_input(1)
    if not shape or not all(shape) or axis is None or not site.kind(0):
        return None
    place = int(axis.reshape(())) % len(shape)
    return _Scan(place, bool(site.option("exclusive", 0)), bool(site.option("reverse", 0)))


def _up_to_each(site: Site, x: str, shape: Shape, scan: _Scan, rest: str) -> str:
    """Return rows of the elements up to each, one more axis behind the scanned one; `rest` stands for the others."""
    axis, n = scan.axis, shape[scan.axis]
    ones, shift = np.ones((n, n), np.bool_), int(scan.is_exclusive)
    chosen = np.triu(ones, shift) if scan.is_backwards else np.tril(ones, -shift)
    mask = site.constant(chosen.reshape([1] * axis + [n, n] + [1] * (len(shape) - axis - 1)))
    row = site.reshape(x, (*shape[:axis], 1, *shape[axis:]))
    return site.op("Where", mask, row, rest)


def _running_sums(site: Site, x: str, shape: Shape, scan: _Scan, kind: int) -> str:
    """Return sums up to each element: inside its chunk, and of the chunks before it, where an axis is long."""
    axis, n = scan.axis, shape[scan.axis]
    if n <= WHOLE:
        chosen = _up_to_each(site, x, shape, scan, site.scalar(0, kind))
        return site.reduce("ReduceSum", chosen, [axis + 1], keep=False)
    size = math.isqrt(n - 1) + 1
    n_chunks = -(-n // size)
    missing = n_chunks * size - n
    if missing:
        tail = site.constant([*shape[:axis], missing, *shape[axis + 1 :]], np.int64)
        x = site.concat((x, site.op("Expand", site.scalar(0, kind), tail)), axis)
    split = (*shape[:axis], n_chunks, size, *shape[axis + 1 :])
    rows = site.reshape(x, split)
    inside = _running_sums(site, rows, split, replace(scan, axis=axis + 1), kind)
    totals = site.reduce("ReduceSum", rows, [axis + 1], keep=False)
    chunks = (*shape[:axis], n_chunks, *shape[axis + 1 :])
    before = _running_sums(site, totals, chunks, replace(scan, is_exclusive=True), kind)
    sums = site.op("Add", inside, site.reshape(before, (*chunks[: axis + 1], 1, *chunks[axis + 1 :])))
    whole = site.reshape(sums, (*shape[:axis], n_chunks * size, *shape[axis + 1 :]))
    return site.slice(whole, axis, 0, n) if missing else whole


def _matmul(site: Site) -> bool:
    """Write a product of a vector and a stack of matrices with a dim of extent 1, which goes again.

    One of a stack of one matrix and a larger stack becomes one of a matrix.
    """
    a, b = site.shape(0), site.shape(1)
    if a is None or b is None:
        return False
    if len(a) == len(b) == 3 and 1 in (a[0], b[0]) and a[0] != b[0]:
        single, shape = (0, a) if a[0] == 1 else (1, b)
        inputs = [site.input(0), site.input(1)]
        inputs[single] = site.reshape(inputs[single], shape[1:])
        site.op("MatMul", *inputs, output=site.node.output[0])
        return True
    if len(a) == len(b) or 1 not in (len(a), len(b)) or len(a) + len(b) < 4:
        return False
    if len(a) == 1:
        made = site.op("MatMul", site.reshape(site.input(0), (1, a[0])), site.input(1))
        site.reshape(made, (*b[:-2], b[-1]), output=site.node.output[0])
    else:
        made = site.op("MatMul", site.input(0), site.reshape(site.input(1), (b[0], 1)))
        site.reshape(made, a[:-1], output=site.node.output[0])
    return True


RULES: dict[str, Rule] = {
    "CumProd": _cumulative_product,
    "CumSum": _cumulative_sum,
    "MatMul": _matmul,
}
