"""The choice for a whole model as plain numbers: states and idle levels of every operator, what pairs of them cost.

Every operator is in one *state* (an active plan with its layouts) and, of that state, on one *row* (an idle level of
its weights). A choice costs the cycles of its rows plus those of its tables: what moves between operators depends on
the states of both. A core must hold, while operator i runs,

    idle bytes of all rows  +  bytes row i needs  -  operands that lie in place  +  results of others that are alive

Nothing here knows operators or chips, so that bounds and searches can be tested against brute force.
Source: T10 §4.3.2, compute-shift model R9-R13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from t10.errors import T10Error

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of all operators end to end, by operator and state: idle levels with their price.

    `state` counts through all operators (see `Selection.first_state`); `need_bytes` are taken while the operator runs,
    with no operand in place.
    """

    state: Ints
    cycles: Ints
    idle_bytes: Ints
    need_bytes: Ints


@dataclass(frozen=True, slots=True)
class Table:
    """What depends on the states of several operators (`scope`, ascending): an array with one dim for each."""

    scope: tuple[int, ...]
    values: Ints


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes that `operator` does not need while it runs because an operand lies in place, by states of the scope."""

    operator: int
    table: Table


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value alive while operators `first` to `last` run; `n_bytes` by the state of operator `decided_by`."""

    decided_by: int
    first: int
    last: int
    n_bytes: Ints


@dataclass(frozen=True, slots=True)
class Selection:
    """One problem; `n_states` per operator, `room_bytes` of a core for all of it."""

    n_states: tuple[int, ...]
    rows: Rows
    costs: tuple[Table, ...]
    savings: tuple[Saving, ...]
    lifetimes: tuple[Lifetime, ...]
    room_bytes: int
    first_state: Ints = field(init=False)
    first_row: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Index the rows; refuse states without any."""
        object.__setattr__(self, "first_state", np.concatenate([[0], np.cumsum(self.n_states)]))
        n_all = int(self.first_state[-1])
        if (np.diff(self.rows.state) < 0).any() or set(self.rows.state.tolist()) != set(range(n_all)):
            raise T10Error(f"rows must cover {n_all} states in order")
        object.__setattr__(self, "first_row", np.searchsorted(self.rows.state, np.arange(n_all + 1)))

    @property
    def n_operators(self) -> int:
        """Return the number of operators."""
        return len(self.n_states)

    def states_of(self, rows: Sequence[int] | Ints) -> Ints:
        """Return the state of every operator, counted from 0 in each, given its row."""
        return self.rows.state[np.asarray(rows, np.int64)] - self.first_state[:-1]

    def rows_of(self, operator: int) -> range:
        """Return the rows of one operator."""
        low, high = self.first_state[operator], self.first_state[operator + 1]
        return range(int(self.first_row[low]), int(self.first_row[high]))

    def cycles(self, rows: Sequence[int] | Ints) -> int:
        """Return the cycles of a choice, one row per operator."""
        states = self.states_of(rows)
        moved = sum(int(table.values[tuple(states[list(table.scope)])]) for table in self.costs)
        return int(self.rows.cycles[np.asarray(rows, np.int64)].sum()) + moved

    def idle_bytes(self, rows: Sequence[int] | Ints) -> int:
        """Return the bytes of a core that weights of all operators take at rest."""
        return int(self.rows.idle_bytes[np.asarray(rows, np.int64)].sum())

    def used_bytes(self, rows: Sequence[int] | Ints) -> Ints:
        """Return the bytes of a core in use while each operator runs."""
        chosen, states = np.asarray(rows, np.int64), self.states_of(rows)
        used = self.rows.need_bytes[chosen] + self.idle_bytes(rows)
        for saving in self.savings:
            used[saving.operator] -= saving.table.values[tuple(states[list(saving.table.scope)])]
        for life in self.lifetimes:
            used[life.first : life.last + 1] += life.n_bytes[states[life.decided_by]]
        return used

    def fits(self, rows: Sequence[int] | Ints) -> bool:
        """Return whether every operator has the room it needs."""
        return bool((self.used_bytes(rows) <= self.room_bytes).all())
