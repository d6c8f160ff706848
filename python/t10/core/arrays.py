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


def first_of_each(numbers: NDArray[Any]) -> Ints | slice:
    """Return where each of many numbers, 0 or more, stands first; a slice of all where no two are the same.

    Unlike `np.unique` it sorts nothing: there may be hundreds of millions.
    """
    n_numbers = int(numbers.max(initial=-1)) + 1
    is_there = np.zeros(n_numbers, np.bool_)
    is_there[numbers] = True
    if np.count_nonzero(is_there) == len(numbers):
        return slice(None)
    places = np.full(n_numbers, -1, np.int64)
    # Of several values at one place, NumPy keeps the last.
    places[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    return places[is_there]
