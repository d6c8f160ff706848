"""Inverse of ONNX Runtime's domain: Gauss-Jordan elimination of [x | 1], rows chosen by their largest pivot."""

from __future__ import annotations

from math import prod

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Site

MOST_ROWS = 16
"""Every row of a matrix is a step that is written out."""


def _inverse(site: Site) -> bool:
    shape, kind = site.shape(0), site.kind(0)
    if shape is None or len(shape) < 2 or kind not in (KIND.FLOAT, KIND.FLOAT16):
        return False
    *stack, n, columns = shape
    if n != columns or not 0 < n <= MOST_ROWS or not all(stack):
        return False
    batch = prod(stack)
    x = site.input(0) if kind == KIND.FLOAT else site.cast(site.input(0), KIND.FLOAT)
    units = site.constant(np.broadcast_to(np.eye(n, dtype=np.float32), (batch, n, n)))
    both = site.concat([site.reshape(x, (batch, n, n)), units], 2)
    for step in range(n):
        both = _eliminated(site, both, step, batch, n)
    made = site.reshape(site.slice(both, 2, n, 2 * n), shape)
    site.give(made if kind == KIND.FLOAT else site.cast(made, kind))
    return True


def _eliminated(site: Site, both: str, step: int, batch: int, n: int) -> str:
    """Write one step: the row with the largest element of a column goes to its place, and out of all others."""
    rows = np.arange(n)
    column = site.reshape(site.slice(both, 2, step, step + 1), (batch, n))
    is_done = site.constant((rows < step)[None])
    sizes = site.op("Where", is_done, site.scalar(-1.0, KIND.FLOAT), site.op("Abs", column))
    place = site.op("ArgMax", sizes, axis=1, keepdims=1)
    is_it = site.op("Equal", site.constant(rows[None], np.int64), place)
    pivot = site.reshape(site.op("GatherND", both, place, batch_dims=1), (batch, 1, 2 * n))
    first = site.slice(both, 1, step, step + 1)
    swapped = site.op("Where", site.reshape(is_it, (batch, n, 1)), first, both)
    normal = site.op("Div", pivot, site.slice(pivot, 2, step, step + 1))
    factors = site.slice(swapped, 2, step, step + 1)
    others = site.op("Sub", swapped, site.op("Mul", factors, normal))
    return site.op("Where", site.constant((rows == step).reshape(1, n, 1)), normal, others)


RULES: dict[str, Rule] = {"Inverse": _inverse}
