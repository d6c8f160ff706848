"""The best choice and a proof how good it is: branch and bound over the bytes that weights take at rest.

Every interval of idle bytes has a lower bound (see `relaxation`) and gives choices that fit; the interval with the
least bound is halved at a breakpoint until no interval can hide a choice better than the best known by more than the
gap asked for. In small models an operator's rows are parted where halving does not help, and what bounds alone cannot
close, an integer program over the rows tries to (see `polish`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from t10.core.arrays import Ints
from t10.plan.joint.improve import Neighbourhood
from t10.plan.joint.loosen import relaxation_of
from t10.plan.joint.relaxation import Bound, Region
from t10.plan.joint.selection import Selection

MOST_INTERVALS = 3000
FEW_INTERVALS = 400
FEW_OPERATORS = 64
"""Models with more operators than this are halved less often, as each bound takes longer, and are not parted: one
operator of many decides little."""
MOST_WORK = 30_000_000_000
"""Work after which the best choice so far is taken: half a minute or so of a core, ten times what large models need."""
MOST_HALVINGS = 7
"""Idle bytes are halved so often before operators are parted."""
TIGHTENINGS = 4
MOST_IMPROVED = 40
POLISH_WORK = 0.5
"""Effort of the integer program, in CP-SAT's deterministic units (about four seconds each)."""
CLOSE = 0.002
"""Choices that are slower than the best known by less are improved by exchanges too."""
WORTH_IMPROVING = 1.01
"""Choices up to this factor slower than the best known are improved one operator at a time."""


@dataclass(frozen=True, slots=True)
class Solution:
    """The rows chosen, one per operator, their cycles, what no choice can undercut, and the work it was to find out."""

    rows: Ints
    cycles: int
    bound_cycles: int
    work: int = 0

    @property
    def gap(self) -> float:
        """Return the part of the cycles that a better choice could save at most."""
        return 1 - self.bound_cycles / max(self.cycles, 1)


@dataclass(order=True, slots=True)
class _Interval:
    """A region, idle bytes from `low` to `high`, the bound there; `order` breaks ties, `depth` counts halvings."""

    cycles: float
    order: int
    low: int = field(compare=False)
    high: int = field(compare=False)
    depth: int = field(compare=False)
    region: Region = field(compare=False)
    bound: Bound = field(compare=False)


class _Search:
    """The state of one branch and bound."""

    def __init__(self, selection: Selection, starts: Iterable[Ints]) -> None:
        self.selection = selection
        self.relaxation = relaxation_of(selection)
        self.near = Neighbourhood(selection)
        self.best: Ints | None = None
        self.best_cycles = 0
        self.seen: set[bytes] = set()
        self.n_improved = 0
        self.price = 0.0
        self.work = 0
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

    def bounds(self, intervals: Sequence[tuple[int, int, Region]]) -> list[Bound]:
        """Return the bounds of intervals, worked out side by side."""

        def of(interval: tuple[int, int, Region]) -> Bound:
            low, high, region = interval
            return self.relaxation.bound(self.relaxation.limits(low, region), high, self.price, region)

        if len(intervals) == 1:
            return self.counted([of(intervals[0])])
        with ThreadPoolExecutor(len(intervals)) as pool:
            return self.counted(list(pool.map(of, intervals)))

    def counted(self, bounds: list[Bound]) -> list[Bound]:
        """Return bounds, their work counted."""
        self.work += sum(bound.n_prices for bound in bounds) * self.relaxation.work
        return bounds

    def take(self, bound: Bound) -> None:
        """Offer what a bound found on the way, and start the next one near its price."""
        self.price = bound.price or self.price
        if bound.within is not None:
            self.offer(bound.within.rows)
            if bound.beyond is not None:
                self.offer(self.near.mixed(bound.within.rows, bound.beyond.rows))

    def halves(self, interval: _Interval) -> tuple[Region, Region] | None:
        """Return two regions that share the rows of an interval's, None where nothing is left to decide.

        They part one operator's rows: where the choices within and beyond the idle bytes differ most, by idle bytes;
        else, where the best choice does not fit after all, by the state that takes more than the bound believes.
        """
        selection, bound = self.selection, interval.bound
        if bound.within is None:
            return None
        chosen, idle = bound.within.rows, selection.rows.idle_bytes
        is_lower = interval.region.is_open.copy()
        far = None if bound.beyond is None else np.abs(idle[chosen] - idle[bound.beyond.rows])
        if bound.beyond is not None and far is not None and far.max() > 0:
            operator = int(np.argmax(far))
            limit = (idle[chosen[operator]] + idle[bound.beyond.rows[operator]]) // 2
            rows = np.array(selection.rows_of(operator))
            is_lower[rows[idle[rows] > limit]] = False
        else:
            doubted = self.near.doubted(chosen, interval.region.is_open)
            if doubted is None:
                return None
            rows = np.array(selection.rows_of(doubted))
            is_lower[rows[selection.rows.state[rows] != selection.rows.state[chosen[doubted]]]] = False
        is_upper = interval.region.is_open & ~is_lower
        is_upper |= interval.region.is_open & (
            self.relaxation.operator_by_row != self.relaxation.operator_by_row[rows[0]]
        )
        return self.relaxation.region(is_lower), self.relaxation.region(is_upper)

    def try_at(self, idle_bytes: int) -> None:
        """Offer choices under the limits that hold with so many idle bytes, limits tightened where they do not do."""
        limits = self.relaxation.limits(idle_bytes)
        for _ in range(TIGHTENINGS):
            (bound,) = self.counted([self.relaxation.bound(limits, idle_bytes, self.price)])
            if bound.within is None:
                return
            if bound.beyond is not None:
                self.offer(self.near.mixed(bound.within.rows, bound.beyond.rows))
            if self.selection.fits(bound.within.rows):
                self.offer(bound.within.rows)
                return
            over = self.selection.used_bytes(bound.within.rows) - self.selection.room_bytes
            over = over.reshape(limits.shape)
            need = self.relaxation.whole.need_bytes[bound.within.rows]
            limits = np.where(over > 0, np.minimum(limits, need - 1), limits)

    def polished(self, gap: float) -> float:
        """Offer what an integer program makes of a small problem and return the bound it proves, 0 for a large one."""
        # Imported where it is needed: the solver's bindings bring pandas, which takes longer than a small model.
        from t10.plan.joint.polish import is_small, polish

        if not is_small(self.selection):
            return 0.0
        found = polish(self.selection, self.best, range(self.selection.n_operators), POLISH_WORK, gap)
        self.offer(found.rows)
        return found.bound_cycles


