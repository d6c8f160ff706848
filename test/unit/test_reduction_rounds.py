"""Reductions are priced round by round; rounds that are alike, once."""

from __future__ import annotations

from typing import Literal

import pytest

from t10.chip import load_chip
from t10.core.dtypes import size_bytes
from t10.core.reduction import Groups, Round, all_rounds, scatter_rounds
from t10.core.tile import WIDE_BYTES
from t10.cost.combine import even_slots
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
    rounds = list(make(Groups.one(n_members), n_slots, buffer_slots, even_slots(1, dtype)))
    expected = sum(exchange_cycles(CHIP, one, size) + CHIP.launch_cycles + additions(one) for one in rounds)
    found = rounds_cycles(CHIP, mode, dtype, n_members, n_slots, added, is_apart=True, places=None)
    assert found == expected
    assert len(asked) <= 6 < len(rounds)
