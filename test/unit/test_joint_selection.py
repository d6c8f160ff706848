"""Choosing for a whole model, as plain numbers: bytes, cycles, bounds, moves and the best choice against all choices.

A few hundred random problems, each so small that every choice can be tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from support.draw import drawn
from support.random_selections import (
    Choices,
    chained_selection,
    every_choice,
    looped_bytes,
    looped_cycles,
    random_selection,
)

from t10.core.arrays import Floats
from t10.errors import T10Error
from t10.plan.joint import loosen, relaxation
from t10.plan.joint import solve as solver
from t10.plan.joint.improve import Neighbourhood, neighbours
from t10.plan.joint.loosen import relaxation_of
from t10.plan.joint.narrow import narrowed
from t10.plan.joint.polish import polish
from t10.plan.joint.relaxation import Relaxation
from t10.plan.joint.selection import Rows, Selection, Table
from t10.plan.joint.solve import solve

N_PROBLEMS = 240
WORK = 5.0


@cache
def problem(number: int) -> tuple[Selection, Choices]:
    selection = random_selection(number)
    return selection, every_choice(selection)


def problems(step: int = 1) -> Iterator[tuple[int, Selection, Choices]]:
    for number in range(0, N_PROBLEMS, step):
        yield number, *problem(number)


def test_problems_are_of_every_kind() -> None:
    fitting = [float(choices.is_fitting.mean()) for _, _, choices in problems()]
    assert sum(part == 0 for part in fitting) >= N_PROBLEMS // 40
    assert sum(0 < part < 0.1 for part in fitting) >= N_PROBLEMS // 40
    assert sum(0.1 <= part < 1 for part in fitting) >= N_PROBLEMS // 5
    scopes = {len(table.scope) for _, selection, _ in problems() for table in selection.costs}
    assert scopes == {1, 2, 3}
    assert any(not saving.is_certain for _, selection, _ in problems() for saving in selection.savings)


def test_cycles_and_bytes_are_what_a_loop_adds_up() -> None:
    for number, selection, choices in problems():
        rng = np.random.default_rng(number)
        for index in rng.integers(0, len(choices.rows), size=3):
            rows = choices.rows[index]
            used = looped_bytes(selection, rows)
            assert selection.cycles(rows) == looped_cycles(selection, rows) == choices.cycles[index]
            assert selection.used_bytes(rows).tolist() == used
            assert max(used) == choices.peak_bytes[index]
            assert selection.fits(rows) == (max(used) <= selection.room_bytes)
            assert selection.idle_bytes(rows) == choices.idle_bytes[index]


def test_states_without_rows_are_refused() -> None:
    numbers = np.zeros(2, np.int64)
    rows = Rows(np.array([0, 2]), numbers, numbers, np.zeros((2, 3), np.int64))
    with pytest.raises(T10Error, match="rows must cover 3 states in order"):
        Selection((2, 1), rows, (), (), (), 100)


def intervals(selection: Selection, choices: Choices, number: int) -> Iterator[tuple[int, int]]:
    """Yield intervals of idle bytes: all there is, some between breakpoints, and some anywhere."""
    rng = np.random.default_rng(number)
    least, most = int(choices.idle_bytes.min()), int(choices.idle_bytes.max())
    yield least, most
    points = np.clip(Relaxation(selection).breakpoints(), least, most).tolist() or [least]
    for low, high in (*rng.choice(points, size=(3, 2)), *rng.integers(least, most + 1, size=(3, 2))):
        yield int(min(low, high)), int(max(low, high))


@pytest.mark.parametrize("n_steps", [1, relaxation.PRICE_STEPS])
@pytest.mark.parametrize("hint", [0.0, 1.0])
def test_no_choice_undercuts_the_bound_of_its_interval(
    n_steps: int, hint: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relaxation, "PRICE_STEPS", n_steps)
    for number, selection, choices in problems():
        relaxed = Relaxation(selection)
        for low, high in intervals(selection, choices, number):
            bound = relaxed.bound(relaxed.limits(low), high, hint)
            inside = (choices.idle_bytes >= low) & (choices.idle_bytes <= high)
            least = choices.least(inside)
            assert least is None or np.ceil(bound.cycles - 1e-6) <= least, (number, low, high)
            if bound.within is not None:
                assert bound.within.idle_bytes <= high
                assert bound.within.cycles == selection.cycles(bound.within.rows)
            if bound.beyond is not None:
                assert bound.beyond.idle_bytes > high


def test_bounds_are_tight_where_memory_does_not_matter() -> None:
    for number, selection, choices in problems(4):
        roomy = replace(selection, room_bytes=100_000)
        relaxed = Relaxation(roomy)
        assert relaxed.bound(relaxed.limits(0), 100_000).cycles == choices.cycles.min(), number
        # With all of it taken by weights at rest there is no room to run.
        assert relaxed.best(relaxed.limits(100_000), 0.0) is None


def test_a_whole_problem_is_bounded_once_at_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    relaxed = Relaxation(replace(problem(0)[0], room_bytes=100_000))
    minimise, calls = relaxed.elimination.minimise, list[Floats]()

    def noted(by_state: Floats) -> tuple[float, Sequence[int], int]:
        calls.append(by_state)
        return minimise(by_state)

    monkeypatch.setattr(relaxed, "elimination", SimpleNamespace(minimise=noted))
    low, high = relaxed.limits(0), relaxed.limits(8)
    first, other, again = (relaxed.best(low, price) for price in (0.0, 0.5, 0.0))
    assert first is again is not other
    assert len(calls) == 2
    relaxed.best(high, 0.5)
    relaxed.best(low, 0.5, relaxed.region(relaxed.whole.is_open))
    assert len(calls) == 4


def test_the_best_choice_is_found_and_proved() -> None:
    for number, selection, choices in problems():
        found = solve(selection, gap=0.0)
        least = choices.least()
        assert (found is None) == (least is None), number
        if found is None:
            continue
        assert selection.fits(found.rows), number
        assert found.cycles == looped_cycles(selection, found.rows)
        assert found.bound_cycles == least == found.cycles, number
        assert found.gap == 0


def test_bounds_hold_without_the_integer_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "POLISHED_ROWS", 0)
    n_found = n_best = 0
    for number, selection, choices in problems():
        found = solve(selection, gap=0.0)
        least = choices.least()
        if found is None:
            continue
        assert least is not None
        assert found.bound_cycles <= least <= found.cycles, number
        n_found += 1
        n_best += found.cycles == least
    assert n_best >= 0.8 * n_found
    assert n_found >= 0.9 * sum(choices.least() is not None for _, _, choices in problems())


@pytest.mark.parametrize("gap", [0.02, 0.2])
def test_a_gap_asked_for_is_kept(gap: float) -> None:
    for number, selection, choices in problems(3):
        found = solve(selection, gap=gap)
        least = choices.least()
        assert (found is None) == (least is None), number
        if found is not None and least is not None:
            assert found.bound_cycles <= least <= found.cycles
            assert found.gap <= gap + 1e-9, number


def test_starts_are_never_made_worse() -> None:
    for number, selection, choices in problems(3):
        fitting = np.nonzero(choices.is_fitting)[0]
        if not len(fitting):
            continue
        rng = np.random.default_rng(number)
        starts = choices.rows[rng.choice(fitting, size=2)]
        found = solve(selection, 1.0, starts, is_over=lambda: True)
        assert found is not None
        assert found.cycles <= min(selection.cycles(rows) for rows in starts)
        least = choices.least()
        assert least is not None
        assert found.bound_cycles <= least


def test_a_start_that_does_not_fit_is_left_out() -> None:
    for _, selection, choices in problems(3):
        misfits = choices.rows[~choices.is_fitting][:3]
        found = solve(selection, 0.0, misfits)
        assert (None if found is None else found.cycles) == choices.least()


@pytest.mark.parametrize("most", [0, 2, 4])
def test_tables_are_loosened_until_operators_can_be_eliminated(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    def entangled(selection: Selection) -> Relaxation:
        if sum(sum(n > 1 for n in table.values.shape) > 1 for table in selection.costs) > most:
            raise ValueError("Elimination: variables are too entangled (a message would need 14 variables)")
        return Relaxation(selection)

    monkeypatch.setattr(loosen, "Relaxation", entangled)
    n_proved = 0
    for _, selection, choices in problems(5):
        found = solve(selection, 0.0)
        least = choices.least()
        if found is None or least is None:
            assert found is least
            continue
        assert selection.fits(found.rows)
        assert found.bound_cycles <= least <= found.cycles == selection.cycles(found.rows)
        n_proved += found.bound_cycles == found.cycles
    assert n_proved >= N_PROBLEMS // 5 // 4


@pytest.mark.parametrize("part", [0.9, 1.0, 1.2])
def test_only_rows_without_better_choices_are_left_out(part: float) -> None:
    n_left_out = 0
    for number, selection, choices in problems():
        fitting = choices.rows[choices.is_fitting]
        if not len(fitting):
            continue
        best = fitting[np.random.default_rng(number).integers(len(fitting))]
        limit = selection.cycles(best) * part
        relaxed = Relaxation(selection)
        most = min(int(choices.idle_bytes.max()), relaxed.most_idle_bytes())
        assert (choices.idle_bytes[choices.is_fitting] <= most).all(), number
        found = narrowed(relaxed, selection, best, limit, (int(choices.idle_bytes.min()), most))
        is_inside = np.asarray(np.isin(choices.rows, found.rows).all(axis=1), np.bool_)
        least = choices.least(~is_inside)
        assert least is None or least >= found.bound_cycles >= limit, number
        n_left_out += len(selection.rows.state) - len(found.rows)
        inside = found.inside(best)
        assert (found.rows[inside] == best).all()
        for rows in choices.rows[is_inside][:3]:
            inside = found.inside(rows)
            assert found.selection.cycles(inside) == selection.cycles(rows)
            assert (found.selection.used_bytes(inside) == selection.used_bytes(rows)).all()
    assert n_left_out > N_PROBLEMS // 5


def test_as_few_tables_as_needed_are_loosened_those_that_lose_least(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [np.array([[0, n], [n, 0]]) for n in (50, 10, 30)]
    selection = replace(
        chained_selection(0, 3, 2, 10_000), costs=tuple(map(Table, ((0, 1), (1, 2), (0, 2)), pairs))
    )
    kept: list[set[tuple[int, ...]]] = []

    def without_triangles(selection: Selection) -> Relaxation:
        kept.append({table.scope for table in selection.costs if len(table.scope) > 1})
        if len(kept[-1]) > 2:
            raise ValueError("too entangled")
        return Relaxation(selection)

    monkeypatch.setattr(loosen, "Relaxation", without_triangles)
    relaxation_of(selection)
    assert kept[-1] == {(0, 1), (0, 2)}


def some_fitting(
    number: int, choices: Choices, size: int
) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Return some of the choices that fit, drawn with a seed."""
    fitting = np.nonzero(choices.is_fitting)[0]
    if not len(fitting):
        return []
    return list(choices.rows[np.random.default_rng(number).choice(fitting, size=size)])


