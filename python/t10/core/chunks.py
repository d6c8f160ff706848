"""Chunks: how many slots each core keeps of what is dealt out in order.

That is a value that is spread evenly (`chunk_slots`), or a window that several cores have (`window_chunk`): one whose
partial sums they combine, or a weight that they keep only once.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""First slots and extents per dim."""
LONGER = 8
"""Chunks of a window are longer than they need be by at most one part in so many."""
GAIN = 4
"""How much larger a common power of two must be for a longer chunk."""
FEW_ROWS = 4
"""What a chunk and a window have in common may be a row if the chunk is at most so many of it."""
KEPT_CHUNKS = 1 << 16


def chunk_slots(n_slots: int, n_parts: int) -> int:
    """Return the slots of every chunk when `n_slots` are dealt out in order to `n_parts` cores; the last have fewer.

    One, or an even number: chunks of two-byte elements then begin and end with words, those of four-byte elements with
    eight bytes, which is what exchanges and vectors move at full speed.
    """
    chunk = -(-n_slots // n_parts)
    return chunk if n_parts == 1 or chunk == 1 else chunk + chunk % 2


@lru_cache(maxsize=KEPT_CHUNKS)
def window_chunk(n_slots: int, n_parts: int) -> int:
    """Return the slots of every chunk of a window of `n_slots` that is cut over `n_parts` cores; the last have fewer.

    `chunk_slots`, or at most an eighth more if that has a power of two in common with the window that is four times as
    large or more: the number with the largest; of several the one with the largest common divisor, if that is a quarter
    of it or more, else the smallest. Such chunks begin and end with rows, or with vectors of a row, as far as that
    costs little: what follows is then one loop, and moves in fewer fragments.
    """
    least = chunk_slots(n_slots, n_parts)
    if n_parts == 1 or least <= 1:
        return least
    longest = least + least // LONGER
    step = max(n_slots & -n_slots, 2)
    while -(-least // step) * step > longest:
        step //= 2
    if step < GAIN * min(least & -least, n_slots & -n_slots):
        return least
    shortest = -(-least // step) * step

    def rows(chunk: int) -> int:
        common = gcd(chunk, n_slots)
        return common if common * FEW_ROWS >= chunk else 0

    return max(range(shortest, longest + 1, step), key=rows)


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
