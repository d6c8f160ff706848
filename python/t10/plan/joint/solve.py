"""The best choice and a proof how good it is: branch and bound over the bytes that weights take at rest.

Every interval of idle bytes has a lower bound (see `relaxation`) and gives choices that fit; the interval with the
least bound is halved at a breakpoint until no interval can hide a choice better than the best known by more than the
gap asked for. What bounds alone cannot close, an integer program over the rows that are left tries to (see `polish`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from t10.plan.joint.improve import Neighbourhood
from t10.plan.joint.polish import is_small, polish
from t10.plan.joint.relaxation import Bound, Relaxation
from t10.plan.joint.selection import Ints, Selection

MOST_INTERVALS = 400
TIGHTENINGS = 4
MOST_IMPROVED = 40
POLISH_WORK = 2.0
"""Effort of the integer program, in CP-SAT's deterministic units (about seconds)."""
CLOSE = 0.002
"""Choices that are slower than the best known by less are improved by exchanges too."""
WORTH_IMPROVING = 1.01
"""Choices up to this factor slower than the best known are improved one operator at a time."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The rows chosen, one per operator, their cycles, and what no choice can undercut."""

    rows: Ints
    cycles: int
    bound_cycles: int

    @property
    def gap(self) -> float:
        """Return the part of the cycles that a better choice could save at most."""
        return 1 - self.bound_cycles / max(self.cycles, 1)


@dataclass(order=True, slots=True)
class _Interval:
    """Idle bytes from `low` to `high` and the bound there; `order` breaks ties."""

    cycles: float
    order: int
    low: int
    high: int


class _Search:
    """The state of one branch and bound."""

    def __init__(self, selection: Selection, starts: Iterable[Ints]) -> None:
        self.selection = selection
        self.relaxation = Relaxation(selection)
        self.near = Neighbourhood(selection)
        self.best: Ints | None = None
        self.best_cycles = 0
        self.seen: set[bytes] = set()
        self.n_improved = 0
        self.price = 0.0
        for rows in starts:
            if selection.fits(rows) and (self.best is None or selection.cycles(rows) < self.best_cycles):
                self.best, self.best_cycles = rows, selection.cycles(rows)

    def offer(self, rows: Ints | None) -> None:
        """Take a choice that fits, improved, if it is faster than the best known."""
        if rows is None or rows.tobytes() in self.seen or not self.selection.fits(rows):
            return
        self.seen.add(rows.tobytes())
        cycles = self.selection.cycles(rows)
        if self.best is None or cycles < self.best_cycles:
            self.best, self.best_cycles = rows, cycles
        elif cycles > self.best_cycles * WORTH_IMPROVING or self.n_improved > MOST_IMPROVED:
            return
        self.n_improved += 1
        rows = self.near.improved(rows)
        cycles = self.selection.cycles(rows)
        while cycles < self.best_cycles * (1 + CLOSE):
            exchanged = self.near.exchanged(rows)
            if exchanged is None:
                break
            rows = self.near.improved(exchanged)
            cycles = self.selection.cycles(rows)
        self.seen.add(rows.tobytes())
        if cycles < self.best_cycles:
            self.best, self.best_cycles = rows, cycles

    def bounds(self, intervals: Sequence[tuple[int, int]]) -> list[Bound]:
        """Return the bounds of intervals, worked out side by side."""

        def of(interval: tuple[int, int]) -> Bound:
            low, high = interval
            return self.relaxation.bound(self.relaxation.limits(low), high, self.price)

        if len(intervals) == 1:
            return [of(intervals[0])]
        with ThreadPoolExecutor(len(intervals)) as pool:
            return list(pool.map(of, intervals))

    def take(self, bound: Bound) -> None:
        """Offer what a bound found on the way, and start the next one near its price."""
        self.price = bound.price or self.price
        if bound.within is not None:
            self.offer(bound.within.rows)
            if bound.beyond is not None:
                self.offer(self.near.mixed(bound.within.rows, bound.beyond.rows))

    def try_at(self, idle_bytes: int) -> None:
        """Offer choices under the limits that hold with so many idle bytes, limits tightened where they do not do."""
        limits = self.relaxation.limits(idle_bytes)
        for _ in range(TIGHTENINGS):
            bound = self.relaxation.bound(limits, idle_bytes, self.price)
            if bound.within is None:
                return
            if bound.beyond is not None:
                self.offer(self.near.mixed(bound.within.rows, bound.beyond.rows))
            if self.selection.fits(bound.within.rows):
                self.offer(bound.within.rows)
                return
            over = self.selection.used_bytes(bound.within.rows) - self.selection.room_bytes
            over = over.reshape(limits.shape)
            need = self.relaxation.need_bytes[bound.within.rows]
            limits = np.where(over > 0, np.minimum(limits, need - 1), limits)


def solve(
    selection: Selection,
    gap: float,
    starts: Iterable[Ints] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> Solution | None:
    """Return the best choice found and a bound of all, None where no choice fits.

    Stops at the relative `gap`, when `is_over` says so (with the best it has), or when intervals cannot be halved.
    """
    search = _Search(selection, starts)
    rows = selection.rows
    least = sum(int(rows.idle_bytes[list(selection.rows_of(o))].min()) for o in range(selection.n_operators))
    most = sum(int(rows.idle_bytes[list(selection.rows_of(o))].max()) for o in range(selection.n_operators))
    points = np.unique(np.clip(search.relaxation.breakpoints(), least, most))
    heap: list[_Interval] = []
    final = np.inf
    number = 0

    def push(*intervals: tuple[int, int]) -> None:
        nonlocal number
        for (low, high), bound in zip(intervals, search.bounds(intervals), strict=True):
            search.take(bound)
            if np.isfinite(bound.cycles):
                heapq.heappush(heap, _Interval(np.ceil(bound.cycles - 1e-6), number, low, high))
                number += 1

    push((least, most))
    while heap and number < MOST_INTERVALS and not is_over():
        top = heapq.heappop(heap)
        if search.best is not None and top.cycles >= search.best_cycles * (1 - gap):
            heapq.heappush(heap, top)
            break
        search.try_at(top.high)
        inside = points[(points >= top.low) & (points < top.high)]
        if not len(inside):
            final = min(final, top.cycles)
            continue
        middle = int(inside[len(inside) // 2])
        push((top.low, middle), (middle + 1, top.high))
    lowest = min([final, *(interval.cycles for interval in heap[:1])])
    is_closed = search.best is not None and lowest >= search.best_cycles * (1 - gap)
    if np.isfinite(lowest) and not is_closed and not is_over() and is_small(selection):
        everyone = range(selection.n_operators)
        polished = polish(selection, search.best, everyone, POLISH_WORK, gap)
        search.offer(polished.rows)
        lowest = max(lowest, polished.bound_cycles)
    if search.best is None:
        return None
    return Solution(search.best, search.best_cycles, int(min(lowest, search.best_cycles)))
