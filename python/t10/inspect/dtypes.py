"""Element types as facts spell them, and their sizes."""

from __future__ import annotations

import re

_BITS = re.compile(r"[a-z]+?(\d+)")


def bits_of(dtype: str) -> int:
    """Return the bits of an element (`f16`, `ui8`, `f8e4m3fn`, `i4`); 8 for `i1`, 0 for text and what is unknown."""
    if dtype == "i1":
        return 8
    if dtype.startswith("c"):
        return int(dtype[1:])
    match = _BITS.match(dtype)
    return int(match[1]) if match else 0


def bytes_of(dtype: str, n_elements: int) -> int:
    """Return the bytes of packed elements, rounded up."""
    return -(-bits_of(dtype) * n_elements // 8)
