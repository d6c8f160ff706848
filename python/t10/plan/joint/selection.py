"""The choice for a whole model as plain numbers: states and idle levels of every operator, what pairs of them cost.

Every operator is in one *state* (an active plan with its layouts) and, of that state, on one *row* (an idle level of
its weights). A choice costs the cycles of its rows plus those of its tables: what moves between operators depends on
the states of both. An operator runs in phases (operands arrive, the loop nest, the finish); in every phase of every
operator i a core must hold

    idle bytes of all rows  +  bytes row i needs  -  operands that lie in place  +  results of others that are alive

Nothing here knows operators or chips, so that bounds and searches can be tested against brute force.
Source: T10 §4.3.2, compute-shift model R9-R13.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.errors import T10Error


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of all operators end to end, by operator and state: idle levels with their price.

    `state` counts through all operators (see `Selection.first_state`); `need_bytes`, one column per phase, are taken
    by the operator itself with no operand in place.
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
class _ByState:
    """Which entries of tables a choice of the other operators leaves open, in the order of the states they belong to.

    `table`, `owner` and `stride` say of every dim of a table whose it is and how far its entries lie apart; `dim` and
    `offset` say of every entry of which dim it is and how far behind its first. `first` are the first entries of every
    one of the `states`.
    """

    table: Ints
    owner: Ints
    stride: Ints
    dim: Ints
    offset: Ints
    states: Ints
    first: Ints

    @classmethod
    def of(cls, operators: Ints, strides: Ints, first_state: Ints) -> _ByState:
        """Return the entries of tables over some operators with some strides."""
        table, place = np.nonzero(strides)
        owner, stride = operators[table, place], strides[table, place]
        n_states: Ints = np.diff(first_state)[owner]
        dim = np.repeat(np.arange(len(table)), n_states)
        n_before: Ints = np.cumsum(n_states) - n_states
        number = np.arange(len(dim), dtype=np.int64) - n_before[dim]
        state = first_state[owner][dim] + number
        order = np.argsort(state, kind="stable")
        states, first = np.unique(state[order], return_index=True)
        return cls(table, owner, stride, dim[order], (stride[dim] * number)[order], states, first)


@dataclass(frozen=True, slots=True)
class Flat:
    """Many tables end to end, so that all their entries for one choice are looked up at once."""

    values: Ints
    first: Ints
    operators: Ints
    strides: Ints
    _by_state: list[_ByState] = field(default_factory=list[_ByState])
    """Laid out where it is asked for."""

    @classmethod
    def of(cls, tables: Sequence[Table]) -> Flat:
        """Return tables laid end to end; those that share their values lie in one place."""
        depth = max((len(table.scope) for table in tables), default=1)
        operators = np.zeros((len(tables), depth), np.int64)
        strides = np.zeros((len(tables), depth), np.int64)
        for number, table in enumerate(tables):
            operators[number, : len(table.scope)] = table.scope
            strides[number, : len(table.scope)] = [
                prod(table.values.shape[i + 1 :]) for i in range(len(table.scope))
            ]
        none = np.zeros(0, np.int64)
        return cls(none, none, operators, strides).holding(tables)

    def holding(self, tables: Sequence[Table]) -> Flat:
        """Return tables of the same scopes and shapes laid end to end."""
        different = {id(table.values): table.values for table in tables}
        ends = np.cumsum([0, *(values.size for values in different.values())]).tolist()
        first = dict(zip(different, ends, strict=False))
        return replace(
            self,
            values=np.concatenate(
                [np.zeros(0, np.int64), *(values.ravel() for values in different.values())]
            ),
            first=np.array([first[id(table.values)] for table in tables], np.int64),
        )

    def at(self, states: Ints) -> Ints:
        """Return the entry of every table, given the state of every operator."""
        return self.values[self._places(states)]

    def _places(self, states: Ints) -> Ints:
        return self.first + (states[self.operators] * self.strides).sum(axis=1)

    def by_state(self, states: Ints, first_state: Ints) -> Ints:
        """Return, for every state of every operator, the sum of all entries with it and the others' states."""
        if not self._by_state:
            self._by_state.append(_ByState.of(self.operators, self.strides, first_state))
        entries = self._by_state[0]
        result = np.zeros(int(first_state[-1]), np.int64)
        if len(entries.states):
            start = self._places(states)[entries.table] - states[entries.owner] * entries.stride
            values = self.values[start[entries.dim] + entries.offset]
            result[entries.states] = np.add.reduceat(values, entries.first)
        return result


