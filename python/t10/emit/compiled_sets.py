"""Compute sets compiled once: equal layers run equal nests, whose operands only have other names and lie elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from t10.core.device import Reference, VertexGroup
from t10.core.tile import WIDE_BYTES
from t10.core.tile import TileRange
from t10.emit.vertices import VertexNest, Vertices, Work, apart_pairs, vertices

PLACEHOLDER = "operand "


@dataclass(slots=True)
class CompiledSets:
    """Vertices by what they are compiled from; their words point at operands by number (`named` says at which)."""

    _made: dict[object, tuple[int, Vertices]] = field(default_factory=dict[object, tuple[int, Vertices]])
    _number_by_groups: dict[tuple[VertexGroup, ...], int] = field(
        default_factory=dict[tuple[VertexGroup, ...], int]
    )

    def of(self, nest: VertexNest, work: Work, places: Mapping[str, TileRange]) -> tuple[int, Vertices]:
        """Return a number that equal groups of vertices share, and the vertices."""
        lie = [places[name] for name, _ in nest.operands]
        unnamed = replace(
            nest, operands=tuple((f"{PLACEHOLDER}{n}", o) for n, (_, o) in enumerate(nest.operands))
        )
        key = (
            unnamed,
            # All that tasks know of where operands lie.
            tuple((place.address_bytes % WIDE_BYTES, place.is_interleaved) for place in lie),
            apart_pairs(lie),
            _content(work),
        )
        found = self._made.get(key)
        if found is None:
            made = vertices(unnamed, work, {f"{PLACEHOLDER}{n}": place for n, place in enumerate(lie)})
            number = self._number_by_groups.setdefault(made.groups, len(self._number_by_groups))
            found = self._made[key] = (number, made)
        return found


def named(group: VertexGroup, names: tuple[str, ...]) -> VertexGroup:
    """Return a group whose words point at variables by name instead of at operands by number."""
    return replace(
        group,
        words=tuple(
            replace(word, variable=names[int(word.variable.removeprefix(PLACEHOLDER))])
            if isinstance(word, Reference) and word.variable.startswith(PLACEHOLDER)
            else word
            for word in group.words
        ),
    )


def _content(work: Work) -> tuple[object, ...]:
    """Return all numbers of a work, to compare."""
    arrays = (work.tiles, work.extents, work.offsets, work.initial)
    return (
        *((array.shape, array.tobytes()) for array in arrays),
        None if work.origin is None else work.origin.tobytes(),
    )
