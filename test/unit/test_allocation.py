"""Addresses: what lives at the same time never overlaps, and space is used again."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.packing import allocate, bound_bytes, peak_bytes

from t10.plan.memory.allocation import Request, live_bytes

REQUESTS = st.lists(st.tuples(st.integers(1, 500), st.integers(0, 9), st.integers(0, 5)), max_size=25)


@given(REQUESTS)
def test_live_buffers_never_overlap_and_are_aligned(drawn: list[tuple[int, int, int]]) -> None:
    requests = [
        Request(f"b{i}", size, first, first + length) for i, (size, first, length) in enumerate(drawn)
    ]
    buffers = allocate(requests, 64).buffers
    assert [b.name for b in buffers] == [r.name for r in requests]
    for i, a in enumerate(buffers):
        assert a.address_bytes >= 64
        assert a.address_bytes % 8 == 0
        assert a.size_bytes >= requests[i].size_bytes
        for b in buffers[:i]:
            if a.first_moment <= b.last_moment and b.first_moment <= a.last_moment:
                below = a.address_bytes + a.size_bytes <= b.address_bytes
                assert below or b.address_bytes + b.size_bytes <= a.address_bytes


@given(REQUESTS)
def test_peak_is_the_highest_end(drawn: list[tuple[int, int, int]]) -> None:
    requests = [
        Request(f"b{i}", size, first, first + length) for i, (size, first, length) in enumerate(drawn)
    ]
    packing = allocate(requests, 64)
    assert packing.peak_bytes == max([64, *(b.address_bytes + b.size_bytes for b in packing.buffers)])
    assert packing.peak_bytes == peak_bytes(packing.buffers, 64)
    assert packing.bound_bytes == bound_bytes(requests, 64) <= packing.peak_bytes


def test_buffers_of_different_steps_share_addresses() -> None:
    buffers = allocate([Request("a", 100, 0, 0), Request("b", 100, 1, 1)], 0).buffers
    assert buffers[0].address_bytes == buffers[1].address_bytes == 0


def test_what_lives_longest_lies_lowest() -> None:
    short, long = allocate([Request("short", 800, 1, 1), Request("long", 8, 0, 5)], 0).buffers
    assert (long.address_bytes, short.address_bytes) == (0, 16)


def test_bytes_live_from_the_first_moment_to_the_last_and_what_is_taken_over_counts_once() -> None:
    # The second begins in the moment in which the first ends, on its bytes.
    requests = [Request("x", 16, 1, 3), Request("y", 16, 3, 4, takes_over="x"), Request("z", 20, 3, 3)]
    assert live_bytes(requests).tolist() == [0, 16, 16, 48, 16]
    assert live_bytes([replace(requests[1], takes_over=""), requests[0]]).tolist() == [0, 16, 16, 32, 16]
