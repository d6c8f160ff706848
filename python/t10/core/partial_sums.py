"""Parts of a sum that lie one after the other, combined with what a core has, as a loop nest."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import Combine
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.core.vertex_nest import VertexNest, Work


def combine_nest(dtype: str, combine: Combine, stride: int) -> VertexNest:
    """Return the nest over parts, `stride` slots apart, and their slots; operands have numbers for names."""
    operands = (("0", TaskOperand(dtype, (stride, 1))), ("1", TaskOperand(dtype, (0, 1))))
    return VertexNest(identity(), combine, (0,), operands)


def combine_work(
    dtype: str, n_parts: int, tiles: Ints, first: Ints, widths: Ints, *, replaces: bool = False
) -> Work:
    """Return what cores `tiles` (n,) do with parts of `widths` (n,) slots, their own from slot `first` (n,) on."""
    extents = np.column_stack([np.full(len(tiles), n_parts), widths])
    offsets = np.column_stack([np.zeros(len(tiles), np.int64), first * size_bytes(dtype)])
    return Work(tiles, extents, offsets, np.full(len(tiles), replaces))