def solve(
    selection: Selection,
    gap: float,
    starts: Iterable[Ints] = (),
    is_over: Callable[[], bool] = lambda: False,
    work: int = MOST_WORK,
) -> Solution | None:
    """Return the best choice found and a bound of all, None where no choice fits.

    Stops at the relative `gap`, or when intervals cannot be halved; with the best it has, after so much `work` (see
    `Relaxation.work`: the same on every machine), or when `is_over` says so.
    """
    search = _Search(selection, starts)
    rows = selection.rows
    least = sum(int(rows.idle_bytes[list(selection.rows_of(o))].min()) for o in range(selection.n_operators))
    most = sum(int(rows.idle_bytes[list(selection.rows_of(o))].max()) for o in range(selection.n_operators))
    points = np.unique(np.clip(search.relaxation.breakpoints(), least, most))
    heap: list[_Interval] = []
    final = np.inf
    number = 0

    def push(depth: int, *intervals: tuple[int, int, Region]) -> None:
        nonlocal number
        for (low, high, region), bound in zip(intervals, search.bounds(intervals), strict=True):
            search.take(bound)
            if np.isfinite(bound.cycles):
                cycles = np.ceil(bound.cycles - 1e-6)
                heapq.heappush(heap, _Interval(cycles, number, low, high, depth, region, bound))
                number += 1

    is_large = selection.n_operators > FEW_OPERATORS
    limit = FEW_INTERVALS if is_large else MOST_INTERVALS
    push(0, (least, most, search.relaxation.whole))
    while heap and number < limit and search.work < work and not is_over():
        top = heapq.heappop(heap)
        if search.best is not None and top.cycles >= search.best_cycles * (1 - gap):
            heapq.heappush(heap, top)
            break
        inside = points[(points >= top.low) & (points < top.high)]
        if len(inside) and (is_large or top.depth < MOST_HALVINGS):
            search.try_at(top.high)
            middle = int(inside[len(inside) // 2])
            push(top.depth + 1, (top.low, middle, top.region), (middle + 1, top.high, top.region))
            continue
        halves = None if is_large else search.halves(top)
        if halves is None:
            final = min(final, top.cycles)
            continue
        push(top.depth, *((top.low, top.high, half) for half in halves))
    lowest = min([final, *(interval.cycles for interval in heap[:1])])
    is_closed = search.best is not None and lowest >= search.best_cycles * (1 - gap)
    if np.isfinite(lowest) and not is_closed and search.work < work and not is_over():
        lowest = max(lowest, search.polished(gap))
    if search.best is None:
        return None
    return Solution(search.best, search.best_cycles, int(min(lowest, search.best_cycles)), search.work)
