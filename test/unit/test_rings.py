"""Native grouping of cores by window, against dictionaries of tuples."""

from __future__ import annotations

import numpy as np
import pytest

from t10.core import _rings
from t10.core.arrays import Ints

Window = tuple[tuple[int, ...], tuple[int, ...]]


def window(where: Ints, starts: Ints, own: list[int]) -> Window:
    return tuple(where[own].tolist()), tuple(starts[own].tolist())


def found(
    where: Ints, starts: Ints, own: list[int], axis: int, step: int, length: int
) -> tuple[list[int], list[int], list[int]]:
    """Return ranks, groups and sources as the native module finds them."""
    ranks, groups, sources = (np.empty(len(where), np.int64) for _ in range(3))
    _rings.window_ranks(where, starts, own, ranks)
    _rings.window_groups(where, starts, own, groups)
    _rings.ring_sources(where, starts, own, axis, step, length, sources)
    return ranks.tolist(), groups.tolist(), sources.tolist()


def expected(
    where: Ints, starts: Ints, own: list[int], axis: int, step: int, length: int
) -> tuple[list[int], list[int], list[int]]:
    """Return the same from the definitions."""
    windows = [window(each, start, own) for each, start in zip(where, starts, strict=True)]
    ranks = [windows[:core].count(each) for core, each in enumerate(windows)]
    numbers = {each: number for number, each in enumerate(dict.fromkeys(windows))}
    holder = {(each, rank): core for core, (each, rank) in enumerate(zip(windows, ranks, strict=True))}
    further = starts.copy()
    further[:, axis] = (further[:, axis] + step) % length
    wanted = [window(each, start, own) for each, start in zip(where, further, strict=True)]
    sources = [holder.get((each, rank), -1) for each, rank in zip(wanted, ranks, strict=True)]
    return ranks, [numbers[each] for each in windows], sources


@pytest.mark.parametrize("seed", range(200))
def test_groups_ranks_and_sources_are_those_of_the_definitions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_cores, n_axes = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    unit = 10 ** int(rng.integers(0, 14))
    where = rng.integers(0, int(rng.integers(1, 5)), (n_cores, n_axes))
    starts = rng.integers(0, int(rng.integers(1, 5)), (n_cores, n_axes)) * unit
    own = sorted({int(axis) for axis in rng.integers(0, n_axes, n_axes)})
    axis, length = own[0], int(starts[:, own[0]].max()) + unit
    step = int(rng.integers(0, 3)) * unit % length
    assert found(where, starts, own, axis, step, length) == expected(where, starts, own, axis, step, length)


def test_an_operand_of_no_axes_is_one_window() -> None:
    where = np.zeros((3, 1), np.int64)
    assert found(where, where, [], 0, 0, 1) == ([0, 1, 2], [0, 0, 0], [0, 1, 2])


def test_tables_that_do_not_fit_are_refused() -> None:
    where, ranks = np.zeros((3, 2), np.int64), np.empty(3, np.int64)
    with pytest.raises(ValueError, match="one row per core"):
        _rings.window_ranks(where, where[:2], [0], ranks)
    with pytest.raises(ValueError, match="numbers from 0"):
        _rings.window_ranks(where, where - 1, [0], ranks)
    with pytest.raises(IndexError, match="an axis that is not there"):
        _rings.window_ranks(where, where, [2], ranks)
    with pytest.raises(ValueError, match="a length of 1 or more"):
        _rings.ring_sources(where, where, [0], 0, 0, 0, ranks)
