"""Good choices: from two that straddle the memory to one that fits, then one operator at a time to a local optimum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.plan.joint.selection import Lifetime, Saving, Selection, Table

MOST_PASSES = 12
MOST_PAIRS = 200


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
        self.neighbours = [
            {other for table in self.costs[operator] for other in table.scope}
            for operator in range(selection.n_operators)
        ]
        # Equal layers share what is looked at.
        span_by_id = {id(life.n_bytes): 0 for life in selection.lifetimes}
        most_by_id = {id(saving.table.values): 0 for saving in selection.savings}
        for life in selection.lifetimes:
            span_by_id[id(life.n_bytes)] = span_by_id[id(life.n_bytes)] or int(np.ptp(life.n_bytes))
        for saving in selection.savings:
            values = saving.table.values
            most_by_id[id(values)] = most_by_id[id(values)] or int(values.max())
        self.freed_bytes = [
            sum(span_by_id[id(life.n_bytes)] for life in self.lifetimes[operator])
            + sum(most_by_id[id(saving.table.values)] for saving in self.savings[operator])
            for operator in range(selection.n_operators)
        ]
        """Bytes that others can gain at most, at any moment, from another state of an operator."""

    def improved(self, rows: Ints) -> Ints:
        """Return a choice that fits and that no change of a single operator makes faster; `rows` must fit."""
        selection = self.selection
        chosen = rows.copy()
        states = selection.states_of(chosen)
        used = selection.used_bytes(chosen)
        cycles = selection.row_cycles(states)
        first = selection.first_row[selection.first_state[:-1]]
        is_fastest = (np.minimum.reduceat(cycles, first) == cycles[chosen]).tolist()
        is_known = [True] * selection.n_operators
        for _ in range(MOST_PASSES):
            is_better = False
            for operator in range(selection.n_operators):
                if is_fastest[operator]:
                    continue
                span = selection.rows_of(operator)
                own = cycles[span.start : span.stop]
                if not is_known[operator]:
                    own[:] = self._row_cycles(operator, states)
                    is_known[operator] = True
                faster = _faster(own, int(chosen[operator]) - span.start)
                is_fastest[operator] = not len(faster)
                found = self._best_move(operator, faster, chosen, states, used)
                if found is not None:
                    row, used = found
                    chosen[operator] = row
                    states[operator] = selection.rows.state[row] - selection.first_state[operator]
                    is_better = True
                    for other in self.neighbours[operator]:
                        is_fastest[other] = is_known[other] = False
            if not is_better:
                break
        return chosen

    def near(self, rows: Ints, most: int) -> Iterator[Ints]:
        """Yield the choices that fit in which one operator is in another state, slower by so many cycles at most.

        Of every state the fastest row.
        """
        selection = self.selection
        states, used = selection.states_of(rows), selection.used_bytes(rows)
        for operator in range(selection.n_operators):
            span, change, _ = self._moves(operator, rows, states)
            seen = {int(selection.rows.state[rows[operator]])}
            for index in np.argsort(change, kind="stable").tolist():
                row = span.start + index
                state = int(selection.rows.state[row])
                if change[index] > most:
                    break
                after = used if state in seen else self.used_after(operator, row, rows, states, used)
                if state not in seen and (after <= selection.room_bytes).all():
                    seen.add(state)
                    moved = rows.copy()
                    moved[operator] = row
                    yield moved

    def exchanged(self, rows: Ints) -> Ints | None:
        """Return a faster choice in which one operator takes room that another gives up, None if none is found.

        `rows` must fit. Moves are priced one by one and added up, so a pair is tried only if the sum is a gain, and
        kept only if it really is one.
        """
        selection = self.selection
        states, used = selection.states_of(rows), selection.used_bytes(rows)
        slack = int(selection.room_bytes - used.max())
        owner = selection.operator_by_row
        cycles = selection.row_cycles(states)
        change = cycles - cycles[rows][owner]
        extra = selection.rows.idle_bytes - selection.rows.idle_bytes[rows][owner]
        ups = np.nonzero((change < 0) & (extra > slack))[0]
        downs = np.nonzero((change > 0) & (extra < 0))[0]
        # Of moves that gain (or lose) the same, equal operators have many: the first of each price stands for all.
        ups, downs = (_first_of_each(numbers, change, extra) for numbers in (ups, downs))
        if not len(ups) or not len(downs):
            return None
        gain = change[ups][:, None] + change[downs][None, :]
        is_open = (gain < 0) & (extra[ups][:, None] + extra[downs][None, :] <= slack)
        now = selection.cycles(rows)
        for pair in _least(gain.ravel(), np.flatnonzero(is_open), MOST_PAIRS):
            up, down = int(ups[pair // len(downs)]), int(downs[pair % len(downs)])
            if owner[up] == owner[down]:
                continue
            tried = rows.copy()
            tried[owner[up]], tried[owner[down]] = up, down
            if selection.cycles(tried) < now and selection.fits(tried):
                return tried
        return None

    def doubted(self, rows: Ints, is_open: Bools) -> int | None:
        """Return an operator whose state is to blame if a choice does not fit though its bound does, None if it fits.

        Of those with other open rows: the one whose value takes most, at the fullest moment, beyond the least it could;
        else one that decides what is in place there.
        """
        selection = self.selection
        states, used = selection.states_of(rows), selection.used_bytes(rows)
        moment = int(np.argmax(used))
        if used[moment] <= selection.room_bytes:
            return None
        worst: tuple[int, int] | None = None
        for life in selection.lifetimes:
            if life.first <= moment <= life.last and self._has_choice(life.decided_by, is_open):
                more = int(life.n_bytes[states[life.decided_by]] - life.n_bytes.min())
                if more > 0 and (worst is None or more > worst[0]):
                    worst = (more, life.decided_by)
        if worst is not None:
            return worst[1]
        operator = moment // selection.n_phases
        near = [o for saving in self.savings[operator] for o in saving.table.scope]
        return next((o for o in (*near, operator) if self._has_choice(o, is_open)), None)

    def _has_choice(self, operator: int, is_open: Bools) -> bool:
        """Return whether rows of more than one state of an operator are open."""
        span = self.selection.rows_of(operator)
        states = self.selection.rows.state[span.start : span.stop][is_open[span.start : span.stop]]
        return len(states) > 0 and int(states[0]) != int(states[-1])

    def _moves(self, operator: int, chosen: Ints, states: Ints) -> tuple[range, Ints, Ints]:
        """Return the rows of an operator, and by how many cycles and idle bytes each differs from the one it has."""
        rows, span = self.selection.rows, self.selection.rows_of(operator)
        cycles = self._row_cycles(operator, states)
        current = int(chosen[operator])
        idle = rows.idle_bytes[span.start : span.stop] - rows.idle_bytes[current]
        return span, cycles - cycles[current - span.start], idle

    def _row_cycles(self, operator: int, states: Ints) -> Ints:
        """Return the cycles of every row of an operator, with what moves to and from the others as they are."""
        selection, rows = self.selection, self.selection.rows
        span, first = selection.rows_of(operator), int(selection.first_state[operator])
        moved = np.zeros(selection.n_states[operator], np.int64)
        for table in self.costs[operator]:
            where = tuple(slice(None) if o == operator else int(states[o]) for o in table.scope)
            moved += table.values[where]
        return rows.cycles[span.start : span.stop] + moved[rows.state[span.start : span.stop] - first]

    def _best_move(
        self, operator: int, faster: Ints, chosen: Ints, states: Ints, used: Ints
    ) -> tuple[int, Ints] | None:
        """Return the first of the rows that fits and the bytes then in use, None where none does."""
        if not len(faster):
            return None
        selection, rows = self.selection, self.selection.rows
        span, current = selection.rows_of(operator), int(chosen[operator])
        own = slice(operator * selection.n_phases, (operator + 1) * selection.n_phases)
        most = max(int(used[: own.start].max(initial=0)), int(used[own.stop :].max(initial=0)))
        slack = selection.room_bytes - most
        extra = rows.idle_bytes[span.start : span.stop] - int(rows.idle_bytes[current])
        for index in faster.tolist():
            if extra[index] > slack + self.freed_bytes[operator]:
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


def neighbours(selection: Selection, rows: Ints, most: int) -> list[Ints]:
    """Return choices with one operator in another state, slower by `most` cycles at most; `rows` must fit."""
    return list(Neighbourhood(selection).near(rows, most))


def _faster(cycles: Ints, current: int) -> Ints:
    """Return the numbers of what takes less than the current one, the fastest first."""
    faster = np.nonzero(cycles < cycles[current])[0]
    return faster[np.argsort(cycles[faster], kind="stable")]


def _first_of_each(numbers: Ints, change: Ints, extra: Ints) -> Ints:
    """Return of moves with equal cycles and bytes the first."""
    if not len(numbers):
        return numbers
    pairs = np.stack([change[numbers], extra[numbers]])
    order = np.lexsort(pairs)
    is_first = np.append(True, (np.diff(pairs[:, order]) != 0).any(axis=0))
    return numbers[np.sort(order[is_first])]


def _least(values: Ints, numbers: Ints, most: int) -> list[int]:
    """Return so many of the numbers of values, at most, the least values first; of equal ones in their order."""
    if len(numbers) > most:
        numbers = numbers[values[numbers] <= np.partition(values[numbers], most - 1)[most - 1]]
    return numbers[np.argsort(values[numbers], kind="stable")][:most].tolist()
