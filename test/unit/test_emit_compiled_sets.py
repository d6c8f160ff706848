"""Compute sets compiled once: equal nests elsewhere share them where their tasks know no difference."""

from __future__ import annotations

import numpy as np

from t10.core.device import Reference
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.core.tile import IPU_MEMORY, TileRange
from t10.emit.compiled_sets import CompiledSets, named
from t10.emit.vertices import VertexNest, Work, vertices

WORK = Work(
    np.arange(2),
    np.array([[8], [8]], np.int64),
    np.array([[0, 0], [16, 0]], np.int64),
    np.ones(2, np.bool_),
)


def copying(source: str, target: str) -> VertexNest:
    """Return a nest that copies f16 elements."""
    return VertexNest(
        identity(), "none", (), ((source, TaskOperand("f16", (1,))), (target, TaskOperand("f16", (1,))))
    )


def places(**addresses: int) -> dict[str, TileRange]:
    return {name: TileRange(address, 64, IPU_MEMORY) for name, address in addresses.items()}


def test_what_is_named_is_what_would_have_been_compiled() -> None:
    lie = places(a=IPU_MEMORY.base, b=IPU_MEMORY.interleaved_base)
    _, made = CompiledSets().of(copying("a", "b"), WORK, lie)
    assert (
        tuple(named(group, ("a", "b")) for group in made.groups)
        == vertices(copying("a", "b"), WORK, lie).groups
    )


def test_equal_nests_on_other_variables_are_compiled_once() -> None:
    sets = CompiledSets()
    number, made = sets.of(copying("a", "b"), WORK, places(a=IPU_MEMORY.base, b=IPU_MEMORY.interleaved_base))
    other = places(c=IPU_MEMORY.base + 32, d=IPU_MEMORY.interleaved_base + 0x8000)
    assert sets.of(copying("c", "d"), WORK, other) == (number, made)
    references = [w for g in made.groups for w in named(g, ("c", "d")).words if isinstance(w, Reference)]
    assert {word.variable for word in references} == {"c", "d"}


def test_another_alignment_or_element_is_another_task() -> None:
    sets = CompiledSets()
    apart = sets.of(copying("a", "b"), WORK, places(a=IPU_MEMORY.base, b=IPU_MEMORY.interleaved_base))[1]
    together = sets.of(copying("a", "b"), WORK, places(a=IPU_MEMORY.base, b=IPU_MEMORY.base + 64))[1]
    crooked = sets.of(copying("a", "b"), WORK, places(a=IPU_MEMORY.base + 2, b=IPU_MEMORY.interleaved_base))[
        1
    ]
    assert len({id(apart), id(together), id(crooked)}) == 3


def test_where_nothing_depends_on_the_position_equal_groups_share_a_number() -> None:
    sets = CompiledSets()
    lie = places(a=IPU_MEMORY.base, b=IPU_MEMORY.interleaved_base)
    first, _ = sets.of(copying("a", "b"), WORK, lie)
    moved = Work(WORK.tiles, WORK.extents, WORK.offsets, WORK.initial, np.array([[0], [8]], np.int64))
    assert sets.of(copying("a", "b"), moved, lie)[0] == first
