"""Lower bounds of all choices whose idle bytes are between two numbers.

If all operators together keep at least `low` idle bytes, rows that need more than what remains are out. At most
`high` idle bytes is one knapsack constraint, relaxed by a multiplier (cycles per byte). The remaining sum of tables
over few operators each is minimised exactly by elimination. Live values and operands in place count with their least
bytes, so the bound holds for any choice of the others.
Source: Lagrangian relaxation of one constraint; compute-shift model R9-R11 for the memory rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from t10.core.arrays import Bools, Floats, Ints
from t10.plan.joint._minsum import Elimination
from t10.plan.joint.selection import Selection

LEAST_IDLE = 1e9
"""Cycles per byte at which idle bytes count more than any cycles can."""
PRICE_STEPS = 40
ROW_WORK, CALL_WORK = 20, 100_000
"""What a row, and what asking at all, takes: in sums of an elimination, which take about a nanosecond."""
BestAt = Callable[[float], "Line | None"]


@dataclass(frozen=True, slots=True)
class Line:
    """A choice that is best at some price: one row per operator, its cycles and idle bytes, the work it was to find."""

    rows: Ints
    cycles: int
    idle_bytes: int
    work: int = 0

    def at(self, price: float) -> float:
        """Return cycles and priced idle bytes."""
        return self.cycles + price * self.idle_bytes


@dataclass(frozen=True, slots=True)
class Bound:
    """`cycles` is a lower bound (infinite where nothing fits); `within` keeps to the idle bytes, `beyond` does not.

    `price` is the multiplier that gives the bound; `work` is what it took to find it.
    """

    cycles: float
    within: Line | None = None
    beyond: Line | None = None
    price: float = 0.0
    work: int = 0


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a problem: the rows that are open, what each needs at least there, and values alive take at least."""

    is_open: Bools
    need_bytes: Ints
    live_bytes: Ints


class Relaxation:
    """Bounds of one selection; the elimination is laid out once."""

    def __init__(self, selection: Selection) -> None:
        """Lay out the tables."""
        self.selection = selection
        different = {id(t.values): t.values for t in selection.costs}
        costs = {each: np.ascontiguousarray(v, np.float64).ravel() for each, v in different.items()}
        factors = [(open_scope(t.scope, selection.n_states), costs[id(t.values)]) for t in selection.costs]
        self.elimination = Elimination(selection.n_states, factors)
        self.whole = self.region(np.ones(len(selection.rows.state), np.bool_))
        live = self.whole.live_bytes[selection.operator_by_row]
        self._most_idle_by_row: Ints = (selection.room_bytes - live - self.whole.need_bytes).min(axis=1)
        self._known: dict[tuple[bytes, float], Line | None] = {}
        self._open: tuple[Region, Ints, Bools] | None = None

    def region(self, is_open: Bools) -> Region:
        """Return the part of the problem with these rows, and what they and values alive take at least in it."""
        states = np.zeros(int(self.selection.first_state[-1]), np.bool_)
        states[self.selection.rows.state[is_open]] = True
        return Region(is_open, _least_need(self.selection, states), _least_live(self.selection, states))

    def limits(self, idle_bytes: int, region: Region | None = None) -> Ints:
        """Return per operator and phase the bytes it may need if weights at rest take `idle_bytes`."""
        return self.selection.room_bytes - idle_bytes - (region or self.whole).live_bytes

    def breakpoints(self) -> Ints:
        """Return the idle bytes at which some row stops to fit, ascending."""
        most = self._most_idle_by_row
        return np.unique(most[most >= 0])

    def most_idle_bytes(self) -> int:
        """Return the idle bytes beyond which some operator has no row that fits; negative where one never has."""
        first = self.selection.first_row[self.selection.first_state[:-1]]
        return int(np.maximum.reduceat(self._most_idle_by_row, first).min())

    def best(self, limits: Ints, price: float, region: Region | None = None) -> Line | None:
        """Return the best choice at a price under limits per operator, None where one has no row left.

        Of the whole problem it is found once: whoever leaves out rows bounds the problem again (`narrow`).
        """
        if region is not None and region is not self.whole:
            return self._best(limits, price, region)
        key = limits.tobytes(), price
        if key not in self._known:
            self._known[key] = self._best(limits, price, self.whole)
        return self._known[key]

    def _best(self, limits: Ints, price: float, region: Region) -> Line | None:
        selection, rows = self.selection, self.selection.rows
        costs, by_state = self._costs(limits, price, region)
        least, states, n_sums = self.elimination.minimise(by_state)
        if not np.isfinite(least):
            return None
        state = selection.first_state[:-1] + np.array(states, np.int64)
        first, n_rows = (
            selection.first_row[state],
            selection.first_row[state + 1] - selection.first_row[state],
        )
        columns = np.minimum(np.arange(int(n_rows.max())), n_rows[:, None] - 1)
        chosen = first + np.argmin(costs[first[:, None] + columns], axis=1)
        work = n_sums + ROW_WORK * len(rows.state) + CALL_WORK
        return Line(chosen, selection.cycles(chosen), selection.idle_bytes(chosen), work)

    def least_by_row(self, limits: Ints, price: float) -> tuple[Floats, int]:
        """Return what choices with a row take at least at a price under limits per operator, and the work it was.

        Rows of no choice are infinite.
        """
        costs, by_state = self._costs(limits, price, self.whole)
        least, n_sums = self.elimination.least_by_state(by_state)
        state = self.selection.rows.state
        own = np.where(np.isfinite(costs), costs, 0.0) - np.where(np.isfinite(by_state), by_state, 0.0)[state]
        least = np.where(np.isfinite(costs), least[state] + own, np.inf)
        return least, n_sums + ROW_WORK * len(state) + CALL_WORK

    def _costs(self, limits: Ints, price: float, region: Region) -> tuple[Floats, Floats]:
        """Return what rows cost at a price, infinite those that are not open, and the least by state."""
        rows, is_open = self.selection.rows, self._open_rows(limits, region)
        costs = np.where(is_open, rows.cycles + price * rows.idle_bytes, np.inf)
        return costs, np.minimum.reduceat(costs, self.selection.first_row[:-1])

    def _open_rows(self, limits: Ints, region: Region) -> Bools:
        """Return the rows of a region that keep to limits: those of the call before where they are asked for again."""
        known = self._open
        if known is not None and known[0] is region and np.array_equal(known[1], limits):
            return known[2]
        is_open, most = region.is_open.copy(), limits[self.selection.operator_by_row]
        for phase in range(self.selection.n_phases):
            is_open &= region.need_bytes[:, phase] <= most[:, phase]
        self._open = region, limits, is_open
        return is_open

    def bound(self, limits: Ints, idle_bytes: int, hint: float = 0.0, region: Region | None = None) -> Bound:
        """Return the bound of all choices under limits per operator with at most `idle_bytes` at rest.

        `hint` is a price near which the best one is expected; it saves work, not more.
        """
        work = 0

        def best(price: float) -> Line | None:
            nonlocal work
            found = self.best(limits, price, region)
            work += CALL_WORK if found is None else found.work
            return found

        return replace(_bound(best, idle_bytes, hint), work=work)


