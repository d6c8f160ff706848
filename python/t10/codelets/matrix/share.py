"""How six workers share the rows of a block."""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.matrix.product import Loop
from t10.codelets.matrix.shape import N_WORKERS

SEGMENT_SLOTS = 27
"""Slots of a segment besides its rows: filling and emptying the pipeline, addresses."""


@dataclass(frozen=True, slots=True)
class Share:
    """A worker's rows: offsets in bytes of the first, how many, and how many until the end of the first segment."""

    x: int
    out: int
    rows: int
    first_rows: int
    x_next: int = 0
    out_next: int = 0


def row_shares(rows: tuple[Loop, ...], slots_per_row: int) -> tuple[Share, ...]:
    """Return the shares: rows in order, as evenly as possible; of two loops whole segments where that is faster."""
    if len(rows) < LEVELS:
        loop = rows[0] if rows else Loop(1, 0, 0, 0)
        return tuple(
            Share(start * loop.x, start * loop.out, n, n) for start, n in _ranges(loop.extent, N_WORKERS)
        )
    outer, inner = rows
    by_row = _ranges(outer.extent * inner.extent, N_WORKERS)
    by_segment = [(start * inner.extent, n * inner.extent) for start, n in _ranges(outer.extent, N_WORKERS)]
    best = min(
        (by_row, by_segment), key=lambda r: max(_slots(s, n, inner.extent, slots_per_row) for s, n in r)
    )
    return tuple(_segment_share(outer, inner, start, n) for start, n in best)


LEVELS = 2


def _ranges(n: int, parts: int) -> list[tuple[int, int]]:
    """Return (first, number) of every part of `n` things, as even as possible."""
    sizes = [n // parts + (part < n % parts) for part in range(parts)]
    return [(sum(sizes[:part]), size) for part, size in enumerate(sizes)]


def _slots(start: int, n: int, length: int, slots_per_row: int) -> int:
    segments = (start + n - 1) // length - start // length + 1 if n else 0
    return segments * SEGMENT_SLOTS + n * slots_per_row


def _segment_share(outer: Loop, inner: Loop, start: int, n: int) -> Share:
    row, column = divmod(start, inner.extent)
    return Share(
        x=row * outer.x + column * inner.x,
        out=row * outer.out + column * inner.out,
        rows=n,
        first_rows=min(n, inner.extent - column),
        x_next=outer.x - column * inner.x,
        out_next=outer.out - column * inner.out,
    )
