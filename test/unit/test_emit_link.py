"""Vertex words in memory: compute sets with the same words on the same tiles share them, others do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import specs
from support.simulation import chip_of, plan_of, scheduled

from t10.codelets.image import SUPERVISOR_STACK_BYTES, stack_bytes
from t10.core.codelet import Codelet
from t10.core.device import ComputeSet, Reference, VertexGroup
from t10.cost import IpuCostModel
from t10.emit.builder import Builder
from t10.emit.device_interface import DeviceInterface
from t10.emit.link import check_fits, vertex_state
from t10.emit.lower import lower
from t10.errors import InfeasiblePlanError

FIRST = 0x4D000


def state_of(*groups: tuple[VertexGroup, ...], **addresses: int) -> tuple[list[int], int]:
    """Return where the words of compute sets of these groups lie, counted from `FIRST`, and how long they are."""
    sets = {str(i): ComputeSet(str(i), "op", "sub_task", each, 0) for i, each in enumerate(groups)}
    placed, end = vertex_state(sets, addresses, FIRST)
    return [each.groups[0].state_address_bytes - FIRST for each in placed], end - FIRST


def group(variable: str, offset: int | tuple[int, ...] = 0, tiles: tuple[int, ...] = (0, 1)) -> VertexGroup:
    return VertexGroup("codelet", tiles, (Reference(variable, offset), 7), 0)


def test_equal_words_on_equal_tiles_are_stored_once() -> None:
    assert state_of((group("a"),), (group("b"),), a=64, b=64) == ([0, 0], 16)


def test_another_address_offset_or_tile_is_another_word() -> None:
    assert state_of((group("a"),), (group("b"),), a=64, b=80) == ([0, 16], 32)
    assert state_of((group("a"),), (group("a", (0, 8)),), a=64) == ([0, 16], 32)
    assert state_of((group("a"),), (group("a", tiles=(1, 2)),), a=64) == ([0, 16], 32)


def test_groups_of_one_compute_set_lie_on_the_same_bytes() -> None:
    assert state_of((group("a"), group("a", 4, (2, 3))), (group("b"),), a=64, b=80) == ([0, 16], 32)


def test_the_next_words_begin_behind_the_longest_of_a_set() -> None:
    longer = VertexGroup("codelet", (2, 3), (Reference("a", 0), 7, 7, 7, 7, 7), 0)
    assert state_of((group("a"), longer), (group("b"),), a=64, b=80) == ([0, 32], 48)


def test_every_worker_has_a_stack_of_its_own() -> None:
    worker = Codelet("Worker", "multi", (), "", "", "", stack_bytes=32)
    supervisor = Codelet("Supervisor", "supervisor", (), "", "", "", stack_bytes=48)
    assert stack_bytes((worker, supervisor)) == SUPERVISOR_STACK_BYTES + 48 + 6 * 32


def test_code_is_where_it_can_be_fetched_and_below_the_data() -> None:
    chip, spec = chip_of(2), specs.matmul(4, 4, 4, "f32")
    made = scheduled(specs.one_operator_graph(spec), (plan_of(spec, (2, 1, 1)),), chip)
    program, tile = lower(made, chip, IpuCostModel(chip)), chip.tile_memory
    check_fits(program, tile)
    above = replace(program.memory, state=tile.interleaved_base + 16)
    with pytest.raises(InfeasiblePlanError, match="instructions can be fetched from"):
        check_fits(replace(program, memory=above), tile)
    over = replace(program.memory, free=program.memory.data + 16)
    with pytest.raises(InfeasiblePlanError, match="code, vertex state, stacks and exchanges take"):
        check_fits(replace(program, memory=over), tile)


def test_what_is_not_placed_yet_is_told_apart_by_its_name() -> None:
    assert state_of((group("scratch"),), (group("scratch"),), (group("scratch", 8),)) == ([0, 0, 16], 32)


def test_a_backend_implements_three_operations_and_the_ipus_builder_does() -> None:
    assert DeviceInterface.__abstractmethods__ == {"variable", "execute", "exchange"}
    assert issubclass(Builder, DeviceInterface)
    assert not Builder.__abstractmethods__
