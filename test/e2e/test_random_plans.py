"""Random expressions under random legal plans and under the planner's: the simulated chip equals numpy, exactly.

Each case is named by a number; `benchmarks/random_plans.py --first NUMBER --cases 1` runs one again.
"""

from __future__ import annotations

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from support import bruteforce
from support.draw import seed_of_commit, so_many
from support.random_cases import planned_case, problems, random_case, small_case

CASES_PER_SHARE = so_many(400, 120)
SHARES = 4
PLANNED_CASES_PER_SHARE = so_many(300, 36)
seeds = st.integers(0, (1 << 32) - 1)
pytestmark = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_random_plans_compute_what_numpy_does(share: int) -> None:
    """Run cases drawn by the commit, in shares so that several processes can take them."""

    @seed(seed_of_commit())
    @settings(max_examples=CASES_PER_SHARE)
    @given(seeds)
    def check(number: int) -> None:
        assert problems(random_case(SHARES * number + share)) == []

    check()


@pytest.mark.slow
@pytest.mark.parametrize("share", range(2))
def test_planned_models_compute_what_numpy_does(share: int) -> None:
    """Run cases drawn by the commit, half of them with any plans of the time x memory fronts."""

    @seed(seed_of_commit())
    @settings(max_examples=PLANNED_CASES_PER_SHARE)
    @given(seeds)
    def check(number: int) -> None:
        assert problems(planned_case(2 * number + share)) == []

    check()


@settings(max_examples=150)
@given(seeds)
def test_three_ways_to_execute_agree(number: int) -> None:
    """The brute force, element by element, accepts what the checker accepts and gives what no plan would change."""
    case = small_case(number)
    values = {
        tensor.name: {i: bruteforce.mixed(*tensor.name.encode(), *i) for i in bruteforce.boxes(tensor.shape)}
        for tensor in (*case.graph.inputs, *case.graph.weights)
    }
    assert problems(case) == []
    assert bruteforce.Run(case.plan, case.chip, values).results() == bruteforce.expected(case.graph, values)
