"""The native evaluation of loop nests against numpy and against every loop order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from t10.plan.search._evaluate import evaluate_nests


def _cycles_in_order(
    steps: NDArray[np.int32], advance: NDArray[np.float64], subtask: float, order: tuple[int, ...]
) -> float:
    """Walk the nest's loops, outermost first, and add up the advances each of them makes."""
    sweeps, shifts = 1, 0.0
    for axis in order:
        shifts += float(advance[axis]) * (int(steps[axis]) - 1) * sweeps
        sweeps *= int(steps[axis])
    return sweeps * subtask + shifts


@st.composite
def _nests(draw: st.DrawFn) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]]:
    n, k = draw(st.integers(0, 6)), draw(st.integers(0, 4))
    steps = draw(st.lists(st.integers(1, 64), min_size=n * k, max_size=n * k))
    advance = draw(st.lists(st.integers(0, 5000), min_size=n * k, max_size=n * k))
    subtask = draw(st.lists(st.integers(0, 10_000), min_size=n, max_size=n))
    return (
        np.array(steps, dtype=np.int32).reshape(n, k),
        np.array(advance, dtype=np.float64).reshape(n, k),
        np.array(subtask, dtype=np.float64),
    )


@given(_nests())
def test_nest_cycles_equal_the_best_of_all_loop_orders(
    nests: tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64]],
) -> None:
    steps, advance, subtask = nests
    orders = list(itertools.permutations(range(steps.shape[1])))
    expected = [
        min(_cycles_in_order(steps[i], advance[i], float(subtask[i]), order) for order in orders)
        for i in range(steps.shape[0])
    ]
    # Whole numbers below 2**53 are exact in float64, so the comparison is exact too.
    np.testing.assert_array_equal(
        evaluate_nests(steps, advance, subtask), np.array(expected, dtype=np.float64)
    )


def test_nothing_rotating_costs_one_sub_task_per_step_count_of_one() -> None:
    cycles = evaluate_nests(np.ones((2, 3), np.int32), np.full((2, 3), 99.0), np.array([7.0, 11.0]))
    np.testing.assert_array_equal(cycles, [7.0, 11.0])


def test_two_axes_by_hand() -> None:
    # c = (10, 100): axis 1 goes outside. 3 * 2 sub-tasks of 5, one advance of axis 1, 2 sweeps of 2 advances of axis 0.
    cycles = evaluate_nests(np.array([[3, 2]], np.int32), np.array([[10.0, 100.0]]), np.array([5.0]))
    assert cycles[0] == 3 * 2 * 5 + 100 * 1 + 10 * 2 * 2


def test_shapes_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match=r"steps is \[1, 2\].*found \[1, 1\] and 1"):
        evaluate_nests(np.ones((1, 2), np.int32), np.ones((1, 1)), np.ones(1))


def test_step_count_below_one_is_refused_and_its_candidate_named() -> None:
    with pytest.raises(ValueError, match="found 0 in candidate 1"):
        evaluate_nests(np.array([[1], [0]], np.int32), np.ones((2, 1)), np.ones(2))


def test_too_many_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 16 axes, found 17"):
        evaluate_nests(np.ones((1, 17), np.int32), np.ones((1, 17)), np.ones(1))
