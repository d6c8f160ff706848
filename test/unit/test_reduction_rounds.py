"""Reductions are priced round by round; rounds that are alike, once."""

from __future__ import annotations

from typing import Literal

import pytest

from t10.chip import load_chip
from t10.core.dtypes import size_bytes
from t10.core.reduction import Groups, Round, all_rounds, part_slots, scatter_rounds
from t10.core.tile import WIDE_BYTES
from t10.cost.reductions import exchange_cycles, rounds_cycles

CHIP = load_chip("test-16")


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("mode", ["all", "scatter"])
@pytest.mark.parametrize("n_members", [2, 3, 7, 16])
def test_pieces_that_begin_alike_are_priced_once(
    mode: Literal["all", "scatter"], dtype: str, n_members: int
) -> None:
    n_slots, size, asked = 200_001, size_bytes(dtype), list[Round]()

    def additions(one: Round) -> int:
        begin = int(one.first[0]) * size % WIDE_BYTES
        return 1000 * one.n_parts + begin + int(one.widths.sum())

    def added(one: Round) -> int:
        asked.append(one)
        return additions(one)

    make = all_rounds if mode == "all" else scatter_rounds
    buffer_slots = CHIP.shift_buffer_bytes // size
    rounds = list(make(Groups.one(n_members), n_slots, buffer_slots, size))
    expected = sum(exchange_cycles(CHIP, one, size) + CHIP.launch_cycles + additions(one) for one in rounds)
    found = rounds_cycles(CHIP, mode, dtype, n_members, n_slots, added, is_apart=True, places=None)
    assert found == expected
    assert len(asked) <= 6 < len(rounds)


@pytest.mark.parametrize("item_bytes", [1, 2, 4, 8])
@pytest.mark.parametrize("mode", ["all", "scatter"])
@pytest.mark.parametrize("n_members", [2, 3, 37, 200])
def test_parts_lie_apart_within_the_buffer(
    mode: Literal["all", "scatter"], item_bytes: int, n_members: int
) -> None:
    make, buffer_slots = all_rounds if mode == "all" else scatter_rounds, 8192 // item_bytes
    for n_slots in (1, 2, 3, 8, 100, 1001, 50_000):
        for one in make(Groups.one(n_members), n_slots, buffer_slots, item_bytes):
            width = int(one.widths.max())
            assert one.n_parts == 1 or one.stride >= width
            assert (one.n_parts - 1) * one.stride + width <= buffer_slots


def test_single_words_lie_side_by_side_and_longer_parts_at_16_bytes() -> None:
    assert [int(part_slots(n, 4)) for n in (1, 2, 3, 4, 5, 106)] == [1, 2, 4, 4, 8, 108]
    assert [int(part_slots(n, 2)) for n in (1, 2, 3, 4, 5, 12)] == [4, 2, 4, 4, 8, 16]
