"""Places of buffers: inside the memory, never on one another, and apart where there is room."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest
from support import specs
from support.random_plans import random_module

from t10.chip import ChipSpec, load_chip
from t10.core.schedule import Buffer, ModulePlan
from t10.emit.placement import SRAM_BASE, Place, are_apart, exchanged, mirrored, places_of, used_together

CHIP = load_chip("test-16")
GRAPHS = (
    specs.mlp_graph(24, (64, 96, 32)),
    specs.softmax_graph(32, 48),
    specs.layer_norm_graph(16, 96),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
)


def modules() -> list[ModulePlan]:
    return [random_module(Random(seed), graph, CHIP) for graph in GRAPHS for seed in range(4)]


def tight(module: ModulePlan) -> ChipSpec:
    return CHIP.model_copy(update={"sram_bytes": module.peak_bytes + 16})


def live_together(one: Buffer, other: Buffer) -> bool:
    return one.first_moment <= other.last_moment and other.first_moment <= one.last_moment


def n_shared(module: ModulePlan, places: dict[str, Place]) -> int:
    """Return how many partners, alive together, share memory elements."""
    buffers = {buffer.name: buffer for buffer in module.buffers}
    pairs = {
        frozenset(pair)
        for names in (*used_together(module), *exchanged(module))
        for pair in combinations(sorted({name for name in names if name in buffers}), 2)
    }
    return sum(
        not are_apart(places[one], places[other])
        for one, other in map(sorted, pairs)
        if live_together(buffers[one], buffers[other]) and places[one] != places[other]
    )


@pytest.mark.parametrize("is_tight", [False, True])
def test_buffers_lie_in_the_memory_and_never_on_one_another(is_tight: bool) -> None:
    for module in modules():
        chip = tight(module) if is_tight else CHIP
        places = places_of(module, chip)
        end = SRAM_BASE + chip.sram_bytes
        for buffer in module.buffers:
            place = places[buffer.name]
            assert SRAM_BASE + chip.reserved_bytes <= place.address_bytes
            assert place.address_bytes + buffer.size_bytes <= place.end_bytes <= end
        for one, other in combinations(module.buffers, 2):
            first, second = places[one.name], places[other.name]
            is_taken_over = one.address_bytes == other.address_bytes and one.size_bytes == other.size_bytes
            if live_together(one, other) and not (is_taken_over and first == second):
                assert first.end_bytes <= second.address_bytes or second.end_bytes <= first.address_bytes


def test_with_room_no_partners_share_a_memory_element() -> None:
    assert [n_shared(module, places_of(module, CHIP)) for module in modules()] == [0] * len(modules())


def test_without_room_no_more_partners_share_elements_than_as_the_planner_packed_them() -> None:
    for module in modules():
        chip = tight(module)
        start = mirrored(module.buffers, chip)
        assert n_shared(module, places_of(module, chip)) <= n_shared(module, start)
