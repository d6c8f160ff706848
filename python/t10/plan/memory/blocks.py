"""Rectangles of fixed lifetime: what packing moves along the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """`size` bytes alive from moment `first` to `last`, both included."""

    first: int
    last: int
    size: int


def peak(blocks: Sequence[Block], starts: Sequence[int]) -> int:
    """Return the end of the highest block."""
    return max((start + block.size for start, block in zip(starts, blocks, strict=True)), default=0)


def neighbours(blocks: Sequence[Block]) -> list[list[int]]:
    """Return for every block those that are alive with it, itself excluded."""
    near: list[list[int]] = [[] for _ in blocks]
    active: list[int] = []
    for i in sorted(range(len(blocks)), key=lambda i: blocks[i].first):
        active = [j for j in active if blocks[j].last >= blocks[i].first]
        for j in active:
            near[i].append(j)
            near[j].append(i)
        active.append(i)
    return near