def open_scope(scope: tuple[int, ...], n_states: Sequence[int]) -> tuple[int, ...]:
    """Return the operators of a table that have a choice, one at least; a table is as long without the others.

    Without them no two operators are tied together by a third that has no choice: in a deep stack of equal layers the
    elimination would need tables over all of those.
    """
    return tuple(number for number in scope if n_states[number] > 1) or scope[:1]


def _bound(best: BestAt, idle_bytes: int, hint: float) -> Bound:
    """Return the bound that costs prove, of all choices with at most `idle_bytes` at rest."""
    bracket = _bracket(best, idle_bytes, hint)
    if isinstance(bracket, Bound):
        return bracket
    within, beyond = bracket
    cycles, best_price = 0.0, 0.0
    for _ in range(PRICE_STEPS):
        price = (within.cycles - beyond.cycles) / (beyond.idle_bytes - within.idle_bytes)
        if price <= 0:
            return Bound(within.cycles, within, beyond)
        found = best(price)
        if found is None:
            break
        # Every price gives a bound: where steps run out, the best so far is one.
        if found.at(price) - price * idle_bytes > cycles:
            cycles, best_price = found.at(price) - price * idle_bytes, price
        if found.at(price) >= min(within.at(price), beyond.at(price)) - 1e-6:
            break
        if found.idle_bytes <= idle_bytes:
            within = found
        else:
            beyond = found
    return Bound(cycles, within, beyond, best_price)


def _bracket(best: BestAt, idle_bytes: int, hint: float) -> tuple[Line, Line] | Bound:
    """Return a choice within the idle bytes and one beyond, or the bound where one of them is all there is."""
    within = beyond = None
    for price in (hint * 0.8, hint * 1.25) if hint > 0 else ():
        found = best(price)
        if found is None:
            return Bound(np.inf)
        if found.idle_bytes <= idle_bytes:
            within = found
            break
        beyond = found
    beyond = beyond or best(0.0)
    if beyond is None:
        return Bound(np.inf)
    if beyond.idle_bytes <= idle_bytes:
        return Bound(beyond.cycles, beyond, None)
    within = within or best(LEAST_IDLE)
    if within is None or within.idle_bytes > idle_bytes:
        return Bound(np.inf)
    return within, beyond


def _least_need(selection: Selection, is_open: Bools) -> Ints:
    """Return what every row needs at least in every phase, with every operand in place that could be."""
    by_state = np.zeros((int(selection.first_state[-1]), selection.n_phases), np.int64)
    is_whole = bool(is_open.all())
    # Equal layers share their tables.
    known: dict[tuple[int, int], Ints] = {}
    for saving in selection.savings:
        scope, values = saving.table.scope, saving.table.values
        own = scope.index(saving.operator)
        most = known.get((id(values), own)) if is_whole else None
        if most is None:
            others = tuple(i for i in range(len(scope)) if i != own)
            for axis in () if is_whole else others:
                values = values.compress(_open_states(selection, is_open, scope[axis]), axis=axis)
            most = known[id(saving.table.values), own] = values.max(axis=others) if others else values
        first = selection.first_state[saving.operator]
        by_state[first : first + len(most), saving.phase] += most
    return selection.rows.need_bytes - by_state[selection.rows.state]


def _least_live(selection: Selection, is_open: Bools) -> Ints:
    """Return the bytes of other values that are alive at least in every phase of each operator."""
    least = np.array(
        [
            life.n_bytes[_open_states(selection, is_open, life.decided_by)].min()
            for life in selection.lifetimes
        ],
        np.int64,
    )
    changes = np.zeros(selection.n_operators * selection.n_phases + 1, np.int64)
    np.add.at(changes, [life.first for life in selection.lifetimes], least)
    np.subtract.at(changes, [life.last + 1 for life in selection.lifetimes], least)
    return np.cumsum(changes[:-1]).reshape(selection.n_operators, selection.n_phases)


def _open_states(selection: Selection, is_open: Bools, operator: int) -> Bools:
    """Return which states of an operator have open rows."""
    return is_open[selection.first_state[operator] : selection.first_state[operator + 1]]