@dataclass(frozen=True, slots=True)
class Saving:
    """Bytes that `operator` does not need in a phase because an operand lies in place, by states of the scope.

    What is not `is_certain` counts for bounds alone: it may be saved once only, whatever else saves it too.
    """

    operator: int
    phase: int
    table: Table
    is_certain: bool = True


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A value alive from moment `first` to `last`; `n_bytes` by the state of operator `decided_by`."""

    decided_by: int
    first: int
    last: int
    n_bytes: Ints


@dataclass(frozen=True, slots=True)
class Selection:
    """One problem; `n_states` per operator, `room_bytes` of a core for all of it.

    Moments count the phases of all operators in the order of execution.
    """

    n_states: tuple[int, ...]
    rows: Rows
    costs: tuple[Table, ...]
    savings: tuple[Saving, ...]
    lifetimes: tuple[Lifetime, ...]
    room_bytes: int
    first_state: Ints = field(init=False)
    first_row: Ints = field(init=False)
    _costs: Flat = field(init=False)
    _savings: Flat = field(init=False)
    _lives: Flat = field(init=False)
    n_phases: int = field(init=False)
    operator_by_row: Ints = field(init=False)
    _saved_at: Ints = field(init=False)
    _born_at: Ints = field(init=False)
    _dead_at: Ints = field(init=False)

    def __post_init__(self) -> None:
        """Index rows and tables; refuse states without rows."""
        first_state = np.concatenate([[0], np.cumsum(self.n_states)])
        n_all = int(first_state[-1])
        steps = np.diff(self.rows.state, prepend=-1, append=n_all)
        if steps[0] != 1 or steps[-1] != 1 or ((steps != 0) & (steps != 1)).any():
            raise T10Error(f"rows must cover {n_all} states in order")
        n_phases = self.rows.need_bytes.shape[1]
        first_row = np.searchsorted(self.rows.state, np.arange(n_all + 1))
        n_rows = np.diff(first_row[first_state])
        certain = [saving for saving in self.savings if saving.is_certain]
        lives = [Table((life.decided_by,), life.n_bytes) for life in self.lifetimes]
        for name, value in (
            ("first_state", first_state),
            ("first_row", first_row),
            ("_costs", Flat.of(self.costs)),
            ("_savings", Flat.of([saving.table for saving in certain])),
            ("_lives", Flat.of(lives)),
            ("n_phases", n_phases),
            ("operator_by_row", np.repeat(np.arange(len(self.n_states)), n_rows)),
            ("_saved_at", np.array([s.operator * n_phases + s.phase for s in certain], np.int64)),
            ("_born_at", np.array([life.first for life in self.lifetimes], np.int64)),
            ("_dead_at", np.array([life.last + 1 for life in self.lifetimes], np.int64)),
        ):
            object.__setattr__(self, name, value)

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
        moved = self._costs.at(self.states_of(rows)).sum()
        return int(self.rows.cycles[np.asarray(rows, np.int64)].sum() + moved)

    def row_cycles(self, states: Ints) -> Ints:
        """Return the cycles of every row, with what moves to and from the other operators in their states."""
        return self.rows.cycles + self._costs.by_state(states, self.first_state)[self.rows.state]

    def costing(self, cycles: Ints, costs: tuple[Table, ...], room_bytes: int) -> Selection:
        """Return the problem with other cycles of its rows, other costs of the same scopes, and another room."""
        result = copy(self)
        for name, value in (
            ("rows", replace(self.rows, cycles=cycles)),
            ("costs", costs),
            ("room_bytes", room_bytes),
            ("_costs", self._costs.holding(costs)),
        ):
            object.__setattr__(result, name, value)
        return result

    def restricted(self, is_open: Bools) -> Selection:
        """Return the problem with these rows only; states without any are left out."""
        is_state = np.zeros(int(self.first_state[-1]), np.bool_)
        is_state[self.rows.state[is_open]] = True
        left = [is_state[low:high] for low, high in pairwise(self.first_state.tolist())]

        def table(whole: Table) -> Table:
            return Table(whole.scope, whole.values[np.ix_(*(left[operator] for operator in whole.scope))])

        return Selection(
            n_states=tuple(int(np.count_nonzero(each)) for each in left),
            rows=Rows(
                state=(np.cumsum(is_state) - 1)[self.rows.state[is_open]],
                cycles=self.rows.cycles[is_open],
                idle_bytes=self.rows.idle_bytes[is_open],
                need_bytes=self.rows.need_bytes[is_open],
            ),
            costs=tuple(table(each) for each in self.costs),
            savings=tuple(replace(each, table=table(each.table)) for each in self.savings),
            lifetimes=tuple(
                replace(life, n_bytes=life.n_bytes[left[life.decided_by]]) for life in self.lifetimes
            ),
            room_bytes=self.room_bytes,
        )

    def idle_bytes(self, rows: Sequence[int] | Ints) -> int:
        """Return the bytes of a core that weights of all operators take at rest."""
        return int(self.rows.idle_bytes[np.asarray(rows, np.int64)].sum())

    def used_bytes(self, rows: Sequence[int] | Ints) -> Ints:
        """Return the bytes of a core in use at every moment."""
        chosen, states = np.asarray(rows, np.int64), self.states_of(rows)
        used = self.rows.need_bytes[chosen].ravel() + self.idle_bytes(rows)
        np.subtract.at(used, self._saved_at, self._savings.at(states))
        changes = np.zeros(len(used) + 1, np.int64)
        n_bytes = self._lives.at(states)
        np.add.at(changes, self._born_at, n_bytes)
        np.subtract.at(changes, self._dead_at, n_bytes)
        return used + np.cumsum(changes[:-1])

    def fits(self, rows: Sequence[int] | Ints) -> bool:
        """Return whether there is room at every moment."""
        return bool((self.used_bytes(rows) <= self.room_bytes).all())
