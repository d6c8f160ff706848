"""A lower bound of products of a matrix and a vector as dot products (`t10.codelets.matrix.dots`)."""

from __future__ import annotations

from functools import reduce

import numpy as np

from t10.codelets.matrix.dots import PER_LOAD
from t10.core.expression import OperatorSpec
from t10.core.products import is_product
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Boxes, Column, both, chosen, product

IMPOSSIBLE = 1 << 40
ONCE_CYCLES, ROW_SLOTS = 174, 3
"""What the code takes around its rows, and a row besides its loads."""


def dots_bound(spec: OperatorSpec, boxes: Boxes) -> Column | None:
    """Return cycles (n,) that dot products never fall below; None for what never is any.

    `IMPOSSIBLE` for boxes of which neither operand is a vector. Launches are left out.
    """
    dtypes = [*(operand.dtype for operand in spec.inputs), spec.acc_dtype]
    if dtypes != ["f16", "f16", "f32"] or spec.combine != "sum" or spec.selectors:
        return None
    if not is_product(spec.body):
        return None
    rows = spec.output.axes
    n_rows, n_terms = product(boxes, sorted(rows)), product(boxes, spec.reduction_axes)
    cycles = ONCE_CYCLES + N_WORKERS * -(-n_rows // N_WORKERS) * (n_terms // PER_LOAD + ROW_SLOTS)
    ways = [
        chosen(
            both(product(boxes, sorted(rows & vector.axes)) == 1, n_terms % PER_LOAD == 0), cycles, IMPOSSIBLE
        )
        for vector in spec.inputs
    ]
    return reduce(np.minimum, ways)
