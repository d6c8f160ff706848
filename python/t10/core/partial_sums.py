"""Parts of a sum that lie one after the other, combined with what a core has, as a loop nest."""

from __future__ import annotations

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import Combine
from t10.core.reduction import Round
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.core.vertex_nest import VertexNest, Work


def round_nest(dtype: str, combine: Combine, one: Round) -> tuple[VertexNest, Work]:
    """Return the nest over the parts of a round and their slots, and what cores do; operands have numbers for names."""
    operands = (("0", TaskOperand(dtype, (one.stride, 1))), ("1", TaskOperand(dtype, (0, 1))))
    tiles = np.flatnonzero(one.widths > 0)
    extents = np.column_stack([np.full(len(tiles), one.n_parts), one.widths[tiles]])
    offsets = np.column_stack([np.zeros(len(tiles), np.int64), one.first[tiles] * size_bytes(dtype)])
    work = Work(tiles, extents, offsets, np.full(len(tiles), one.replaces))
    return VertexNest(identity(), combine, (0,), operands), work
