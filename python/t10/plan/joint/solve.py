"""The best choice with a proof of its gap: branch and bound over the idle bytes of weights.

Every interval of idle bytes has a lower bound (`relaxation`) and gives choices that fit. The interval with the least
bound is halved at a breakpoint until the gap is reached. In small models the rows of one operator are divided if
halving does not help. If bounds are not exact, states that cannot be part of a better choice are removed first
(`narrow`). An integer program over the rows closes what bounds leave open (`polish`).
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
from t10.plan.joint.narrow import Narrowed, narrowed
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
NARROWER = 0.9
"""A narrower problem has this part of the rows at most, or it is not worth a try."""
NARROWING_GAP = 0.03
"""Problems are narrowed where the best choice known is no farther from the bound: else hardly a state is left out."""
FIRST_INTERVALS = 32
"""So many intervals find a good choice mostly: after them, and at once, narrowing is tried."""
MOST_IMPROVED = 40
POLISHED_ROWS, POLISHED_ENTRIES = 6_000, 50_000
"""Problems of so many rows, and entries of tables, at most are small enough for one integer program: of 445,129 entries
of 21 operators it proved less than was known, in six seconds."""
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
        idle = np.split(selection.rows.idle_bytes, selection.first_row[selection.first_state[1:-1]])
        most = sum(int(own.max()) for own in idle)
        self.idle = sum(int(own.min()) for own in idle), min(most, self.relaxation.most_idle_bytes())
        self.best: Ints | None = None
        self.best_cycles = 0
        self.seen: set[bytes] = set()
        self.n_improved = 0
        self.price = 0.0
        self.work = 0
        self.heap: list[_Interval] = []
        self.n_intervals = 0
        self.final = np.inf
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
        self.work += sum(bound.work for bound in bounds)
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
            selection.operator_by_row != selection.operator_by_row[rows[0]]
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

    def push(self, depth: int, *intervals: tuple[int, int, Region]) -> None:
        """Bound intervals and keep those in which some choice may fit."""
        for (low, high, region), bound in zip(intervals, self.bounds(intervals), strict=True):
            self.take(bound)
            if np.isfinite(bound.cycles):
                cycles = np.ceil(bound.cycles - 1e-6)
                heapq.heappush(
                    self.heap, _Interval(cycles, self.n_intervals, low, high, depth, region, bound)
                )
                self.n_intervals += 1

    def is_closed(self, lowest: float, gap: float) -> bool:
        """Return whether the best choice known is known to be good enough."""
        return self.best is not None and lowest >= self.best_cycles * (1 - gap)

    @property
    def lowest(self) -> float:
        """Return what no choice undercuts, as far as intervals say."""
        return float(min([self.final, *(interval.cycles for interval in self.heap[:1])]))

    @property
    def is_large(self) -> bool:
        """Return whether the problem has so many operators that one of them decides little."""
        return self.selection.n_operators > FEW_OPERATORS

    def branch(self, gap: float, is_over: Callable[[], bool], most: int) -> None:
        """Halve intervals until the gap is closed, nothing can be halved, or there were `most` of them."""
        points = np.unique(np.clip(self.relaxation.breakpoints(), *self.idle))
        while self.heap and self.n_intervals < most and not is_over():
            top = heapq.heappop(self.heap)
            if self.is_closed(top.cycles, gap):
                heapq.heappush(self.heap, top)
                break
            inside = points[(points >= top.low) & (points < top.high)]
            if len(inside) and (self.is_large or top.depth < MOST_HALVINGS):
                self.try_at(top.high)
                middle = int(inside[len(inside) // 2])
                self.push(top.depth + 1, (top.low, middle, top.region), (middle + 1, top.high, top.region))
                continue
            halves = None if self.is_large else self.halves(top)
            if halves is None:
                self.final = min(self.final, top.cycles)
                continue
            self.push(top.depth, *((top.low, top.high, half) for half in halves))

    def narrower(self, gap: float) -> Narrowed | None:
        """Return the problem without rows in which no choice is better by more than the gap, None if that is no help.

        It is one where a good choice is known of few operators, or of ones too entangled to be eliminated exactly, and
        where few states are left of them.
        """
        is_loose = self.relaxation.selection is not self.selection
        if (
            self.best is None
            or (self.is_large and not is_loose)
            or not self.is_closed(self.lowest, NARROWING_GAP)
        ):
            return None
        limit = self.best_cycles * (1 - gap)
        found = narrowed(self.relaxation, self.selection, self.best, limit, self.idle)
        self.work += found.work
        return found if len(found.rows) <= NARROWER * len(self.selection.rows.state) else None

    def solved(self, narrower: Narrowed, gap: float, is_over: Callable[[], bool], work: int) -> float:
        """Take the best choice of a narrower problem; return what no choice undercuts, with the states left out."""
        assert self.best is not None
        found = solve(narrower.selection, gap, [narrower.inside(self.best)], is_over, work - self.work)
        assert found is not None, "the best choice known is in the narrower problem"
        self.work += found.work
        self.offer(narrower.rows[found.rows])
        return min(narrower.bound_cycles, found.bound_cycles)

    def polished(self, gap: float) -> float:
        """Offer what an integer program makes of a small problem and return the bound it proves, 0 for a large one."""
        n_entries = sum(table.values.size for table in self.selection.costs)
        if len(self.selection.rows.state) > POLISHED_ROWS or n_entries > POLISHED_ENTRIES:
            return 0.0
        # Imported where it is needed: the solver's bindings bring pandas, which takes longer than a small model.
        from t10.plan.joint.polish import polish

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
    `Line.work`: the same on every machine), or when `is_over` says so.
    """
    search = _Search(selection, starts)

    def is_done() -> bool:
        return search.work >= work or is_over()

    search.push(0, (*search.idle, search.relaxation.whole))
    lowest = search.lowest
    for most in (1, FIRST_INTERVALS, FEW_INTERVALS if search.is_large else MOST_INTERVALS):
        search.branch(gap, is_done, most)
        lowest = search.lowest
        if search.is_closed(lowest, gap) or not np.isfinite(lowest) or is_done():
            break
        narrower = search.narrower(gap)
        if narrower is not None:
            lowest = max(lowest, search.solved(narrower, gap, is_over, work))
            break
    else:
        lowest = max(lowest, search.polished(gap))
    if search.best is None:
        return None
    bound_cycles = int(min(lowest, search.best_cycles))
    return Solution(search.best, search.best_cycles, bound_cycles, search.work)
