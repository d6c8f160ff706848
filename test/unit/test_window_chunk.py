"""Chunks of a window that several cores have: one rule in Python, in the checker, in formulas and in native code."""

from __future__ import annotations

from math import gcd
from random import Random

import numpy as np
import pytest

from t10.core.chunks import chunk_slots, window_chunk
from t10.core.geometry import window_chunk_many
from t10.cost import _batch_function
from t10.cost.formula import Formula, Opcode
from t10.cost.trace import trace_table
from t10.plan.verify.placed import window_chunk_of


def windows(seed: int, n: int = 200) -> list[tuple[int, int]]:
    """Return elements of windows, many of them whole rows, and cores."""
    rng = Random(seed)
    sizes = [rng.randint(1, 60) * rng.choice((1, 7, 12, 16, 48, 64, 80, 197)) for _ in range(n)]
    return [(size, rng.randint(1, 64)) for size in sizes]


@pytest.mark.parametrize(
    ("n_slots", "n_parts", "expected"),
    [
        (64 * 48, 11, 6 * 48),
        (66 * 80, 12, 6 * 80),
        (40 * 64, 6, 7 * 64),
        (28 * 32, 12, 80),
        (7 * 7 * 16, 33, 24),
        (1024, 8, 128),
        (4000, 4, 1024),
        (720, 8, 96),
        (334 * 2, 32, 22),
        (17, 1, 17),
        (5, 9, 1),
        (0, 3, 0),
    ],
)
def test_chunks_are_whole_rows_where_that_is_near(n_slots: int, n_parts: int, expected: int) -> None:
    assert window_chunk(n_slots, n_parts) == expected


def test_a_chunk_is_an_eighth_longer_at_most_and_even() -> None:
    for n_slots, n_parts in windows(0, 2000):
        chunk, least = window_chunk(n_slots, n_parts), chunk_slots(n_slots, n_parts)
        assert least <= chunk <= least * 9 // 8
        assert chunk % 2 == 0 or chunk == least
        found, other = gcd(chunk, n_slots), gcd(least, n_slots)
        assert found & -found >= other & -other


@pytest.mark.parametrize("seed", range(8))
def test_all_that_know_chunks_agree(seed: int) -> None:
    table = np.array(windows(seed), np.int64)
    expected = [window_chunk(*row) for row in table.tolist()]
    assert expected == [window_chunk_of(*row) for row in table.tolist()]
    assert expected == window_chunk_many(table[:, 0], table[:, 1]).tolist()
    formula = trace_table(lambda t: window_chunk_many(t[:, 0], t[:, 1]), 2)
    assert [code for code, *_ in formula.instructions] == [Opcode.CHUNK]
    assert expected == formula.evaluate(table).tolist()
    columns = np.ascontiguousarray(table.T, np.float64)
    assert expected == _batch_function.evaluate(formula, columns).tolist()


def test_formulas_give_zero_where_nobody_takes_a_chunk() -> None:
    formula = Formula(2, (), ((int(Opcode.CHUNK), 0, 1, 0),), 2)
    table = np.array([[64, 0], [64, 2]], np.int64)
    assert formula.evaluate(table).tolist() == [0, 32]
    columns = np.ascontiguousarray(table.T, np.float64)
    assert _batch_function.evaluate(formula, columns).tolist() == [0, 32]


@pytest.mark.parametrize("seed", range(8))
def test_the_least_chunk_of_many_windows_is_below_all(seed: int) -> None:
    rng = Random(seed)
    low = np.array(windows(seed), np.int64)
    high = low + np.array([[rng.randint(0, 50), rng.randint(0, 3)] for _ in low])
    chunk = Formula(2, (), ((int(Opcode.CHUNK), 0, 1, 0),), 2)
    negated = Formula(2, (1e6,), ((int(Opcode.CHUNK), 0, 1, 0), (int(Opcode.SUB), 2, 3, 0)), 4)
    ends = [np.ascontiguousarray(each.T, np.float64) for each in (low, high)]
    least, most = (_batch_function.least(each, *ends) for each in (chunk, negated))
    for row, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        found = [
            window_chunk(n_slots, n_parts)
            for n_slots in range(first[0], last[0] + 1)
            for n_parts in range(first[1], last[1] + 1)
        ]
        assert least[row] <= min(found)
        assert max(found) <= 1e6 - most[row]
