"""Cases are drawn by a seed: the same every time, others with another seed, all where all are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import MOST_CASES, ONE_SLOW_OF
from support.draw import ALL, dealt, drawn, one_of_each

CASES = tuple(range(100))


def test_a_seed_draws_the_same_cases_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALL, raising=False)
    once = drawn(CASES, 10, "a")
    assert once == sorted(drawn(CASES[::-1], 10, "a"))
    assert len(once) == 10
    assert once != drawn(CASES, 10, "b")
    assert set().union(*(drawn(CASES, 10, str(seed)) for seed in range(200))) == set(CASES)


def test_all_cases_are_run_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALL, "1")
    assert drawn(CASES, 10) == list(CASES)
    assert one_of_each([CASES[:2], CASES[2:]]) == list(CASES)
    assert dealt([CASES[:2], CASES[2:]]) == (list(CASES), list(CASES))


def test_groups_give_one_case_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALL, raising=False)
    first, second = one_of_each([CASES[:50], CASES[50:]])
    assert first < 50 <= second


def test_what_one_half_does_not_get_the_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ALL, raising=False)
    first, second = dealt([(number, number + 1) for number in range(0, 100, 2)])
    assert sorted([*first, *second]) == list(CASES)
    assert {number // 2 for number in first} == {number // 2 for number in second} == set(range(50))


def test_one_of_so_many_slow_tests_is_drawn_and_no_other_test_is_lost() -> None:
    root = Path(__file__).parents[2]
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "test/unit/test_extremes.py"]

    def collected(*more: str) -> set[str]:
        done = subprocess.run([*words, *more], cwd=root, capture_output=True, text=True, check=True)
        return {line for line in done.stdout.splitlines() if "::" in line}

    every, slow, part = collected(), collected("-m", "slow"), collected("--draw-slow")
    assert part < every
    assert {name.partition("[")[0] for name in every - slow} <= {name.partition("[")[0] for name in part}
    assert len(part & slow) == -(-len(slow) // ONE_SLOW_OF)


SAMPLED = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(20))
def test_numbers(number): ...

@pytest.mark.parametrize("number", range(3))
def test_few(number): ...

@pytest.mark.parametrize("number", range(20))
def test_many(number): ...
"""


@pytest.mark.slow
def test_of_a_sampled_test_some_cases_are_drawn(tmp_path: Path) -> None:
    """All where nothing is said; else three of those that are marked, and of other tests all up to a number."""
    root = Path(__file__).parents[2]
    (tmp_path / "test_sampled.py").write_text(SAMPLED, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "conftest", str(tmp_path)]
    words += ["-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path)]

    def collected(*more: str) -> list[str]:
        path = {"PYTHONPATH": f"{root / 'test'}:{root / 'python'}"}
        done = subprocess.run(
            [*words, *more], cwd=root, env={**os.environ, **path}, capture_output=True, text=True, check=True
        )
        return [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]

    part = collected("--draw-slow")
    assert len(collected()) == 43
    assert Counter(name.partition("[")[0] for name in part) == {
        "test_numbers": 3,
        "test_few": 3,
        "test_many": MOST_CASES,
    }
