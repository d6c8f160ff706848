"""Repairing a packing window by window: the blocks around one that ends too high are packed anew, the rest stays.

A program is only crowded at some moments, and how it is packed at one of them says little about the next. A window
moves some dozens of blocks, which are solved exactly. Equal layers make equal windows: those are solved once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from t10.plan.memory.blocks import Block
from t10.plan.memory.packing_solver import starts_below

REACHES = (0, 2, 5, 10, 20, 40)
"""How many moments a window reaches beyond the block that it is for, tried one after the other."""
WINDOW_BLOCKS = 96
PINNED_NEIGHBOURS = 64
"""A block that is alive with more others than this stays where it is: moving it would undo other windows."""
WINDOW_TIME = 0.1
TOTAL_TIME = 0.5
"""Deterministic time of the solver, for one window and for all of them."""
TOTAL_SOLVES = 200

Window = tuple[int, tuple[Block, ...], tuple[tuple[Block, int], ...]]


@dataclass(slots=True)
class PackingRepair:
    """What is known of a set of blocks, who is alive with whom, and of windows that were solved."""

    blocks: Sequence[Block]
    near: Sequence[Sequence[int]]
    solved: dict[Window, list[int] | None] = field(default_factory=dict[Window, "list[int] | None"])
    time_left: float = TOTAL_TIME

    def lowered(self, starts: Sequence[int], top: int) -> list[int] | None:
        """Return starts after which no block ends above `top`, or None if some window cannot be packed like that."""
        now = list(starts)
        high = [i for i, block in enumerate(self.blocks) if now[i] + block.size > top]
        for i in sorted(high, key=lambda i: (self.blocks[i].first, i)):
            if now[i] + self.blocks[i].size > top and not self._lower(i, now, top):
                return None
        return now

    def _lower(self, i: int, starts: list[int], top: int) -> bool:
        """Bring a block below `top` in the smallest window that can be packed so; return whether there is one."""
        tried = 0
        for reach in REACHES:
            free = self._alive_around(i, reach)
            if len(free) > WINDOW_BLOCKS:
                return False
            if len(free) == tried:
                continue
            tried = len(free)
            found = self._packed(free, starts, top)
            if found is not None:
                for j, start in zip(free, found, strict=True):
                    starts[j] = start
                return True
        return False

    def _alive_around(self, i: int, reach: int) -> list[int]:
        """Return the blocks alive within some moments of a block's life that may be moved, in a canonical order."""
        first, last = self.blocks[i].first - reach, self.blocks[i].last + reach
        free = [
            j
            for j, block in enumerate(self.blocks)
            if block.first <= last and block.last >= first
            and (j == i or len(self.near[j]) <= PINNED_NEIGHBOURS)
        ]  # fmt: skip
        return sorted(free, key=lambda j: (self.blocks[j].first, self.blocks[j].last, self.blocks[j].size, j))

    def _packed(self, free: list[int], starts: list[int], top: int) -> list[int] | None:
        """Return new starts of some blocks among all others, from memory if an equal window was solved before."""
        begin = self.blocks[free[0]].first
        end = max(self.blocks[j].last for j in free)
        moved = tuple(_shifted(self.blocks[j], begin, end) for j in free)
        around = {k for j in free for k in self.near[j]}.difference(free)
        fixed = tuple(
            sorted(
                ((_shifted(self.blocks[k], begin, end), starts[k]) for k in around),
                key=lambda pair: (pair[0].first, pair[1], pair[0].last),
            )
        )
        window = (top, moved, fixed)
        if window not in self.solved:
            if self.time_left <= 0 or len(self.solved) >= TOTAL_SOLVES:
                return None
            self.solved[window], spent = starts_below(moved, top, fixed, WINDOW_TIME)
            self.time_left -= spent
        return self.solved[window]


def _shifted(block: Block, begin: int, end: int) -> Block:
    """Return what of a block lies between two moments, counted from the first."""
    return Block(max(block.first, begin) - begin, min(block.last, end) - begin, block.size)
