"""Good choices: from two that straddle the memory to one that fits, then one operator at a time to a local optimum."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from t10.plan.joint.selection import Ints, Lifetime, Saving, Selection, Table

MOST_PASSES = 12


class Neighbourhood:
    """The tables of a selection by operator, and moves of single operators."""

    def __init__(self, selection: Selection) -> None:
        """Index the tables."""
        self.selection = selection
        self.costs: dict[int, list[Table]] = defaultdict(list)
        self.savings: dict[int, list[Saving]] = defaultdict(list)
        self.lifetimes: dict[int, list[Lifetime]] = defaultdict(list)
        for table in selection.costs:
            for operator in table.scope:
                self.costs[operator].append(table)
        for saving in selection.savings:
            if not saving.is_certain:
                continue
            for operator in saving.table.scope:
                self.savings[operator].append(saving)
        for life in selection.lifetimes:
            self.lifetimes[life.decided_by].append(life)

    def improved(self, rows: Ints) -> Ints:
        """Return a choice that fits and that no change of a single operator makes faster; `rows` must fit."""
        selection = self.selection
        chosen = rows.copy()
        states = selection.states_of(chosen)
        used = selection.used_bytes(chosen)
        for _ in range(MOST_PASSES):
            is_better = False
            for operator in range(selection.n_operators):
                found = self._best_move(operator, chosen, states, used)
                if found is not None:
                    row, used = found
                    chosen[operator] = row
                    states[operator] = selection.rows.state[row] - selection.first_state[operator]
                    is_better = True
            if not is_better:
                break
        return chosen

    def _best_move(self, operator: int, chosen: Ints, states: Ints, used: Ints) -> tuple[int, Ints] | None:
        """Return the fastest row of an operator that fits and the bytes then in use, None if it has it already."""
        selection, rows = self.selection, self.selection.rows
        span = selection.rows_of(operator)
        first = int(selection.first_state[operator])
        moved = np.zeros(selection.n_states[operator], np.int64)
        for table in self.costs[operator]:
            where = tuple(slice(None) if o == operator else int(states[o]) for o in table.scope)
            moved += table.values[where]
        cycles = rows.cycles[span.start : span.stop] + moved[rows.state[span.start : span.stop] - first]
        current = int(chosen[operator])
        better = np.nonzero(cycles < cycles[current - span.start])[0]
        if not len(better):
            return None
        own = slice(operator * selection.n_phases, (operator + 1) * selection.n_phases)
        others = np.delete(used, own)
        slack = int((selection.room_bytes - others).min(initial=selection.room_bytes))
        extra = rows.idle_bytes[span.start : span.stop] - int(rows.idle_bytes[current])
        for index in better[np.argsort(cycles[better], kind="stable")].tolist():
            # What it takes of the others' room is decided by their idle bytes but for values it makes smaller.
            if extra[index] > slack and not self.lifetimes[operator] and not self.savings[operator]:
                continue
            after = self.used_after(operator, span.start + index, chosen, states, used)
            if (after <= selection.room_bytes).all():
                return span.start + index, after
        return None

    def used_after(self, operator: int, row: int, chosen: Ints, states: Ints, used: Ints) -> Ints:
        """Return the bytes in use at every moment if one operator goes to another row."""
        selection, rows = self.selection, self.selection.rows
        current = int(chosen[operator])
        after = used + int(rows.idle_bytes[row] - rows.idle_bytes[current])
        n_phases = selection.n_phases
        own = slice(operator * n_phases, (operator + 1) * n_phases)
        after[own] += rows.need_bytes[row] - rows.need_bytes[current]
        old, new = int(states[operator]), int(rows.state[row] - selection.first_state[operator])
        if old == new:
            return after
        for saving in self.savings[operator]:
            scope, values = saving.table.scope, saving.table.values
            before = tuple(int(states[o]) for o in scope)
            now = tuple(new if o == operator else int(states[o]) for o in scope)
            after[saving.operator * n_phases + saving.phase] += int(values[before] - values[now])
        for life in self.lifetimes[operator]:
            after[life.first : life.last + 1] += int(life.n_bytes[new] - life.n_bytes[old])
        return after

    def mixed(self, small: Ints, fast: Ints) -> Ints | None:
        """Return `small` with as many of the first operators as fit as in `fast`, where one of them fits at all.

        Of all such choices the fastest; the two are best at one price, so their mixtures are nearly so.
        """
        selection = self.selection
        best: Ints | None = None
        best_cycles = 0
        chosen = small.copy()
        states, used = selection.states_of(chosen), selection.used_bytes(chosen)
        cycles = selection.cycles(chosen)
        for operator in range(-1, selection.n_operators):
            if operator >= 0:
                row = int(fast[operator])
                if row == chosen[operator]:
                    continue
                used = self.used_after(operator, row, chosen, states, used)
                cycles += self._change(operator, row, chosen, states)
                chosen[operator] = row
                states[operator] = selection.rows.state[row] - selection.first_state[operator]
            if (best is None or cycles < best_cycles) and (used <= selection.room_bytes).all():
                best, best_cycles = chosen.copy(), cycles
        return best

    def _change(self, operator: int, row: int, chosen: Ints, states: Ints) -> int:
        """Return by how many cycles a choice changes if one operator goes to another row."""
        rows = self.selection.rows
        new = int(rows.state[row] - self.selection.first_state[operator])
        change = int(rows.cycles[row] - rows.cycles[int(chosen[operator])])
        for table in self.costs[operator]:
            before = tuple(int(states[o]) for o in table.scope)
            now = tuple(new if o == operator else int(states[o]) for o in table.scope)
            change += int(table.values[now] - table.values[before])
        return change