def test_improving_ends_where_no_operator_alone_is_better() -> None:
    for number, selection, choices in problems():
        near = Neighbourhood(selection)
        for rows in some_fitting(number, choices, 3):
            before = rows.copy()
            improved = near.improved(rows)
            assert (rows == before).all()
            assert selection.fits(improved)
            assert selection.cycles(improved) <= selection.cycles(rows)
            is_near = (choices.rows != improved).sum(axis=1) <= 1
            assert choices.least(is_near) == selection.cycles(improved), number


def test_exchanges_fit_and_are_faster() -> None:
    n_found = 0
    for number, selection, choices in problems():
        near = Neighbourhood(selection)
        for rows in some_fitting(number, choices, 3):
            exchanged = near.exchanged(rows)
            if exchanged is None:
                continue
            n_found += 1
            assert selection.fits(exchanged), number
            assert selection.cycles(exchanged) < selection.cycles(rows)
            assert (exchanged != rows).sum() == 2
    assert n_found > 20


def test_neighbours_are_all_states_of_one_operator_that_fit_and_are_close() -> None:
    n_found = 0
    for number, selection, choices in problems():
        states = selection.rows.state
        for rows in some_fitting(number, choices, 1):
            found = neighbours(selection, rows, selection.cycles(rows) // 2)
            n_found += len(found)
            is_moved = states[choices.rows] != states[rows]
            is_near = (is_moved == (choices.rows != rows)).all(axis=1) & (is_moved.sum(axis=1) == 1)
            is_near &= choices.is_fitting & (choices.cycles <= selection.cycles(rows) * 1.5)
            assert all(selection.fits(each) for each in found), number
            assert all(selection.cycles(each) <= selection.cycles(rows) * 1.5 for each in found)
            due = sorted({tuple(each) for each in states[choices.rows[is_near]].tolist()})
            assert sorted(tuple(states[each].tolist()) for each in found) == due
    assert n_found > 20


def test_mixtures_are_the_fastest_that_fit() -> None:
    n_found = 0
    for number, selection, choices in problems():
        near = Neighbourhood(selection)
        rng = np.random.default_rng(number)
        for small, fast in choices.rows[rng.integers(0, len(choices.rows), size=(4, 2))]:
            mixed = near.mixed(small, fast)
            tried = [np.concatenate([fast[:n], small[n:]]) for n in range(selection.n_operators + 1)]
            fitting = [rows for rows in tried if selection.fits(rows)]
            assert (mixed is None) == (not fitting), number
            if mixed is not None:
                n_found += 1
                assert selection.fits(mixed)
                assert selection.cycles(mixed) == min(selection.cycles(rows) for rows in fitting)
    assert n_found > 100


def test_bytes_after_a_move_are_counted_like_those_of_the_choice_it_leads_to() -> None:
    for number, selection, choices in problems():
        near = Neighbourhood(selection)
        rng = np.random.default_rng(number)
        rows = choices.rows[int(rng.integers(len(choices.rows)))]
        states, used = selection.states_of(rows), selection.used_bytes(rows)
        for operator in range(selection.n_operators):
            for row in selection.rows_of(operator):
                moved = rows.copy()
                moved[operator] = row
                after = near.used_after(operator, row, rows, states, used)
                assert (after == selection.used_bytes(moved)).all(), number


def test_the_integer_program_finds_what_trying_all_finds() -> None:
    for number, selection, choices in problems(2):
        everyone = range(selection.n_operators)
        polished = polish(selection, None, everyone, WORK, 0.0)
        least = choices.least()
        if least is None:
            assert polished.rows is None
            assert polished.bound_cycles > choices.cycles.max()
            continue
        assert polished.rows is not None
        assert selection.fits(polished.rows), number
        assert selection.cycles(polished.rows) == polished.bound_cycles == least, number


def test_the_integer_program_leaves_others_as_they_are() -> None:
    for number, selection, choices in problems(4):
        rng = np.random.default_rng(number)
        for start in some_fitting(number, choices, 1):
            free = set(np.nonzero(rng.random(selection.n_operators) < 0.5)[0].tolist())
            polished = polish(selection, start, free, WORK, 0.0)
            kept = [operator for operator in range(selection.n_operators) if operator not in free]
            is_open = (choices.rows[:, kept] == start[kept]).all(axis=1)
            assert polished.rows is not None
            assert selection.fits(polished.rows)
            assert selection.cycles(polished.rows) == polished.bound_cycles == choices.least(is_open), number


@pytest.mark.slow
@pytest.mark.parametrize("room_bytes", [*drawn([900, 1400], 1), 3000])
def test_large_problems_are_solved_the_same_every_time(
    room_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solver, "POLISH_WORK", 0.2)
    selection = chained_selection(1, 40, 8, room_bytes)
    found = [solve(selection, 0.01) for _ in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].rows.tolist() == found[1].rows.tolist()
    assert (found[0].cycles, found[0].bound_cycles) == (found[1].cycles, found[1].bound_cycles)
    assert selection.fits(found[0].rows)
    assert found[0].bound_cycles <= found[0].cycles


@pytest.mark.slow
def test_so_much_work_leads_to_the_same_choice_and_bound_every_time() -> None:
    selection = chained_selection(1, 40, 8, 1400)
    found = [solve(selection, 0.0, work=work) for work in (250_000_000, 250_000_000, 350_000_000)]
    first, second, further = (one for one in found if one is not None)
    assert first.rows.tolist() == second.rows.tolist()
    assert (first.cycles, first.bound_cycles, first.work) == (second.cycles, second.bound_cycles, second.work)
    # It ends with the interval in which the work was used up; more of it makes nothing worse.
    assert 250_000_000 <= first.work < 260_000_000
    assert first.bound_cycles <= further.bound_cycles <= further.cycles <= first.cycles


def test_more_memory_is_never_slower() -> None:
    for number in range(0, 60, 2):
        least: list[int] = []
        for room_bytes in (60, 100, 140, 180, 260, 400):
            found = solve(random_selection(number, room_bytes), 0.0)
            if found is not None:
                least.append(found.cycles)
            else:
                assert not least
        assert least == sorted(least, reverse=True), number
