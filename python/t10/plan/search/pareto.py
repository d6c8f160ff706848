"""The time x memory front: of candidate plans those that no other beats in both cycles and bytes per core."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Floats, Ints
from t10.core.plan import CostedPlan

Front = tuple[CostedPlan, ...]
"""Plans of one operator that no other beats, fastest last."""


def front_indices(cycles: Ints, n_bytes: Ints) -> Ints:
    """Return which candidates are on the front, least bytes first (so the fastest last); ties keep the first."""
    order = np.lexsort((np.arange(len(cycles)), cycles, n_bytes))
    best = np.minimum.accumulate(cycles[order])
    is_better = np.ones(len(order), np.bool_)
    is_better[1:] = cycles[order][1:] < best[:-1]
    return order[is_better]


def thinned(indices: Ints, cycles: Ints, most: int) -> Ints:
    """Return at most `most` of a front's candidates: both ends, and between them evenly in log time."""
    if len(indices) <= most:
        return indices
    if most == 1:
        return indices[-1:]
    level = np.log(np.maximum(cycles[indices], 1).astype(np.float64))
    wanted: Floats = np.linspace(float(level[0]), float(level[-1]), most)
    # Levels fall along the front; searchsorted wants them rising.
    chosen: NDArray[np.intp] = np.searchsorted(-level, -wanted, side="left")
    return indices[np.unique(np.minimum(chosen, len(indices) - 1))]
