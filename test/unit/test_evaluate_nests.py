"""The shifts of loop nests against every loop order."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from t10.core.arrays import Ints
from t10.plan.search.evaluate import nest_shift_cycles


def _cycles_in_order(steps: Ints, advance: Ints, order: tuple[int, ...]) -> int:
    """Walk the nest's loops, outermost first, and add up the advances each of them makes."""
    sweeps, shifts = 1, 0
    for axis in order:
        shifts += int(advance[axis]) * (int(steps[axis]) - 1) * sweeps
        sweeps *= int(steps[axis])
    return shifts


@st.composite
def _nests(draw: st.DrawFn) -> tuple[Ints, Ints]:
    n, k = draw(st.integers(0, 6)), draw(st.integers(0, 4))
    steps = draw(st.lists(st.integers(1, 64), min_size=n * k, max_size=n * k))
    advance = draw(st.lists(st.integers(0, 5000), min_size=n * k, max_size=n * k))
    return np.array(steps, np.int64).reshape(n, k), np.array(advance, np.int64).reshape(n, k)


@given(_nests())
def test_nest_cycles_equal_the_best_of_all_loop_orders(nests: tuple[Ints, Ints]) -> None:
    steps, advance = nests
    orders = list(itertools.permutations(range(steps.shape[1])))
    expected = [min(_cycles_in_order(*nest, order) for order in orders) for nest in zip(*nests, strict=True)]
    np.testing.assert_array_equal(nest_shift_cycles(steps, advance), np.array(expected, np.int64))


def test_nothing_rotating_costs_nothing() -> None:
    np.testing.assert_array_equal(nest_shift_cycles(np.ones((2, 3), np.int64), np.full((2, 3), 99)), [0, 0])


def test_two_axes_by_hand() -> None:
    # c = (10, 100): axis 1 goes outside. One advance of axis 1, 2 sweeps of 2 advances of axis 0.
    assert nest_shift_cycles(np.array([[3, 2]]), np.array([[10, 100]]))[0] == 100 * 1 + 10 * 2 * 2
