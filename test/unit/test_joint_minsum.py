"""The native elimination: its least sum is that of every assignment tried, and what it cannot do it refuses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from t10.plan.joint._minsum import Elimination
from t10.plan.joint.relaxation import open_scope

Floats = NDArray[np.float64]
Factor = tuple[tuple[int, ...], Floats]
N_PROBLEMS = 400


def random_problem(number: int) -> tuple[list[int], list[Factor], Floats]:
    """Return states per variable, factors over up to four of them (in any order, scopes repeated), state costs.

    Costs are whole numbers, so sums are exact; some are infinite, and some negative.
    """
    rng = np.random.default_rng(number)
    n_states = rng.integers(1, 5, size=int(rng.integers(1, 8))).tolist()
    scopes: list[tuple[int, ...]] = []
    for _ in range(int(rng.integers(0, 9))):
        if scopes and rng.random() < 0.2:
            scopes.append(scopes[int(rng.integers(len(scopes)))])
            continue
        size = int(rng.integers(0, min(4, len(n_states)) + 1))
        scopes.append(tuple(rng.permutation(len(n_states))[:size].tolist()))
    forbidden = rng.choice([0.0, 0.0, 0.1, 0.5])

    def costs(size: int) -> Floats:
        values = rng.integers(-20, 100, size=size).astype(np.float64)
        return np.where(rng.random(size) < forbidden, np.inf, values)

    factors = [(scope, costs(int(np.prod([n_states[v] for v in scope])))) for scope in scopes]
    return n_states, factors, costs(sum(n_states))


def cost_of(
    chosen: tuple[int, ...], n_states: list[int], factors: list[Factor], state_costs: Floats
) -> float:
    """Return the sum of one assignment, entry by entry."""
    first = 0
    total = 0.0
    for state, n in zip(chosen, n_states, strict=True):
        total += state_costs[first + state]
        first += n
    for scope, values in factors:
        index = 0
        for variable in scope:
            index = index * n_states[variable] + chosen[variable]
        total += values[index]
    return float(total)


@pytest.mark.parametrize("share", range(4))
def test_least_sum_equals_brute_force(share: int) -> None:
    n_infinite = 0
    for number in range(share, N_PROBLEMS, 4):
        n_states, factors, state_costs = random_problem(number)
        least, chosen, _ = Elimination(n_states, factors).minimise(state_costs)
        expected = min(
            cost_of(each, n_states, factors, state_costs) for each in product(*(range(n) for n in n_states))
        )
        assert least == expected, number
        if np.isinf(expected):
            n_infinite += 1
            continue
        assert cost_of(tuple(chosen), n_states, factors, state_costs) == expected, number
    assert 0 < n_infinite < N_PROBLEMS // 8


@pytest.mark.parametrize("share", range(4))
def test_least_sums_with_every_state_equal_brute_force(share: int) -> None:
    for number in range(share, N_PROBLEMS, 4):
        n_states, factors, state_costs = random_problem(number)
        found, _ = Elimination(n_states, factors).least_by_state(state_costs)
        expected = np.full(sum(n_states), np.inf)
        first = np.cumsum([0, *n_states[:-1]])
        for chosen in product(*(range(n) for n in n_states)):
            states = first + np.array(chosen)
            cost = cost_of(chosen, n_states, factors, state_costs)
            expected[states] = np.minimum(expected[states], cost)
        assert found.tolist() == expected.tolist(), number


def test_one_elimination_serves_any_state_costs() -> None:
    n_states, factors, _ = random_problem(17)
    once = Elimination(n_states, factors)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state_costs = rng.integers(0, 50, size=sum(n_states)).astype(np.float64)
        assert once.minimise(state_costs) == Elimination(n_states, factors).minimise(state_costs)


def test_a_long_chain_equals_dynamic_programming() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.integers(0, 1000, size=(7, 7)).astype(np.float64) for _ in range(300)]
    own = rng.integers(0, 1000, size=(301, 7)).astype(np.float64)
    reached = own[0]
    for table, here in zip(tables, own[1:], strict=True):
        reached = (reached[:, None] + table).min(axis=0) + here
    chain = Elimination([7] * 301, [((i, i + 1), table.ravel()) for i, table in enumerate(tables)])
    least, _, n_sums = chain.minimise(own.ravel())
    assert least == reached.min()
    assert 301 <= n_sums <= 300 * 7 * 7 + 7


@pytest.mark.parametrize("number", range(60))
def test_layers_that_are_equal_but_for_one_number_are_told_apart(number: int) -> None:
    rng = np.random.default_rng(number)
    inner, across = (rng.integers(0, 9, size=9).astype(np.float64) for _ in range(2))
    factors: list[Factor] = []
    for layer in range(3):
        first = 2 * layer
        factors += [((first, first + 1), inner.copy()), ((first + 1, first + 2), across.copy())]
    n_states, state_costs = [3] * 7, np.tile(rng.integers(0, 9, size=3).astype(np.float64), 7)
    if number % 3 == 1:
        state_costs[rng.integers(21)] += 5
    if number % 3 == 2:
        factors[int(rng.integers(6))][1][rng.integers(9)] += 5
    least, chosen, _ = Elimination(n_states, factors).minimise(state_costs)
    assert least == min(cost_of(each, n_states, factors, state_costs) for each in product(range(3), repeat=7))
    assert least == cost_of(tuple(chosen), n_states, factors, state_costs)


@pytest.mark.parametrize("number", range(60))
def test_equal_layers_beside_different_states_are_told_apart(number: int) -> None:
    """A layer adds up as another does, but what it meets has states that the other's has not: closed, or beaten."""
    rng = np.random.default_rng(number)
    n_layers, n = 6, 3
    table = rng.integers(0, 30, size=(n, n)).astype(np.float64)
    factors = [((layer, n_layers + layer), table.ravel()) for layer in range(n_layers)]
    costs = np.zeros((2 * n_layers, n))
    costs[n_layers:] = rng.integers(0, 60, size=(n_layers, n))
    costs[n_layers:][rng.random((n_layers, n)) < 0.4] = np.inf
    costs[n_layers:, 0] = rng.integers(0, 60, size=n_layers)
    state_costs = costs.ravel()
    elimination = Elimination([n] * (2 * n_layers), factors)
    least, chosen, _ = elimination.minimise(state_costs)
    by_layer = (costs[:n_layers, :, None] + table + costs[n_layers:, None, :]).min(axis=(1, 2))
    assert least == by_layer.sum()
    assert cost_of(tuple(chosen), [n] * (2 * n_layers), factors, state_costs) == least
    by_state, _ = elimination.least_by_state(state_costs)
    assert by_state[np.isfinite(by_state)].min() == least


