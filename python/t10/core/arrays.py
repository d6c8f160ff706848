"""Names for the types of arrays, and which of their rows differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def different_rows(rows: Ints) -> Ints:
    """Return the number of the first of every different row (n, columns), ascending."""
    found: dict[bytes, int] = {}
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1] * rows.itemsize)))
    for number, row in enumerate(packed[:, 0].tolist()):
        found.setdefault(row, number)
    return np.array(list(found.values()), np.int64)
