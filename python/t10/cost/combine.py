"""Combining partial sums as an operator: what cores do with the parts that a reduction brings them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from t10.core.expression import AffineDim, Axis, Combine, Operand, OperatorSpec, Term
from t10.core.scalar import identity

PARTS, POINTS = 64, 4096
"""Extents of the operator; prices are asked for boxes of any size."""


@lru_cache(maxsize=64)
def combine_operator(dtype: str, combine: Combine) -> OperatorSpec:
    """Return the operator that combines parts that lie one after the other, axis 0, point by point, axis 1."""
    parts, points = AffineDim((Term(0, 1),)), AffineDim((Term(1, 1),))
    return OperatorSpec(
        name="combine",
        kind="reduction",
        axes=(Axis("parts", PARTS, "reduction"), Axis("points", POINTS, "parallel")),
        inputs=(Operand("part", "activation", dtype, (PARTS, POINTS), (parts, points)),),
        output=Operand("all", "output", dtype, (POINTS,), (points,)),
        combine=combine,
        body=identity(),
        acc_dtype=dtype,
    )


def others_of(n_parts: Any) -> Any:
    """Return how many of a window's parts are of others: its own is one of several."""
    return np.maximum(n_parts - 1, 1)
