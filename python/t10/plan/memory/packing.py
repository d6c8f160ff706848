"""Packing rectangles of fixed lifetime into as few bytes as possible: orders of first fit, windows, a whole solved."""

from __future__ import annotations

from collections.abc import Sequence

from t10.plan.memory.blocks import Block, neighbours, peak
from t10.plan.memory.packing_repair import PackingRepair
from t10.plan.memory.packing_solver import least_starts

TOLERANCE = 0.01
"""A packing this close to its bound is good enough not to be solved as a whole."""
EXCESSES = (0.0025, TOLERANCE)
"""What windows aim at above the bound, when the bound itself is too low for them."""
REPAIR_ROUNDS = 24
SOLVED_BLOCKS = 400
SOLVER_TIME = 2.0
"""Deterministic time of the solver for a whole group: the same on every machine."""


def packed_starts(blocks: Sequence[Block], bound: int) -> list[int]:
    """Return the start of every block, the end of the highest as low as found; nothing is tried once it is `bound`.

    Blocks that are alive together share no byte.
    """
    near = neighbours(blocks)
    orders: list[list[int]] = []
    packings: list[list[int]] = []
    for ordered in (_longest, _largest, _area, _crowded):
        orders.append(ordered(blocks))
        packings.append(first_fit(blocks, near, orders[-1]))
        if peak(blocks, packings[-1]) <= bound:
            return packings[-1]
    number = min(range(len(orders)), key=lambda i: peak(blocks, packings[i]))
    packings.insert(0, packings.pop(number))
    windows = PackingRepair(blocks, near)
    found = _below(bound, packings, windows)
    if found is not None:
        return found
    best = _repaired(blocks, near, packings[0], orders[number], bound)
    for excess in EXCESSES:
        top = int(bound * (1 + excess))
        if peak(blocks, best) <= top:
            return best
        found = _below(top, (best, *packings), windows)
        if found is not None:
            return found
    if len(blocks) <= SOLVED_BLOCKS:
        best = least_starts(blocks, best, bound, SOLVER_TIME)
    return best


def _below(top: int, packings: Sequence[list[int]], windows: PackingRepair) -> list[int] | None:
    """Return the first of some packings that windows bring below `top`, None if none can be."""
    lowered = (windows.lowered(starts, top) for starts in packings)
    return next((starts for starts in lowered if starts is not None), None)


def _longest(blocks: Sequence[Block]) -> list[int]:
    """Longest lived first, then largest."""
    return sorted(range(len(blocks)), key=lambda i: (blocks[i].first - blocks[i].last, -blocks[i].size, i))


def _largest(blocks: Sequence[Block]) -> list[int]:
    """Largest first, then longest lived."""
    return sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].first - blocks[i].last, i))


def _area(blocks: Sequence[Block]) -> list[int]:
    """Most bytes times moments first."""
    return sorted(
        range(len(blocks)), key=lambda i: (-blocks[i].size * (blocks[i].last - blocks[i].first + 1), i)
    )


def _crowded(blocks: Sequence[Block]) -> list[int]:
    """Blocks alive at the most crowded moment first, the longest of them first; then at the next, and so on."""
    live: dict[int, int] = {}
    for block in blocks:
        for now in range(block.first, block.last + 1):
            live[now] = live.get(now, 0) + block.size
    rank = {now: i for i, now in enumerate(sorted(live, key=lambda now: (-live[now], now)))}
    worst = [min(rank[now] for now in range(block.first, block.last + 1)) for block in blocks]
    return sorted(
        range(len(blocks)), key=lambda i: (worst[i], blocks[i].first - blocks[i].last, -blocks[i].size, i)
    )


def first_fit(blocks: Sequence[Block], near: list[list[int]], order: Sequence[int]) -> list[int]:
    """Return starts when every block in turn takes the lowest bytes that no neighbour placed before it has."""
    starts = [-1] * len(blocks)
    for i in order:
        taken = sorted((starts[j], starts[j] + blocks[j].size) for j in near[i] if starts[j] >= 0)
        address, size = 0, blocks[i].size
        for low, high in taken:
            if low - address >= size:
                break
            address = max(address, high)
        starts[i] = address
    return starts


def _repaired(
    blocks: Sequence[Block], near: list[list[int]], best: list[int], order: list[int], bound: int
) -> list[int]:
    """Return starts after the blocks that end too high were placed before their neighbours, as often as that helps."""
    best_peak = peak(blocks, best)
    starts = best
    seen: set[tuple[int, ...]] = set()
    for _ in range(REPAIR_ROUNDS):
        if best_peak <= bound:
            break
        place = {i: number for number, i in enumerate(order)}
        high = {i for i, block in enumerate(blocks) if starts[i] + block.size > bound}
        ahead = {i: min(place[j] for j in (i, *near[i])) for i in high}
        order = sorted(order, key=lambda i: (ahead.get(i, place[i]), i not in high, place[i]))
        if tuple(order) in seen:
            break
        seen.add(tuple(order))
        starts = first_fit(blocks, near, order)
        if peak(blocks, starts) < best_peak:
            best, best_peak = starts, peak(blocks, starts)
    return best
