"""Random models on random small memories: what compiles runs alike on every engine, where the plan says, as fast.

A slice of benchmarks/fits.py; `python benchmarks/fits.py --only SEED` runs one case again.
"""

from __future__ import annotations

import hashlib

import pytest
from support.draw import drawn
from support.fit_runs import Outcome, run_case
from support.random_fits import named_cases, random_case

SHARES, CASES_PER_SHARE, N_DRAWN = 4, 9, 1
"""Shares of cases, of which some are drawn; `make exhaustive` runs all, `make fits` others."""
N_SEEDS = 2000
MOST_REFUSED = 0.3
NAMED = {case.name: case for case in named_cases()}


def seeds(share: int) -> tuple[int, ...]:
    """Return the seeds of a share: those that come first by a hash, so that a slice is drawn from all cases."""
    ordered = sorted(range(N_SEEDS), key=lambda seed: hashlib.blake2b(str(seed).encode()).digest())
    return tuple(ordered[share : SHARES * CASES_PER_SHARE : SHARES])


def problems(outcome: Outcome) -> list[str]:
    """Return what is wrong with a case, in words."""
    return [f"{outcome.name}: {each.kind}: {each.text}" for each in outcome.findings]


@pytest.mark.slow
@pytest.mark.parametrize("share", drawn(range(SHARES), N_DRAWN))
def test_what_compiles_runs_where_and_as_fast_as_planned(share: int) -> None:
    """The first case of a share also runs as a C++ program."""
    outcomes = [run_case(random_case(seed), on_host=not number) for number, seed in enumerate(seeds(share))]
    assert [text for outcome in outcomes for text in problems(outcome)] == []
    assert sum(bool(outcome.refusal) for outcome in outcomes) <= MOST_REFUSED * len(outcomes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", NAMED)
def test_operands_that_fill_the_memory(name: str) -> None:
    outcome = run_case(NAMED[name], on_host=False)
    assert outcome.refusal == ""
    assert problems(outcome) == []


def test_cases_are_of_their_seed() -> None:
    """A seed gives one model, one set of inputs and one chip; others give others."""
    once, again, other = random_case(3), random_case(3), random_case(4)
    assert (once.model, once.chip, once.fill) == (again.model, again.chip, again.fill)
    assert all((once.inputs[name] == again.inputs[name]).all() for name in once.inputs)
    assert once.model != other.model
