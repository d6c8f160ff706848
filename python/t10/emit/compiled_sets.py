"""Compute sets compiled once: equal layers run equal nests, whose operands only have other names and lie elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from t10.core.device import Reference, VertexGroup
from t10.core.vertex_nest import Lie, VertexNest, Work
from t10.emit.vertices import Vertices, vertices

PLACEHOLDER = "operand "


@dataclass(slots=True)
class CompiledSets:
    """Vertices by what they are compiled from; their words point at operands by number (`named` says at which)."""

    _number_by_content: dict[object, int] = field(default_factory=dict[object, int])
    _content: list[tuple[VertexNest, Work]] = field(default_factory=list[tuple[VertexNest, Work]])
    _made: dict[tuple[int, Lie], tuple[int, Vertices]] = field(
        default_factory=dict[tuple[int, Lie], tuple[int, Vertices]]
    )
    _number_by_groups: dict[tuple[VertexGroup, ...], int] = field(
        default_factory=dict[tuple[VertexGroup, ...], int]
    )

    def number_of(self, nest: VertexNest, work: Work) -> int:
        """Return a number that nests share which are equal but for the names of their operands, with equal work.

        An input in the variable of the output has the output's number.
        """
        names = [name for name, _ in nest.operands]
        numbers = [len(names) - 1 if name == names[-1] else n for n, name in enumerate(names)]
        unnamed = replace(
            nest,
            operands=tuple(
                (f"{PLACEHOLDER}{n}", o) for n, (_, o) in zip(numbers, nest.operands, strict=True)
            ),
        )
        number = self._number_by_content.setdefault((unnamed, _content(work)), len(self._content))
        if number == len(self._content):
            self._content.append((unnamed, work))
        return number

    def content(self, number: int) -> tuple[VertexNest, Work]:
        """Return the nest of a number and what cores do in it."""
        return self._content[number]

    def of(self, number: int, lie: Lie) -> tuple[int, Vertices]:
        """Return the vertices of a nest whose operands lie so, and a number that equal groups of vertices share."""
        found = self._made.get((number, lie))
        if found is None:
            made = vertices(*self._content[number], lie)
            groups = self._number_by_groups.setdefault(made.groups, len(self._number_by_groups))
            found = self._made[number, lie] = (groups, made)
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
