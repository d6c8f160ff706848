"""Random selections (see `t10.plan.joint.selection`), and every choice of a small one, counted without cleverness."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from t10.plan.joint.selection import Lifetime, Rows, Saving, Selection, Table

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

N_PHASES = 3
MOST_CHOICES = 4000


def random_selection(number: int, room_bytes: int | None = None) -> Selection:
    """Return a small problem with at most `MOST_CHOICES` choices; about one in ten has none that fits.

    Operators read what up to two earlier ones made; tables may have one to three operators and share a scope.
    """
    rng = np.random.default_rng(number)
    n = int(rng.integers(1, 7))
    n_states, rows = _random_rows(rng, n)
    costs: list[Table] = []
    savings: list[Saving] = []
    lifetimes: list[Lifetime] = []
    for reader in range(n):
        if rng.random() < 0.2:
            costs.append(_random_table(rng, (reader,), n_states, 30))
        makers = sorted(
            {int(m) for m in rng.integers(max(0, reader - 3), reader, size=2)} if reader else set()
        )
        scopes = [(maker, reader) for maker in makers]
        if len(makers) == 2 and rng.random() < 0.3:
            scopes = [(*makers, reader)]
        for scope in scopes:
            table = _random_table(rng, scope, n_states, 80)
            costs += [table] * int(rng.integers(1, 3))
            savings += _random_savings(rng, table, reader)
        lifetimes += [_random_lifetime(rng, maker, reader, n, n_states) for maker in makers]
    if room_bytes is None:
        room_bytes = int(rng.integers(50, 110 + 40 * n))
    return Selection(n_states, rows, tuple(costs), tuple(savings), tuple(lifetimes), room_bytes)


def chained_selection(number: int, n_operators: int, n_states: int, room_bytes: int) -> Selection:
    """Return a problem too large for trying every choice: every operator reads one of the three before it."""
    rng = np.random.default_rng(number)
    sizes = (n_states,) * n_operators
    state = np.repeat(np.arange(n_operators * n_states), 3)
    cycles = rng.integers(100, 2000, size=len(state))
    rows = Rows(
        state, cycles, rng.integers(0, 60, size=len(state)), rng.integers(5, 200, size=(len(state), 3))
    )
    makers = [(int(rng.integers(max(0, reader - 3), reader)), reader) for reader in range(1, n_operators)]
    costs = tuple(_random_table(rng, scope, sizes, 800) for scope in makers)
    lives = tuple(_random_lifetime(rng, *scope, n_operators, sizes) for scope in makers)
    savings = tuple(
        saving for t in costs for saving in _random_savings(rng, t, t.scope[-1]) if saving.is_certain
    )
    return Selection(sizes, rows, costs, savings, lives, room_bytes)


def _random_rows(rng: Generator, n_operators: int) -> tuple[tuple[int, ...], Rows]:
    """Return the number of states of every operator and their rows, so few that all choices can be tried."""
    most = MOST_CHOICES ** (1 / n_operators)
    n_states: list[int] = []
    levels: list[int] = []
    for _ in range(n_operators):
        n_states.append(int(rng.integers(1, min(4, int(most)) + 1)))
        left = int(most)
        for state in range(n_states[-1]):
            after = n_states[-1] - state - 1
            levels.append(int(rng.integers(1, min(3, left - after) + 1)))
            left -= levels[-1]
    state = np.repeat(np.arange(len(levels)), levels)
    return tuple(n_states), Rows(
        state=state,
        cycles=rng.integers(10, 200, size=len(state)),
        idle_bytes=rng.integers(0, 50, size=len(state)),
        need_bytes=rng.integers(20, 100, size=(len(state), N_PHASES)),
    )


def _random_table(rng: Generator, scope: tuple[int, ...], n_states: tuple[int, ...], high: int) -> Table:
    """Return a table with entries below `high`, some of them 0."""
    values = rng.integers(0, high, size=tuple(n_states[operator] for operator in scope))
    return Table(scope, np.where(values < high // 4, 0, values))


def _random_savings(rng: Generator, table: Table, reader: int) -> list[Saving]:
    """Return what operands in place save, which they are where nothing moves; not all of it is certain."""
    if rng.random() < 0.5:
        return []
    n_bytes = rng.integers(1, 20, size=table.values.shape)
    saved = Table(table.scope, np.where(table.values == 0, n_bytes, 0))
    first = int(rng.integers(0, N_PHASES))
    return [Saving(reader, phase, saved, bool(rng.random() < 0.8)) for phase in range(first, N_PHASES)]


def _random_lifetime(
    rng: Generator, maker: int, reader: int, n_operators: int, n_states: tuple[int, ...]
) -> Lifetime:
    """Return a value alive from the step after its maker to its reader or the end."""
    first = (maker + 1) * N_PHASES
    last = reader * N_PHASES + int(rng.integers(0, N_PHASES))
    if rng.random() < 0.2:
        last = n_operators * N_PHASES - 1
    return Lifetime(maker, first, last, rng.integers(0, 25, size=n_states[maker]))


def looped_cycles(selection: Selection, rows: Ints) -> int:
    """Return the cycles of a choice, one addend after the other."""
    states = _looped_states(selection, rows)
    total = sum(int(selection.rows.cycles[row]) for row in rows)
    for table in selection.costs:
        total += int(table.values[tuple(states[operator] for operator in table.scope)])
    return total


def looped_bytes(selection: Selection, rows: Ints) -> list[int]:
    """Return the bytes in use at every moment, one addend after the other."""
    states = _looped_states(selection, rows)
    used: list[int] = []
    for operator, row in enumerate(rows):
        for phase in range(N_PHASES):
            held = sum(int(selection.rows.idle_bytes[other]) for other in rows)
            held += int(selection.rows.need_bytes[row, phase])
            for saving in selection.savings:
                if saving.is_certain and (saving.operator, saving.phase) == (operator, phase):
                    held -= int(saving.table.values[tuple(states[o] for o in saving.table.scope)])
            for life in selection.lifetimes:
                if life.first <= operator * N_PHASES + phase <= life.last:
                    held += int(life.n_bytes[states[life.decided_by]])
            used.append(held)
    return used


def _looped_states(selection: Selection, rows: Ints) -> list[int]:
    before = [sum(selection.n_states[:operator]) for operator in range(len(rows))]
    return [int(selection.rows.state[row]) - first for row, first in zip(rows, before, strict=True)]


@dataclass(frozen=True, slots=True)
class Choices:
    """Every choice of a selection, a row of each array per choice: rows, cycles, idle bytes, most bytes in use."""

    rows: Ints
    cycles: Ints
    idle_bytes: Ints
    peak_bytes: Ints
    room_bytes: int

    @property
    def is_fitting(self) -> Bools:
        """Return which choices fit."""
        return self.peak_bytes <= self.room_bytes

    def least(self, which: Bools | None = None) -> int | None:
        """Return the least cycles of choices that fit (and that `which` picks), None without any."""
        picked = self.cycles[self.is_fitting if which is None else self.is_fitting & which]
        return int(picked.min()) if len(picked) else None


def every_choice(selection: Selection) -> Choices:
    """Return every choice of a small selection with its numbers."""
    spans = [np.array(selection.rows_of(operator), np.int64) for operator in range(selection.n_operators)]
    rows = np.stack(np.meshgrid(*spans, indexing="ij"), axis=-1).reshape(-1, len(spans))
    before = np.concatenate([[0], np.cumsum(selection.n_states)])[:-1]
    states = selection.rows.state[rows] - before
    columns = [states[:, operator] for operator in range(len(spans))]
    cycles = selection.rows.cycles[rows].sum(axis=1)
    for table in selection.costs:
        cycles += table.values[tuple(columns[operator] for operator in table.scope)]
    idle = selection.rows.idle_bytes[rows].sum(axis=1)
    used = selection.rows.need_bytes[rows].reshape(len(rows), -1) + idle[:, None]
    for saving in selection.savings:
        if saving.is_certain:
            n_bytes = saving.table.values[tuple(columns[operator] for operator in saving.table.scope)]
            used[:, saving.operator * N_PHASES + saving.phase] -= n_bytes
    for life in selection.lifetimes:
        used[:, life.first : life.last + 1] += life.n_bytes[columns[life.decided_by]][:, None]
    return Choices(rows, cycles, idle, used.max(axis=1), selection.room_bytes)
