"""Chunks: how many slots each core keeps of what is dealt out in order (linear layouts, reduce-scatters)."""

from __future__ import annotations

from math import prod

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""First slots and extents per dim."""


def chunk_slots(n_slots: int, n_parts: int) -> int:
    """Return the slots of every chunk when `n_slots` are dealt out in order to `n_parts` cores; the last have fewer.

    One, or an even number: chunks of two-byte elements then begin and end with words, those of four-byte elements with
    eight bytes, which is what exchanges and vectors move at full speed.
    """
    chunk = -(-n_slots // n_parts)
    return chunk if n_parts == 1 or chunk == 1 else chunk + chunk % 2


def chunk_boxes(shape: tuple[int, ...], first: int, count: int) -> list[Box]:
    """Return a run of row-major slots as boxes, in order: at most one partial row, whole rows, another per dim."""
    if count <= 0:
        return []
    if not shape:
        return [((), ())]
    inner = prod(shape[1:])
    boxes: list[Box] = []
    row, offset = divmod(first, inner)
    if offset or count < inner:
        here = min(count, inner - offset)
        boxes += [((row, *f), (1, *e)) for f, e in chunk_boxes(shape[1:], offset, here)]
        count, row = count - here, row + 1
    n_rows, rest = divmod(count, inner)
    if n_rows:
        boxes.append(((row, *(0,) * (len(shape) - 1)), (n_rows, *shape[1:])))
    if rest:
        boxes += [((row + n_rows, *f), (1, *e)) for f, e in chunk_boxes(shape[1:], 0, rest)]
    return boxes
