"""Packing: never over the bound by more than promised, optimal where that can be known, the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t10.errors import T10Error
from t10.plan.allocation import Request, allocate, bound_bytes, live_bytes
from t10.plan.packing import TOLERANCE, Block, packed_starts

DRAWN = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6)


def least_peak(blocks: Sequence[Block]) -> int:
    """Return the peak of the best packing: one of all orders of first fit gives it."""
    best = sum(block.size for block in blocks)
    for order in permutations(blocks):
        placed: list[tuple[int, Block]] = []
        for block in order:
            start = 0
            for low, other in sorted(placed, key=lambda pair: pair[0]):
                together = other.first <= block.last and block.first <= other.last
                if together and start < low + other.size and low < start + block.size:
                    start = low + other.size
            placed.append((start, block))
        best = min(best, max(start + block.size for start, block in placed))
    return best


def bound_of(blocks: Sequence[Block]) -> int:
    last = max(block.last for block in blocks)
    return max(sum(b.size for b in blocks if b.first <= now <= b.last) for now in range(last + 1))


@settings(max_examples=150)
@given(DRAWN)
def test_small_instances_are_packed_as_well_as_any_order_can(drawn: list[tuple[int, int, int]]) -> None:
    blocks = [Block(first, first + n, 8 * size) for size, first, n in drawn]
    bound = bound_of(blocks)
    starts = packed_starts(blocks, bound)
    peak = max(start + block.size for start, block in zip(starts, blocks, strict=True))
    assert bound <= peak <= max(least_peak(blocks), bound * (1 + TOLERANCE))


def test_what_first_fit_does_not_find_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t10.plan.packing.REPAIR_ROUNDS", 0)
    rng = Random(5)
    gaps = {"first fit": 0, "solved": 0}
    for _ in range(12):
        blocks = [
            Block(first, first + rng.randrange(5), 8 * rng.randrange(1, 40))
            for first in (rng.randrange(10) for _ in range(16))
        ]
        bound = bound_of(blocks)
        for how, solved_blocks in (("first fit", 0), ("solved", 400)):
            monkeypatch.setattr("t10.plan.packing.SOLVED_BLOCKS", solved_blocks)
            starts = packed_starts(blocks, bound)
            gaps[how] += max(s + b.size for s, b in zip(starts, blocks, strict=True)) - bound
    assert gaps["solved"] < gaps["first fit"]


def random_program(rng: Random, n_steps: int) -> list[Request]:
    """Return the buffers of a model-like program: some for ever, chains of values, working buffers per step."""
    end = 3 * n_steps - 1
    requests = [Request(f"idle{i}", rng.randrange(1, 4000), 0, end) for i in range(n_steps // 2)]
    for step in range(n_steps):
        last = min(end, 3 * step + rng.choice([3, 4, 6, 30]))
        requests.append(Request(f"value{step}", rng.randrange(1, 30000), 3 * step + 2, last))
        for i in range(rng.randrange(1, 4)):
            requests.append(
                Request(
                    f"operand{step}.{i}", rng.randrange(1, 60000), 3 * step, 3 * step + rng.choice([1, 2])
                )
            )
    return requests


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_hundreds_of_buffers_stay_within_a_hundredth(seed: int) -> None:
    requests = random_program(Random(seed), 120)
    packing = allocate(requests, 4096)
    assert packing.bound_bytes == bound_bytes(requests, 4096)
    assert packing.bound_bytes <= packing.peak_bytes <= packing.bound_bytes * (1 + TOLERANCE)
    assert packing == allocate(requests, 4096)


def test_a_chain_of_takeovers_lies_at_one_address_and_counts_once() -> None:
    requests = [
        Request("a", 64, 0, 4),
        Request("other", 32, 3, 9),
        Request("b", 64, 4, 7, takes_over="a"),
        Request("c", 64, 7, 12, takes_over="b"),
        Request("late", 16, 10, 12),
    ]
    packing = allocate(requests, 0)
    by_name = {buffer.name: buffer for buffer in packing.buffers}
    assert len({by_name[name].address_bytes for name in "abc"}) == 1
    assert packing.peak_bytes == packing.bound_bytes == 96
    assert live_bytes(requests).tolist() == [64] * 3 + [96] * 7 + [80] * 3
    assert (by_name["b"].first, by_name["b"].first_phase) == (1, "nest")
    assert (by_name["b"].last, by_name["b"].last_phase) == (2, "nest")


@pytest.mark.parametrize(
    "second",
    [
        Request("b", 64, 5, 7, takes_over="a"),
        Request("b", 72, 4, 7, takes_over="a"),
        Request("b", 64, 4, 7, takes_over="none"),
    ],
)
def test_what_cannot_be_taken_over_is_refused(second: Request) -> None:
    with pytest.raises(T10Error, match="buffer b cannot take over"):
        allocate([Request("a", 64, 0, 4), second], 0)


def test_nothing_to_pack() -> None:
    assert allocate([], 512).peak_bytes == allocate([], 512).bound_bytes == 512
