"""The time x memory front: of candidate plans those that no other beats in both cycles and bytes per core."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Floats, Ints
from t10.core.plan import CostedPlan

PRICED_TOGETHER = 4
"""Candidates that are priced at a time where prices are slow."""
Front = tuple[CostedPlan, ...]
"""Plans of one operator that no other beats, fastest last."""


def front_indices(cycles: Ints, n_bytes: Ints) -> Ints:
    """Return which candidates are on the front, least bytes first (so the fastest last); ties keep the first."""
    order = np.lexsort((np.arange(len(cycles)), cycles, n_bytes))
    best = np.minimum.accumulate(cycles[order])
    is_better = np.ones(len(order), np.bool_)
    is_better[1:] = cycles[order][1:] < best[:-1]
    return order[is_better]


def fastest(least: Ints, n_bytes: Ints, price: Callable[[Ints], Ints], most: int) -> tuple[Ints, Ints]:
    """Return (candidates, cycles) of the `most` fastest on the front, fastest first, of which few are priced.

    `least` (n,) bounds the cycles from below; `price` gives those of some candidates.
    """
    order = np.argsort(least, kind="stable")
    rows, cycles = (np.empty(0, np.int64) for _ in range(2))
    front = np.empty(0, np.int64)
    for first in range(0, len(order), PRICED_TOGETHER):
        batch = order[first : first + PRICED_TOGETHER]
        if (cycles[front] <= least[batch[0]]).sum() >= most:
            break
        beaten = [((cycles <= least[i]) & (n_bytes[rows] <= n_bytes[i])).any() for i in batch.tolist()]
        batch = batch[~np.array(beaten, np.bool_)]
        if not len(batch):
            continue
        rows, cycles = np.concatenate([rows, batch]), np.concatenate([cycles, price(batch)])
        # Ties keep the first candidate, whatever was priced first.
        order_of_rows = np.argsort(rows, kind="stable")
        rows, cycles = rows[order_of_rows], cycles[order_of_rows]
        front = front_indices(cycles, n_bytes[rows])
    best = front[::-1][:most]
    return rows[best], cycles[best]


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
