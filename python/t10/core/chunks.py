"""Chunks: how many slots each core keeps of what is dealt out in order (linear layouts, reduce-scatters)."""

from __future__ import annotations


def chunk_slots(n_slots: int, n_parts: int) -> int:
    """Return the slots of every chunk when `n_slots` are dealt out in order to `n_parts` cores; the last have fewer.

    One, or an even number: chunks of two-byte elements then begin and end with words, those of four-byte elements with
    eight bytes, which is what exchanges and vectors move at full speed.
    """
    chunk = -(-n_slots // n_parts)
    return chunk if n_parts == 1 or chunk == 1 else chunk + chunk % 2
