"""Compute sets compiled once: equal nests elsewhere share them where their tasks know no difference."""

from __future__ import annotations

import numpy as np

from t10.core.device import Reference
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.core.tile import IPU_MEMORY, TileRange
from t10.core.vertex_nest import Lie, VertexNest, Work
from t10.emit.compiled_sets import CompiledSets, named
from t10.emit.vertices import vertices

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


def lying(first: int, second: int) -> Lie:
    """Return how two operands of 64 bytes lie at these addresses."""
    return Lie.of([TileRange(address, 64, IPU_MEMORY) for address in (first, second)])


APART = lying(IPU_MEMORY.base, IPU_MEMORY.interleaved_base)


def test_what_is_named_is_what_would_have_been_compiled() -> None:
    sets = CompiledSets()
    _, made = sets.of(sets.number_of(copying("a", "b"), WORK), APART)
    due = vertices(copying("a", "b"), WORK, APART)
    assert tuple(named(group, ("a", "b")) for group in made.groups) == due.groups


def test_equal_nests_on_other_variables_are_compiled_once() -> None:
    sets = CompiledSets()
    first, second = sets.number_of(copying("a", "b"), WORK), sets.number_of(copying("c", "d"), WORK)
    assert first == second
    number, made = sets.of(first, APART)
    elsewhere = lying(IPU_MEMORY.base + 32, IPU_MEMORY.interleaved_base + 0x8000)
    assert sets.of(second, elsewhere) == (number, made)
    references = [w for g in made.groups for w in named(g, ("c", "d")).words if isinstance(w, Reference)]
    assert {word.variable for word in references} == {"c", "d"}


def test_another_element_or_region_is_another_task() -> None:
    sets = CompiledSets()
    number = sets.number_of(copying("a", "b"), WORK)
    together = lying(IPU_MEMORY.base, IPU_MEMORY.base + 64)
    plain = lying(IPU_MEMORY.base, IPU_MEMORY.base + 2 * IPU_MEMORY.element_bytes)
    assert len({id(sets.of(number, lie)[1]) for lie in (APART, together, plain)}) == 3


def test_where_nothing_depends_on_the_position_equal_groups_share_a_number() -> None:
    sets = CompiledSets()
    first, _ = sets.of(sets.number_of(copying("a", "b"), WORK), APART)
    moved = Work(WORK.tiles, WORK.extents, WORK.offsets, WORK.initial, np.array([[0], [8]], np.int64))
    number = sets.number_of(copying("a", "b"), moved)
    assert sets.of(number, APART)[0] == first
