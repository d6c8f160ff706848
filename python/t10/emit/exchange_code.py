"""Bytes of a tile's memory that exchanges take: an estimate of their code, tile by tile.

What a tile sends and receives in a phase is a row of instructions at fixed times. Addresses in it count from a base
register for what goes out and one for what comes in, so a row is stored once for all phases of one pattern whose
sources lie alike, wherever they and the target lie. Every phase has code that sets the bases, synchronises and calls.

Source: timing reference §3 and §8 (code size), docs/ipu-backend.md §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints
from t10.core.device import Copy, CopyKind, Pattern
from t10.core.loads import MoveRates, core_loads

PHASE_BYTES = 60
SEND_BYTES = 8
RECEIVE_BYTES = 12
COPY_BYTES = 16
"""Code of a phase, of a fragment sent and one received; the words that describe a row of copies inside the tile."""

WORD_BYTES = 4
NO_FILLS = np.empty((0, 4), np.int32)
COUNTED = 1 << 20
FRAGMENTS = MoveRates(
    exchange_bytes=1 << 40, exchange_cycles=1, fragment_cycles=COUNTED, largest_words=1 << 20, copy_8=0, copy_4=0,
    copy_2=0, copy_1=0, short_even=0, short_odd=0, long_even=0, long_odd=0, row=0, ragged=0,
)  # fmt: skip
"""Rates under which ports take `COUNTED` cycles per fragment, besides one per transfer for its bytes."""


def exchange_code_bytes(
    copies: Iterable[Copy],
    patterns: Mapping[str, Pattern],
    address_by_name: Mapping[str, int],
    n_tiles: int,
    rows_by_pattern: dict[str, Ints],
) -> dict[CopyKind, Ints]:
    """Return the estimated bytes of exchange code by kind of copy, (tiles,) each.

    What is missing in `rows_by_pattern`, the `row_bytes` of patterns by their keys, is added to it.

    Copies of one pattern between the same addresses are the same code; between others they share its rows where their
    sources have the same distances from each other.
    """
    totals: dict[CopyKind, Ints] = {}
    phases: set[tuple[object, ...]] = set()
    stored: set[tuple[object, ...]] = set()
    for copy in copies:
        sources = [address_by_name[name] for name in copy.sources]
        phase = (copy.pattern, address_by_name[copy.target], *sources)
        if phase in phases:
            continue
        phases.add(phase)
        if copy.pattern not in rows_by_pattern:
            rows_by_pattern[copy.pattern] = row_bytes(patterns[copy.pattern], n_tiles)
        total = totals.setdefault(copy.kind, np.zeros(n_tiles, np.int64))
        total += PHASE_BYTES
        alike = (copy.pattern, *(address - sources[0] for address in sources))
        if alike not in stored:
            stored.add(alike)
            total += rows_by_pattern[copy.pattern]
    return totals


def row_bytes(pattern: Pattern, n_tiles: int) -> Ints:
    """Return the estimated bytes that a pattern's rows take on every tile, (tiles,).

    Fragments are counted as they are sent: bytes that several tiles want once, and cut where the set of those changes.
    """
    runs = pattern.runs
    remote = runs[runs[:, 1] != runs[:, 3]]
    result = _copied_rows(runs, n_tiles) * COPY_BYTES
    result += np.bincount(pattern.fills[:, 0], minlength=n_tiles) * COPY_BYTES
    if len(remote):
        ports = core_loads(_pieces(remote), NO_FILLS, n_tiles, 1, FRAGMENTS)[:, 1:3] // COUNTED
        result += ports @ np.array([SEND_BYTES, RECEIVE_BYTES])
    return result


def _copied_rows(runs: NDArray[np.int32], n_tiles: int) -> Ints:
    """Return how many rows every tile's workers copy: what it takes from itself, gathers and scatters."""
    ends = runs[:, 2] | runs[:, 4] | runs[:, 5] | runs[:, 7] | runs[:, 8]
    is_ragged = ends % WORD_BYTES != 0
    is_local = runs[:, 1] == runs[:, 3]
    received = np.bincount(runs[is_local | is_ragged, 3], minlength=n_tiles)
    return received + np.bincount(runs[~is_local & is_ragged, 1], minlength=n_tiles)


def _pieces(runs: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return a row per piece, sorted by tile and offset there: the first six columns of `RUN_COLUMNS`."""
    counts = runs[:, 6]
    if (counts == 1).all():
        return np.ascontiguousarray(runs[:, :6])
    number = np.arange(int(counts.sum()), dtype=np.int32)
    number -= np.repeat(np.cumsum(counts, dtype=np.int32) - counts, counts)
    rows = np.repeat(runs[:, :6], counts, axis=0)
    rows[:, 2] += number * np.repeat(runs[:, 7], counts)
    rows[:, 4] += number * np.repeat(runs[:, 8], counts)
    return np.ascontiguousarray(rows[np.lexsort((rows[:, 4], rows[:, 3]))])
