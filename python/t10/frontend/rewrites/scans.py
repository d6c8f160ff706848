"""Running sums and products, and products with a vector."""

from __future__ import annotations

import numpy as np

from t10.frontend.rewrites.site import Rule, Site

MOST_STEPS = 512
"""Longer running products are left as they are, and refused by name."""


def _cumulative_product(site: Site) -> bool:
    """Write each element as the product of those up to it, chosen by a triangle: a reduction, like any other."""
    shape, axis_input, kind = site.shape(0), site.constant_input(1), site.kind(0)
    if shape is None or not shape or axis_input is None or not kind:
        return False
    axis = int(axis_input.reshape(())) % len(shape)
    n, shift = shape[axis], int(site.option("exclusive", 0))
    if n > MOST_STEPS:
        return False
    ones = np.ones((n, n), np.bool_)
    chosen = np.tril(ones, -shift) if not site.option("reverse", 0) else np.triu(ones, shift)
    mask = chosen.reshape([1] * axis + [n, n] + [1] * (len(shape) - axis - 1))
    row = site.reshape(site.input(0), (*shape[:axis], 1, n, *shape[axis + 1 :]))
    factors = site.op("Where", site.constant(mask), row, site.scalar(1, kind))
    site.reduce("ReduceProd", factors, [axis + 1], keep=False, output=site.node.output[0])
    return True


def _cumulative_sum(site: Site) -> bool:
    """Make an axis of one element a number, which is what ONNX asks for; exporters write either."""
    axis = site.constant_input(1)
    if axis is None or not axis.ndim or axis.size != 1:
        return False
    options = {name: site.option(name, None) for name in ("exclusive", "reverse")}
    place = site.constant(axis.reshape(()))
    site.op("CumSum", site.input(0), place, output=site.node.output[0], **options)
    return True


def _matmul(site: Site) -> bool:
    """Write a product of a vector and a stack of matrices with a dim of extent 1, which goes again."""
    a, b = site.shape(0), site.shape(1)
    if a is None or b is None or len(a) == len(b) or 1 not in (len(a), len(b)) or len(a) + len(b) < 4:
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
