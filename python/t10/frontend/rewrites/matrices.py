"""Operators on matrices: ones on a diagonal as a comparison of places, determinants as sums of products."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from t10.errors import UnsupportedOpError
from t10.frontend.rewrites.site import KIND, Rule, Site

FLOATS = (KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE, KIND.BFLOAT16)
MOST_ROWS = 6
"""Determinants are expanded by rows into `n 2^(n-1)` products; of larger matrices an elimination would be needed."""


def _eye_like(site: Site) -> bool:
    shape = site.shape(0)
    kind = int(site.option("dtype", site.kind(0)))
    if shape is None or len(shape) != 2 or not kind:
        return False
    rows, columns = (np.arange(extent, dtype=np.int32) for extent in shape)
    above = int(site.option("k", 0))
    places = site.constant(rows[:, None] + np.int64(above)), site.constant(columns[None, :].astype(np.int64))
    site.cast(site.op("Equal", *places), kind, output=site.node.output[0])
    return True


def _det(site: Site) -> bool:
    """Expand by rows, from the last one up: every choice of columns has one determinant, whatever the rows above."""
    shape = site.shape(0)
    if shape is None or len(shape) < 2 or shape[-1] != shape[-2] or not 1 <= shape[-1] <= MOST_ROWS:
        return False
    n, axis = shape[-1], len(shape) - 1
    below: dict[tuple[int, ...], str] = {}
    for row in reversed(range(n)):
        line = site.slice(site.input(0), axis - 1, row, row + 1)
        elements = [site.slice(line, axis, column, column + 1) for column in range(n)]
        if not below:
            below = {(column,): element for column, element in enumerate(elements)}
            continue
        below = {
            columns: _expanded(site, elements, columns, below) for columns in combinations(range(n), n - row)
        }
    site.give(site.reshape(below[tuple(range(n))], shape[:-2]))
    return True


def _expanded(
    site: Site, elements: list[str], columns: tuple[int, ...], below: dict[tuple[int, ...], str]
) -> str:
    """Return the sum, signs alternating, of every element times the determinant of what is in no line with it."""
    total = ""
    for place, column in enumerate(columns):
        rest = columns[:place] + columns[place + 1 :]
        term = site.op("Mul", elements[column], below[rest])
        total = site.op("Sub" if place % 2 else "Add", total, term) if total else term
    return total


def _gemm(site: Site) -> bool:
    """Scale a product without a third operand by itself: the lowering leaves its `alpha` out.

    Fractions as factors of integers, which would be cut, are refused.
    """
    factors = {"alpha": site.option("alpha", 1.0), "beta": site.option("beta", 1.0) if site.input(2) else 1.0}
    kind = site.kind(0)
    for name, factor in factors.items():
        if kind not in (0, *FLOATS) and not float(factor).is_integer():
            raise UnsupportedOpError(
                f"Gemm of integers with {name} = {factor:g}",
                operator=site.node.name or site.stem,
                hint="cast to float first",
            )
    if kind == 0 or site.input(2) or factors["alpha"] == 1.0:
        return False
    kept = {name: value for name, value in site.options.items() if name not in factors}
    product = site.op("Gemm", site.input(0), site.input(1), **kept)
    site.op("Mul", product, site.scalar(factors["alpha"], kind), output=site.node.output[0])
    return True


RULES: dict[str, Rule] = {"Det": _det, "EyeLike": _eye_like, "Gemm": _gemm}
