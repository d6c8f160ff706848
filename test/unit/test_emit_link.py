"""Vertex words in memory: compute sets with the same words on the same tiles share them, others do not."""

from __future__ import annotations

from t10.core.device import ComputeSet, Reference, VertexGroup
from t10.emit.builder import Builder
from t10.emit.device_interface import DeviceInterface
from t10.emit.link import vertex_state

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


def test_what_is_not_placed_yet_is_told_apart_by_its_name() -> None:
    assert state_of((group("scratch"),), (group("scratch"),), (group("scratch", 8),)) == ([0, 0, 16], 32)


def test_a_backend_implements_three_operations_and_the_ipus_builder_does() -> None:
    assert DeviceInterface.__abstractmethods__ == {"variable", "execute", "exchange"}
    assert issubclass(Builder, DeviceInterface)
    assert not Builder.__abstractmethods__
