"""Patterns of copies: element routes as runs of bytes, and runs that step evenly as one row."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints
from t10.core.device import RUN_COLUMNS, Pattern

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
    return _finished(_runs(moves, item_bytes), NO_FILLS, NO_VALUES, ())


def moved(moves: NDArray[np.int32], item_bytes: int) -> Pattern:
    """Return the pattern of moves, (n, 6) rows of elements as `_routes.runs` finds them."""
    return _finished(_in_bytes(moves, item_bytes), NO_FILLS, NO_VALUES, ())


def pattern_of_runs(
    moves: NDArray[np.int32], item_bytes: int, fills: NDArray[np.int32], constants: tuple[str, ...]
) -> Pattern:
    """Return the pattern of moves and fills, (n, 6) rows of elements as `_routes.runs` finds them."""
    if not len(fills):
        return moved(moves, item_bytes)
    # A fill comes from the variable that the constant's number stands for.
    joined = series(_in_bytes(fills, item_bytes))
    kept = np.ascontiguousarray(joined[:, [3, 4, 5, 6, 8]])
    return _finished(_in_bytes(moves, item_bytes), kept, np.ascontiguousarray(joined[:, 0]), constants)


def _finished(
    rows: NDArray[np.int32],
    fills: NDArray[np.int32],
    values: NDArray[np.int32],
    constants: tuple[str, ...],
) -> Pattern:
    runs = series(rows)
    digest = sha256(runs.tobytes())
    digest.update(fills.tobytes() + values.tobytes() + repr(constants).encode())
    return Pattern(digest.hexdigest()[:16], runs, fills, values, constants)


def _in_bytes(rows: NDArray[np.int32], item_bytes: int) -> NDArray[np.int32]:
    """Return rows of elements as rows of one piece each, in bytes."""
    result = np.zeros((len(rows), len(RUN_COLUMNS)), np.int32)
    result[:, :6] = rows
    result[:, [2, 4, 5]] *= item_bytes
    result[:, 6] = 1
    return result


def _runs(moves: Moves, item_bytes: int) -> NDArray[np.int32]:
    """Return one row per longest run of elements that lie side by side in source and target."""
    n = len(moves.source)
    if n == 0:
        return np.empty((0, len(RUN_COLUMNS)), np.int32)
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
    columns = (moves.source, moves.source_tile, moves.source_slot, moves.target_tile, moves.target_slot)
    rows = np.stack([*(column[at] for column in columns), lengths], axis=1).astype(np.int32)
    return _in_bytes(rows, item_bytes)


def series(rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return rows with those that step evenly joined: same variable, tiles and length, equal distances."""
    n = len(rows)
    if n < 2:
        return rows
    same = (rows[1:, [0, 1, 3, 5]] == rows[:-1, [0, 1, 3, 5]]).all(axis=1)
    steps = rows[1:, [2, 4]].astype(np.int64) - rows[:-1, [2, 4]]
    # Row i + 1 goes on with row i's series if it steps as the row before did; the second row of a series sets the step.
    joins = same.copy()
    even = (steps[1:] == steps[:-1]).all(axis=1)
    joins[1:] &= ~same[:-1] | even
    begins = np.ones(n, np.bool_)
    begins[1:] = ~joins
    at = np.flatnonzero(begins)
    counts = np.diff(np.append(at, n))
    result = rows[at].copy()
    result[:, 6] = counts
    several = np.flatnonzero(counts > 1)
    result[several, 7] = steps[at[several], 0]
    result[several, 8] = steps[at[several], 1]
    return result


def in_order(source: Any, source_tile: Any, source_slot: Any, target_tile: Any, target_slot: Any) -> Moves:
    """Return moves from arrays that broadcast to one shape (tiles, slots) whose rows are target tiles in order."""
    arrays = np.broadcast_arrays(source, source_tile, source_slot, target_tile, target_slot)
    return Moves(*(np.ascontiguousarray(array).reshape(-1).astype(np.int64, copy=False) for array in arrays))


def received_bytes(rows: NDArray[np.int32], n_tiles: int) -> int:
    """Return the most bytes that any tile takes from others."""
    n_bytes = np.where(rows[:, 1] != rows[:, 3], rows[:, 5].astype(np.int64) * rows[:, 6], 0)
    return int(np.bincount(rows[:, 3], weights=n_bytes, minlength=n_tiles).max(initial=0))
