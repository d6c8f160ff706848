"""Packing rectangles of fixed lifetime into as few bytes as possible: orders of first fit, repair, then CP-SAT."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

TOLERANCE = 0.01
"""A packing this close to its bound is good enough not to be solved exactly."""
REPAIR_ROUNDS = 24
SOLVED_BLOCKS = 400
SOLVER_SECONDS = 2.0
"""Deterministic time of the solver: the same on every machine."""


@dataclass(frozen=True, slots=True)
class Block:
    """`size` bytes alive from moment `first` to `last`, both included."""

    first: int
    last: int
    size: int


def packed_starts(blocks: Sequence[Block], bound: int) -> list[int]:
    """Return the start of every block, the end of the highest as low as found; nothing is tried once it is `bound`.

    Blocks that are alive together share no byte.
    """
    near = _neighbours(blocks)
    best = _first_fit(blocks, near, _longest(blocks))
    best_order = _longest(blocks)
    for order in (_largest(blocks), _area(blocks), _crowded(blocks)):
        if _peak(blocks, best) <= bound:
            return best
        starts = _first_fit(blocks, near, order)
        if _peak(blocks, starts) < _peak(blocks, best):
            best, best_order = starts, order
    best = _repaired(blocks, near, best, best_order, bound)
    if _peak(blocks, best) > bound * (1 + TOLERANCE) and len(blocks) <= SOLVED_BLOCKS:
        best = _solved(blocks, best, bound)
    return best


def _peak(blocks: Sequence[Block], starts: Sequence[int]) -> int:
    return max((start + block.size for start, block in zip(starts, blocks, strict=True)), default=0)


def _neighbours(blocks: Sequence[Block]) -> list[list[int]]:
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


def _first_fit(blocks: Sequence[Block], near: list[list[int]], order: Sequence[int]) -> list[int]:
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
    best_peak = _peak(blocks, best)
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
        starts = _first_fit(blocks, near, order)
        if _peak(blocks, starts) < best_peak:
            best, best_peak = starts, _peak(blocks, starts)
    return best


def _solved(blocks: Sequence[Block], hint: list[int], bound: int) -> list[int]:
    """Return the starts that CP-SAT finds, no worse than the hint."""
    cp_model = importlib.import_module("ortools.sat.python.cp_model")
    unit = gcd(bound, *(block.size for block in blocks))
    top = _peak(blocks, hint) // unit
    model = cp_model.CpModel()
    peak = model.new_int_var(min(bound // unit, top), top, "peak")
    lifetimes: list[Any] = []
    ranges: list[Any] = []
    starts: list[Any] = []
    for i, block in enumerate(blocks):
        size = block.size // unit
        start = model.new_int_var(0, top - size, f"start{i}")
        n_moments = block.last + 1 - block.first
        lifetimes.append(model.new_fixed_size_interval_var(block.first, n_moments, f"lifetime{i}"))
        ranges.append(model.new_fixed_size_interval_var(start, size, f"range{i}"))
        starts.append(start)
        model.add(start + size <= peak)
        model.add_hint(start, hint[i] // unit)
    model.add_no_overlap_2d(lifetimes, ranges)
    model.minimize(peak)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    solver.parameters.max_deterministic_time = SOLVER_SECONDS
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return hint
    return [int(solver.value(start)) * unit for start in starts]
