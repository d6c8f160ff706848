"""Memory reconciliation (T10 §4.3.2, Algorithm 1): one idle level and one active plan per operator.

Start with every weight spread as thin as possible, and every operator on the fastest plan that fits in what is left.
Then raise idle memory where a byte saves most set-up time, as long as anything is saved, and keep the best state
seen. Idle copies are retained while an operator is active (the paper's memory rule).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Bools, Ints
from t10.core.expression import OperatorSpec
from t10.errors import InfeasiblePlanError
from t10.plan.memory.levels import Choice, LevelTable
from t10.plan.search.listed import room_hint

Ban = tuple[int, int, int]
"""(table, row, row it would be raised to) of a raise for which another operator has no room. Idle memory only grows,
so what has no room once never has, for any operator of the kind."""
Watch = Callable[[tuple[int, int]], object]
"""Called with what a state takes: idle bytes, those that rest all the time left out, and cycles."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One row per operator: its table of (plan, level), and bytes of other values alive while it runs.

    `base_bytes` are taken on every core all the time: shift buffer and weights without a single owner.
    """

    specs: Sequence[OperatorSpec]
    tables: Sequence[LevelTable]
    live_bytes: Ints
    base_bytes: int
    capacity_bytes: int
    chip: ChipSpec


@dataclass(slots=True)
class _State:
    """The rows chosen, the operators whose idle level is fixed, and the idle bytes of all."""

    rows: list[int]
    is_raised: list[bool]
    idle_bytes: int


def reconcile(
    problem: Problem, *, by_run_time: bool, watch: Watch | None = None
) -> tuple[tuple[Choice, ...], int]:
    """Return a choice per operator and the cycles of all of them; `watch` sees every state that is passed.

    `by_run_time` selects the literal reading of "fastest plan that fits": by execution without set-up, and only the
    idle levels of the current plan are considered. Raises `InfeasiblePlanError` where an operator does not fit.
    """
    state = _start(problem, by_run_time)
    best, best_cycles = list(state.rows), _total(problem, state.rows)
    if watch:
        watch((state.idle_bytes, best_cycles))
    banned: set[Ban] = set()
    while True:
        raise_to = _best_raise(problem, state, banned, by_run_time)
        if raise_to is None:
            break
        step, row = raise_to
        tried = _raised(problem, state, step, row, by_run_time)
        if tried is None:
            banned.add((id(problem.tables[step]), state.rows[step], row))
            continue
        state = tried
        cycles = _total(problem, state.rows)
        if watch:
            watch((state.idle_bytes, cycles))
        if cycles < best_cycles:
            best, best_cycles = list(state.rows), cycles
    return tuple(_choice(problem, step, row) for step, row in enumerate(best)), best_cycles


def _choice(problem: Problem, step: int, row: int) -> Choice:
    table = problem.tables[step]
    return Choice(int(table.plan[row]), int(table.level[row]))


def _total(problem: Problem, rows: Sequence[int]) -> int:
    return sum(int(table.cycles[row]) for table, row in zip(problem.tables, rows, strict=True))


def _room(problem: Problem, idle_bytes: int, step: int) -> int:
    """Return the bytes a core has for an operator while it runs."""
    return problem.capacity_bytes - problem.base_bytes - idle_bytes - int(problem.live_bytes[step])


def _fastest(table: LevelTable, rows: Bools, room: int, by_run_time: bool) -> int | None:
    """Return the fastest of the rows that fit in `room` bytes, None if none does."""
    fitting = np.nonzero(rows & (table.need_bytes <= room))[0]
    if not len(fitting):
        return None
    first, second = (table.run_cycles, table.cycles) if by_run_time else (table.cycles, table.run_cycles)
    order = np.lexsort((fitting, second[fitting], first[fitting]))
    return int(fitting[order[0]])


def _start(problem: Problem, by_run_time: bool) -> _State:
    """Return the thinnest state: linear idle layouts; nested ones where an operator fits in no other way."""
    idle = sum(int(table.idle_bytes[table.is_thin].min()) for table in problem.tables)
    rows: list[int] = []
    is_raised: list[bool] = []
    for step, table in enumerate(problem.tables):
        linear = int(table.idle_bytes[table.is_thin].min())
        row = _fastest(table, table.is_thin, _room(problem, idle, step), by_run_time)
        raised = row is None
        if row is None:
            extra = table.idle_bytes - linear
            shifted = replace(table, need_bytes=table.need_bytes + extra)
            row = _fastest(shifted, np.ones(len(extra), np.bool_), _room(problem, idle, step), by_run_time)
            if row is None:
                raise _does_not_fit(problem, step, idle)
            idle += int(extra[row])
        rows.append(row)
        is_raised.append(raised)
    state = _State(rows, is_raised, idle)
    refitted = _refitted(problem, state, by_run_time)
    if isinstance(refitted, int):
        raise _does_not_fit(problem, refitted, idle)
    return refitted


def _refitted(problem: Problem, state: _State, by_run_time: bool) -> _State | int:
    """Return the state with every free operator on the fastest plan that fits now, or the first step without one."""
    rows = list(state.rows)
    for step, table in enumerate(problem.tables):
        room = _room(problem, state.idle_bytes, step)
        if int(table.need_bytes[rows[step]]) <= room:
            continue
        if state.is_raised[step]:
            return step
        row = _fastest(table, table.is_thin, room, by_run_time)
        if row is None:
            return step
        rows[step] = row
    return _State(rows, state.is_raised, state.idle_bytes)


def _raised(problem: Problem, state: _State, step: int, row: int, by_run_time: bool) -> _State | None:
    """Return the state after one operator's idle level is raised, None where another then no longer fits."""
    table = problem.tables[step]
    idle = state.idle_bytes + int(table.idle_bytes[row]) - int(table.idle_bytes[state.rows[step]])
    rows, is_raised = list(state.rows), list(state.is_raised)
    rows[step], is_raised[step] = row, True
    refitted = _refitted(problem, _State(rows, is_raised, idle), by_run_time)
    return None if isinstance(refitted, int) else refitted


