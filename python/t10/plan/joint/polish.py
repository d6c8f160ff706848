"""What bounds leave open, solved as an integer program by CP-SAT: all of a small model, or a part of a large one.

Rows are booleans, one per operator. What a table of two operators costs is one integer per table, bounded below by the
row of the table that the first operator's state picks. Deterministic: one worker, a fixed seed and a limit in the
solver's own units of work, not in seconds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

from t10.core.arrays import Ints
from t10.core.interruptible import interruptible
from t10.plan.joint.selection import Selection, Table

SEED = 1


@dataclass(frozen=True, slots=True)
class Polished:
    """The rows found, None if there are none, and a lower bound of all choices with the other operators as given."""

    rows: Ints | None
    bound_cycles: int


class _Program:
    """The integer program of a selection in which the operators outside `free` keep the rows they have."""

    def __init__(
        self, selection: Selection, free: Collection[int], start: Ints | None, *, is_relaxed: bool
    ) -> None:
        self.selection, self.is_relaxed = selection, is_relaxed
        self.model = cp_model.CpModel()
        self.rows: list[list[int]] = []
        self.picked: list[list[Any]] = []
        self.in_state: list[list[Any]] = []
        for operator in range(selection.n_operators):
            own = _useful(selection, operator)
            if start is not None and operator not in free:
                own = [int(start[operator])]
            elif start is not None and int(start[operator]) not in own:
                own = sorted([*own, int(start[operator])])
            self._add_operator(operator, own)
        self._add_memory()
        self.model.minimize(self._cost())
        if start is not None:
            for own, picked, row in zip(self.rows, self.picked, start.tolist(), strict=True):
                for candidate, variable in zip(own, picked, strict=True):
                    self.model.add_hint(variable, candidate == row)

    def _add_operator(self, operator: int, own: list[int]) -> None:
        """One row is picked; a state is that of the row picked."""
        first = int(self.selection.first_state[operator])
        picked = [self.model.new_bool_var("") for _ in own]
        self.model.add_exactly_one(picked)
        by_state: dict[int, list[Any]] = {}
        for row, variable in zip(own, picked, strict=True):
            by_state.setdefault(int(self.selection.rows.state[row]) - first, []).append(variable)
        states: list[Any] = [0] * self.selection.n_states[operator]
        for state, variables in by_state.items():
            if len(variables) == 1:
                states[state] = variables[0]
                continue
            states[state] = self.model.new_bool_var("")
            self.model.add(sum(variables) == states[state])
        self.rows.append(own)
        self.picked.append(picked)
        self.in_state.append(states)

    def _looked_up(self, table: Table, *, is_cost: bool) -> Any:
        """Return an integer that is at least the entry of a table that the states pick, at most for what is saved."""
        values = table.values
        low, high = int(values.min()), int(values.max())
        if low == high:
            return low
        result = self.model.new_int_var(low, high, "")
        *firsts, last = table.scope
        for where in product(*(range(n) for n in values.shape[:-1])):
            deciding = [self.in_state[o][s] for o, s in zip(firsts, where, strict=True)]
            if any(isinstance(variable, int) for variable in deciding):
                continue
            entry = sum(
                int(value) * variable
                for value, variable in zip(values[where], self.in_state[last], strict=True)
            )
            bounded: Any = self.model.add(result >= entry) if is_cost else self.model.add(result <= entry)
            if deciding:
                bounded.only_enforce_if(deciding)
        return result

    def _chosen(self, operator: int, column: Ints) -> Any:
        """Return the entry of a column of the rows that an operator picks."""
        return sum(
            int(column[r]) * v for r, v in zip(self.rows[operator], self.picked[operator], strict=True)
        )

    def _cost(self) -> Any:
        rows = self.selection.rows
        total = sum(self._chosen(o, rows.cycles) for o in range(self.selection.n_operators))
        return total + sum(self._looked_up(table, is_cost=True) for table in self.selection.costs)

    def _add_memory(self) -> None:
        """There is room at every moment."""
        selection, rows, n_phases = self.selection, self.selection.rows, self.selection.n_phases
        idle = self.model.new_int_var(0, selection.room_bytes, "")
        self.model.add(idle == sum(self._chosen(o, rows.idle_bytes) for o in range(selection.n_operators)))
        used: list[Any] = [
            idle + self._chosen(o, rows.need_bytes[:, phase])
            for o in range(selection.n_operators)
            for phase in range(n_phases)
        ]
        for saving in selection.savings:
            if saving.is_certain or self.is_relaxed:
                used[saving.operator * n_phases + saving.phase] -= self._looked_up(
                    saving.table, is_cost=False
                )
        for life in selection.lifetimes:
            if int(life.n_bytes.max()) == 0:
                continue
            n_bytes = self.model.new_int_var(0, int(life.n_bytes.max()), "")
            states = self.in_state[life.decided_by]
            self.model.add(n_bytes == sum(int(b) * s for b, s in zip(life.n_bytes, states, strict=True)))
            for moment in range(life.first, life.last + 1):
                used[moment] += n_bytes
        for expression in used:
            self.model.add(expression <= selection.room_bytes)

    def solve(self, work: float, gap: float) -> Polished:
        """Return the best rows that so much deterministic work finds."""
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = SEED
        solver.parameters.max_deterministic_time = work
        solver.parameters.relative_gap_limit = gap
        # The solver would leave SIGINT at the default of the system, and Python would never see it again.
        solver.parameters.catch_sigint_signal = False
        status = interruptible(lambda: solver.solve(self.model), solver.stop_search)
        if status == cp_model.INFEASIBLE:
            return Polished(None, np.iinfo(np.int64).max)
        bound = int(np.ceil(solver.best_objective_bound - 1e-6))
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return Polished(None, bound)
        chosen = [
            next(row for row, variable in zip(own, picked, strict=True) if solver.boolean_value(variable))
            for own, picked in zip(self.rows, self.picked, strict=True)
        ]
        return Polished(np.array(chosen, np.int64), bound)


def polish(
    selection: Selection, start: Ints | None, free: Collection[int], work: float, gap: float
) -> Polished:
    """Return the best choice in which only operators in `free` differ from `start`; all are free without one.

    `work` limits the effort in CP-SAT's deterministic units, about seconds.
    """
    found = _Program(selection, free, start, is_relaxed=False).solve(work, gap)
    if all(saving.is_certain for saving in selection.savings):
        return found
    # Savings that are not certain count for bounds alone, so the bound is that of a program of its own.
    return replace(
        found, bound_cycles=_Program(selection, free, start, is_relaxed=True).solve(work, gap).bound_cycles
    )


def _useful(selection: Selection, operator: int) -> list[int]:
    """Return the rows of an operator that no other row of the same state beats in everything."""
    rows = selection.rows
    kept: list[int] = []
    for state in range(int(selection.first_state[operator]), int(selection.first_state[operator + 1])):
        low, high = int(selection.first_row[state]), int(selection.first_row[state + 1])
        price = np.column_stack([rows.cycles[low:high], rows.idle_bytes[low:high], rows.need_bytes[low:high]])
        is_beaten = np.zeros(len(price), np.bool_)
        for number in range(len(price)):
            no_worse = (price <= price[number]).all(axis=1)
            earlier = (price == price[number]).all(axis=1) & (np.arange(len(price)) >= number)
            is_beaten[number] = bool((no_worse & ~earlier).any())
        kept += [low + int(number) for number in np.nonzero(~is_beaten)[0]]
    return kept
