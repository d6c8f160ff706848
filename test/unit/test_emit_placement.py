"""Where buffers lie on a tile: never on each other, apart where an operator uses them at once, away from the code."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pytest
from support.random_cases import Case, planned_case, random_case
from t10.emit.placement import (
    OVERREAD_BYTES,
    TileRange,
    are_apart,
    exchanged,
    mirrored,
    places_of,
    used_together,
)

from t10.core.schedule import Buffer
from t10.core.tile import IPU_MEMORY

SEEDS = range(24)


def are_alive_together(one: Buffer, other: Buffer) -> bool:
    return one.first_moment <= other.last_moment and other.first_moment <= one.last_moment


def takes_over(one: Buffer, other: Buffer) -> bool:
    """Return whether one buffer begins on the other's bytes in the phase in which that ends."""
    same = (one.address_bytes, one.size_bytes) == (other.address_bytes, other.size_bytes)
    return same and (one.first_moment == other.last_moment or other.first_moment == one.last_moment)


def check(case: Case, places: dict[str, TileRange], over_read_bytes: int = 0) -> None:
    low, high = (
        IPU_MEMORY.base + case.chip.reserved_bytes,
        IPU_MEMORY.base + case.chip.sram_bytes - over_read_bytes,
    )
    assert set(places) == {buffer.name for buffer in case.plan.buffers}
    for buffer in case.plan.buffers:
        place = places[buffer.name]
        assert place.size_bytes >= buffer.size_bytes
        assert low <= place.address_bytes
        assert place.end_bytes <= high
        assert place.address_bytes % 8 == 0
    for one, other in combinations(case.plan.buffers, 2):
        if not (one.size_bytes and other.size_bytes and are_alive_together(one, other)):
            continue
        first, second = places[one.name], places[other.name]
        if takes_over(one, other):
            assert first == second
        else:
            assert first.end_bytes <= second.address_bytes or second.end_bytes <= first.address_bytes


@pytest.mark.parametrize("seed", SEEDS)
def test_buffers_that_live_together_lie_side_by_side(seed: int) -> None:
    for case in (random_case(seed), planned_case(seed)):
        check(case, places_of(case.plan, case.chip), OVERREAD_BYTES)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_planners_arrangement_holds_upside_down(seed: int) -> None:
    for case in (random_case(seed), planned_case(seed)):
        check(case, mirrored(case.plan.buffers, case.chip))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_small_operator_uses_at_once_meets_in_no_memory_element(seed: int) -> None:
    """There is room: each lies in a pair of elements of its own, in the interleaved region."""
    case = random_case(seed)
    places = places_of(case.plan, case.chip)
    for names in used_together(case.plan):
        for one, other in combinations(dict.fromkeys(places[name] for name in names if name in places), 2):
            assert are_apart(one, other)
            assert one.is_interleaved
            assert other.is_interleaved


@pytest.mark.parametrize("seed", SEEDS)
def test_small_operators_receive_where_they_do_not_send_from(seed: int) -> None:
    case = random_case(seed)
    places = places_of(case.plan, case.chip)
    for one, other in exchanged(case.plan):
        if one in places and other in places and places[one] != places[other]:
            assert are_apart(places[one], places[other])


@pytest.mark.parametrize("seed", SEEDS)
def test_without_room_to_spare_the_planners_arrangement_is_only_made_better(seed: int) -> None:
    for case in (random_case(seed), planned_case(seed)):
        chip = case.chip.model_copy(update={"sram_bytes": -(-case.plan.peak_bytes // 8) * 8})
        tight = replace(case, chip=chip)
        places = places_of(case.plan, chip)
        check(tight, places)
        assert n_shared(tight, places) <= n_shared(tight, mirrored(case.plan.buffers, chip))


def n_shared(case: Case, places: dict[str, TileRange]) -> int:
    """Return how many pairs of buffers that are used at once share memory elements."""
    buffers = {buffer.name: buffer for buffer in case.plan.buffers}
    pairs = {
        frozenset(pair)
        for names in used_together(case.plan)
        for pair in combinations(sorted({name for name in names if name in buffers}), 2)
    }
    return sum(
        not are_apart(places[one], places[other])
        for one, other in map(sorted, pairs)
        if are_alive_together(buffers[one], buffers[other])
    )


def place(address: int, size: int) -> TileRange:
    return TileRange(address, size, IPU_MEMORY)


def test_elements_are_16_kib_and_pairs_of_them_in_the_interleaved_region() -> None:
    assert place(0x4C000, 8).elements == {0x4C000}
    assert place(0x4FFF8, 16).elements == {0x4C000, 0x50000}
    assert place(0x84000, 8).elements == place(0x80000, 8).elements == {0x80000}
    assert place(0x7FFF8, 0x8010).elements == {0x7C000, 0x80000, 0x88000}
    assert not are_apart(place(0x80000, 64), place(0x84000, 64))
    assert are_apart(place(0x80000, 64), place(0x88000, 64))


def test_what_loops_load_ahead_counts_with_a_buffer() -> None:
    """A vertex of ResNet-18 read behind its operand, into the element of what it loaded in the same instruction."""
    other = place(0x90050, 64)
    assert not are_apart(place(0x90000 - 64, 64), other)
    assert not are_apart(place(0x90000 - 120, 64), other)
    assert are_apart(place(0x90000 - 128, 64), other)
