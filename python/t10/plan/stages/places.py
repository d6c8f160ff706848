"""Where a model may be cut: between operators, where least passes from those before to those behind."""

from __future__ import annotations

from collections.abc import Sequence


def narrow_places(crossing_bytes: Sequence[int]) -> tuple[int, ...]:
    """Return the places at which no more bytes pass than at both neighbours; both ends are among them.

    `crossing_bytes` has one number for every place: before the first operator, between two, behind the last.
    """
    last = len(crossing_bytes) - 1
    inner = (
        at
        for at in range(1, last)
        if crossing_bytes[at] <= min(_seen(crossing_bytes, at - 1), _seen(crossing_bytes, at + 1))
    )
    return (0, *inner, last)


def _seen(crossing_bytes: Sequence[int], at: int) -> int:
    """Return the bytes at a place; at both ends nothing passes because there is nothing, which is not narrow."""
    is_inner = 0 < at < len(crossing_bytes) - 1
    return crossing_bytes[at] if is_inner else max(crossing_bytes)