def test_constants_are_part_of_the_sum() -> None:
    constants = [((), np.array([5.0])), ((), np.array([2.0]))]
    assert Elimination([2], constants).minimise(np.array([3.0, 1.0]))[:2] == (8.0, [1])
    assert Elimination([], constants).minimise(np.zeros(0))[:2] == (7.0, [])


def test_ties_are_broken_by_the_lowest_state() -> None:
    assert Elimination([3, 3], [((0, 1), np.zeros(9))]).minimise(np.zeros(6))[:2] == (0.0, [0, 0])


@pytest.mark.parametrize(
    ("n_states", "factor", "message"),
    [
        ([2, 3], ((0, 1), np.zeros(5)), "a factor has 5 costs, expected 6"),
        ([2, 3], ((), np.zeros(0)), "a factor has 0 costs, expected 1"),
        ([2, 3], ((0, 2), np.zeros(6)), "a factor names variable 2"),
        ([2, 3], ((1, 1), np.zeros(9)), "a factor names variable 1 twice"),
        ([2, 0], ((0,), np.zeros(2)), "variable 1 has no state"),
    ],
)
def test_factors_that_make_no_sense_are_refused(n_states: list[int], factor: Factor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Elimination(n_states, [factor])


def test_state_costs_of_a_wrong_size_are_refused() -> None:
    with pytest.raises(ValueError, match="expected 5 state costs, found 4"):
        Elimination([2, 3], []).minimise(np.zeros(4))


@pytest.mark.parametrize(("n_variables", "n_each"), [(14, 2), (8, 16)])
def test_variables_that_all_meet_are_too_entangled(n_variables: int, n_each: int) -> None:
    pairs = [(a, b) for a in range(n_variables) for b in range(a)]
    with pytest.raises(ValueError, match="too entangled"):
        Elimination([n_each] * n_variables, [(pair, np.zeros(n_each * n_each)) for pair in pairs])


def test_variables_without_a_choice_tie_no_others_together() -> None:
    """In a deep stack of equal layers an operator with a choice meets many without; tables need not be over those."""
    n_states = [17, *[1] * 14]
    scopes = [(0, other) for other in range(1, 15)]
    with pytest.raises(ValueError, match="too entangled"):
        Elimination(n_states, [(scope, np.zeros(17)) for scope in scopes])
    tables = [(open_scope(scope, n_states), np.arange(17.0)) for scope in scopes]
    least, states, _ = Elimination(n_states, tables).minimise(np.zeros(31))
    assert (least, list(states)) == (0, [0] * 15)
    assert open_scope((3, 4), n_states) == (3,)