def _best_raise(
    problem: Problem, state: _State, banned: set[Ban], by_run_time: bool
) -> tuple[int, int] | None:
    """Return (step, row) with the highest saving of cycles per byte of idle memory, None if nothing is saved.

    Operators of one kind in the same state have the same candidates, so each kind is looked at once.
    """
    best: tuple[float, int, int] | None = None
    seen: set[tuple[int, int, int]] = set()
    for step, table in enumerate(problem.tables):
        key = (id(table), state.rows[step], int(problem.live_bytes[step]))
        if key in seen:
            continue
        seen.add(key)
        found = _row_ratio(problem, state, step, banned, by_run_time)
        if found is not None and (best is None or found[0] > best[0]):
            best = (found[0], step, found[1])
    return None if best is None else (best[1], best[2])


def _row_ratio(
    problem: Problem, state: _State, step: int, banned: set[Ban], by_run_time: bool
) -> tuple[float, int] | None:
    """Return (cycles saved per byte, row) of the best higher idle level of one operator."""
    table = problem.tables[step]
    current = state.rows[step]
    if not table.has_levels:
        return None
    extra = table.idle_bytes - table.idle_bytes[current]
    saved = table.cycles[current] - table.cycles
    room = _room(problem, state.idle_bytes, step)
    keep = (table.level > 0) & (saved > 0) & (table.need_bytes + extra <= room)
    if by_run_time:
        keep &= table.plan == table.plan[current]
    rows = [row for row in np.nonzero(keep)[0].tolist() if (id(table), current, row) not in banned]
    if not rows:
        return None
    ratio = saved[rows] / np.maximum(extra[rows], 1)
    number = int(np.argmax(ratio))
    return float(ratio[number]), rows[number]


def _does_not_fit(problem: Problem, step: int, idle_bytes: int) -> InfeasiblePlanError:
    """Return the error that names the operator that does not fit, with bytes needed and available."""
    spec, table = problem.specs[step], problem.tables[step]
    available = _room(problem, idle_bytes, step)
    return InfeasiblePlanError(
        f"needs {int(table.need_bytes.min()):,} bytes per core while it runs, {max(available, 0):,} of "
        f"{problem.capacity_bytes:,} are available on {problem.chip.name}: weights at rest take {idle_bytes:,}, "
        f"other live values {int(problem.live_bytes[step]):,}, shift buffer, other weights and room kept free "
        f"{problem.base_bytes:,}",
        operator=spec.name,
        location=spec.location or None,
        hint=room_hint((spec,)),
    )
