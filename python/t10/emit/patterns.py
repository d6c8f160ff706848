"""Patterns of copies: element routes as runs of bytes, and runs that step evenly as one row."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints
from t10.core.device import Pattern
from t10.emit import _routes

NO_FILLS = np.empty((0, 5), np.int32)
NO_VALUES = np.empty(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Elements that move: arrays of one length, one entry per element, sorted by target tile and slot.

    `source` numbers the source variable; slots count elements.
    """

    source: Ints
    source_tile: Ints
    source_slot: Ints
    target_tile: Ints
    target_slot: Ints


def pattern(moves: Moves, item_bytes: int) -> Pattern:
    """Return the pattern that moves these elements of `item_bytes` each."""
    return moved(_runs(moves), item_bytes)


def moved(moves: NDArray[np.int32], item_bytes: int) -> Pattern:
    """Return the pattern of moves, (n, 6) rows of elements as `_routes.runs` finds them."""
    return _finished(_routes.series(moves, item_bytes), NO_FILLS, NO_VALUES, ())


def pattern_of_runs(
    moves: NDArray[np.int32], item_bytes: int, fills: NDArray[np.int32], constants: tuple[str, ...]
) -> Pattern:
    """Return the pattern of moves and fills, (n, 6) rows of elements as `_routes.runs` finds them."""
    if not len(fills):
        return moved(moves, item_bytes)
    # A fill comes from the variable that the constant's number stands for.
    joined = _routes.series(fills, item_bytes)
    kept = np.ascontiguousarray(joined[:, [3, 4, 5, 6, 8]])
    return _finished(_routes.series(moves, item_bytes), kept, np.ascontiguousarray(joined[:, 0]), constants)


def _finished(
    runs: NDArray[np.int32],
    fills: NDArray[np.int32],
    values: NDArray[np.int32],
    constants: tuple[str, ...],
) -> Pattern:
    digest = sha256(runs.tobytes())
    digest.update(fills.tobytes() + values.tobytes() + repr(constants).encode())
    return Pattern(digest.hexdigest()[:16], runs, fills, values, constants)


def _runs(moves: Moves) -> NDArray[np.int32]:
    """Return one row per longest run of elements that lie side by side in source and target."""
    columns = (moves.source, moves.source_tile, moves.source_slot, moves.target_tile, moves.target_slot)
    n = len(moves.source)
    if n == 0:
        return np.empty((0, len(columns) + 1), np.int32)
    begins = np.ones(n, np.bool_)
    begins[1:] = (
        (moves.source[1:] != moves.source[:-1])
        | (moves.source_tile[1:] != moves.source_tile[:-1])
        | (moves.target_tile[1:] != moves.target_tile[:-1])
        | (moves.source_slot[1:] != moves.source_slot[:-1] + 1)
        | (moves.target_slot[1:] != moves.target_slot[:-1] + 1)
    )
    at = np.flatnonzero(begins)
    lengths = np.diff(np.append(at, n))
    return np.stack([*(column[at] for column in columns), lengths], axis=1).astype(np.int32)


def in_order(source: Any, source_tile: Any, source_slot: Any, target_tile: Any, target_slot: Any) -> Moves:
    """Return moves from arrays that broadcast to one shape (tiles, slots) whose rows are target tiles in order."""
    arrays = np.broadcast_arrays(source, source_tile, source_slot, target_tile, target_slot)
    return Moves(*(np.ascontiguousarray(array).reshape(-1).astype(np.int64, copy=False) for array in arrays))


def received_bytes(rows: NDArray[np.int32], n_tiles: int) -> int:
    """Return the most bytes that any tile takes from others."""
    n_bytes = np.where(rows[:, 1] != rows[:, 3], rows[:, 5].astype(np.int64) * rows[:, 6], 0)
    return int(np.bincount(rows[:, 3], weights=n_bytes, minlength=n_tiles).max(initial=0))
