"""Packing: never over the bound by more than promised, optimal where that can be known, the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.packing import allocate, bound_bytes

from t10.errors import T10Error
from t10.plan.memory.allocation import Request, live_bytes
from t10.plan.memory.blocks import Block, neighbours, peak
from t10.plan.memory.packing import TOLERANCE, packed_starts
from t10.plan.memory.packing_repair import PackingRepair

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
    assert (
        bound
        <= peak(blocks, packed_starts(blocks, bound))
        <= max(least_peak(blocks), bound * (1 + TOLERANCE))
    )


def first_fit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t10.plan.memory.packing.REPAIR_ROUNDS", 0)
    monkeypatch.setattr("t10.plan.memory.packing.SOLVED_BLOCKS", 0)
    monkeypatch.setattr("t10.plan.memory.packing_repair.TOTAL_SOLVES", 0)


@pytest.mark.parametrize(
    "means", ["t10.plan.memory.packing.SOLVED_BLOCKS", "t10.plan.memory.packing_repair.TOTAL_SOLVES"]
)
def test_what_first_fit_does_not_find_is_solved(monkeypatch: pytest.MonkeyPatch, means: str) -> None:
    rng = Random(5)
    gaps = {0: 0, 400: 0}
    first_fit_alone(monkeypatch)
    for _ in range(12):
        blocks = [
            Block(first, first + rng.randrange(5), 8 * rng.randrange(1, 40))
            for first in (rng.randrange(10) for _ in range(16))
        ]
        bound = bound_of(blocks)
        for limit in gaps:
            monkeypatch.setattr(means, limit)
            gaps[limit] += peak(blocks, packed_starts(blocks, bound)) - bound
    assert gaps[400] < gaps[0]


def test_more_rounds_of_repair_are_never_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(6)
    first_fit_alone(monkeypatch)
    gained = 0
    for _ in range(20):
        blocks = [
            Block(first, first + rng.randrange(8), 8 * rng.randrange(1, 40))
            for first in (rng.randrange(20) for _ in range(40))
        ]
        bound = bound_of(blocks)
        peaks: list[int] = []
        for n_rounds in range(7):
            monkeypatch.setattr("t10.plan.memory.packing.REPAIR_ROUNDS", n_rounds)
            peaks.append(peak(blocks, packed_starts(blocks, bound)))
        assert peaks == sorted(peaks, reverse=True)
        gained += peaks[0] - peaks[-1]
    assert gained


def transformer(rng: Random, n_layers: int) -> list[Request]:
    """Return the buffers of a chain of equal layers whose copies fill a core at some steps, as large batches do.

    A layer has nine steps (three projections, scores, softmax, context, projection, two dense), each with copies of its
    operands, an accumulator and a value; the values of its ends live over the steps of a residual.
    """
    lives = [4, 3, 3, 1, 2, 1, 3, 1, 1]
    values = [rng.randrange(2000, 30000) for _ in lives]
    copies = [[rng.randrange(1000, 140000) for _ in range(rng.randrange(1, 4))] for _ in lives]
    accumulators = [rng.choice([0, rng.randrange(1000, 60000)]) for _ in lives]
    end = 3 * n_layers * len(lives) - 1
    requests = [Request(f"idle{i}", 9000, 0, end) for i in range(n_layers)]
    requests.append(Request("residual", values[-1], 0, 3 * 6 + 2))
    for step in range(n_layers * len(lives)):
        number, now = step % len(lives), 3 * step
        residual = number in (6, 8)
        last = min(end, now + 3 * (lives[number] + (7 if residual else 0)) + 1)
        requests.append(Request(f"value{step}", values[number], now + 2, last))
        requests.extend(Request(f"copy{step}.{i}", n, now, now + 1) for i, n in enumerate(copies[number]))
        if accumulators[number]:
            requests.append(Request(f"accumulator{step}", accumulators[number], now + 1, now + 2))
    return requests


@pytest.mark.parametrize("n_layers", [2, 5, 12, 24])
def test_chains_of_layers_are_packed_to_the_bound(n_layers: int) -> None:
    for seed in range(12):
        packing = allocate(transformer(Random(seed), n_layers), 0)
        assert packing.peak_bytes == packing.bound_bytes


def test_a_thousand_buffers_are_packed_in_no_time() -> None:
    requests = transformer(Random(1), 48)
    allocate(requests, 0)
    begin = process_time()
    allocate(requests, 0)
    assert len(requests) > 1000
    assert process_time() - begin < 2


def test_equal_layers_are_solved_as_one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """First fit fails in every layer; the number of windows solved does not grow with the number of layers."""
    blocks: list[Block] = []
    for layer in range(200):
        blocks += [
            Block(10 * layer + first, 10 * layer + last, 8 * size)
            for first, last, size in [
                (0, 1, 3),
                (1, 3, 2),
                (2, 4, 4),
                (4, 6, 3),
                (3, 6, 3),
                (5, 7, 2),
                (0, 0, 5),
            ]
        ]
    bound = bound_of(blocks)
    windows = PackingRepair(blocks, neighbours(blocks))
    stacked = [sum(b.size for b in blocks[i - i % 7 : i]) for i in range(len(blocks))]
    lowered = windows.lowered(stacked, bound)
    assert lowered is not None
    assert peak(blocks, lowered) == bound
    assert len(windows.solved) <= 8


def test_windows_leave_what_lives_long_where_it_is() -> None:
    long = Block(0, 400, 8)
    short = [Block(4 * i, 4 * i + 1, 16) for i in range(100)]
    blocks = [long, *short]
    windows = PackingRepair(blocks, neighbours(blocks))
    lowered = windows.lowered([0] + [24] * 100, 24)
    assert lowered == [0] + [8] * 100
    assert windows.lowered([4] + [24] * 100, 24) is None


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
