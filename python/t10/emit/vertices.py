"""Vertices of a compute set: one task per core, compiled, and equal codelets gathered into groups."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from t10.codelets.compile import compile_task
from t10.codelets.in_place import in_place
from t10.core.arrays import Bools, Ints
from t10.core.codelet import Codelet, Compiled, Pointer, Scratch, by_name
from t10.core.device import PerTile, Reference, VertexGroup
from t10.core.expression import AxisSizes, Combine, Selector
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import alignment_bytes, named_axes, simplified
from t10.core.tile import TileRange, are_apart

SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class VertexNest:
    """A loop nest that many cores run: body and operands (inputs, then the output) as (variable, strides)."""

    body: ScalarFunction
    combine: Combine
    reduction_axes: AxisSizes
    operands: tuple[tuple[str, TaskOperand], ...]
    selectors: tuple[Selector, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What cores `tiles` (n,) do in a nest: `extents` (n, axes), byte offsets (n, operands), whether they begin.

    `origin` (n, axes) is the global index of the first point; None where nothing depends on it.
    """

    tiles: Ints
    extents: Ints
    offsets: Ints
    initial: Bools
    origin: Ints | None = None


def renamed(
    made: Iterable[tuple[VertexNest, Work]], names: tuple[str, ...]
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the same nests on variables `names`, in the order of their operands."""
    for nest, work in made:
        operands = tuple((name, operand) for name, (_, operand) in zip(names, nest.operands, strict=True))
        yield replace(nest, operands=operands), work


@dataclass(frozen=True, slots=True)
class Lie:
    """How operands lie, by number: which in the interleaved region, which pairs in memory elements apart."""

    interleaved: frozenset[int]
    apart: frozenset[tuple[int, int]]

    @classmethod
    def best(cls, n_operands: int) -> Lie:
        """Return that everything is granted."""
        return cls(frozenset(range(n_operands)), frozenset(combinations(range(n_operands), 2)))

    @classmethod
    def of(cls, places: Sequence[TileRange]) -> Lie:
        """Return how operands lie in these places."""
        pairs = combinations(range(len(places)), 2)
        return cls(
            frozenset(n for n, place in enumerate(places) if place.is_interleaved),
            frozenset((i, j) for i, j in pairs if are_apart(places[i], places[j])),
        )


@dataclass(frozen=True, slots=True)
class Vertices:
    """Groups of vertices (no state addresses yet), the codelets they run and the most scratch bytes any needs."""

    groups: tuple[VertexGroup, ...]
    codelets: tuple[Codelet, ...]
    scratch_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """Cores that run one compiled task: `offsets` (n, operands)."""

    tiles: Ints
    offsets: Ints
    compiled: Compiled


def vertices(nest: VertexNest, work: Work, lie: Lie) -> Vertices:
    """Return one vertex per core of `work`; raises `UnsupportedOpError` for what no codelet computes."""
    batches: dict[str, list[_Batch]] = {}
    for chosen, task in tasks(nest, work, lie):
        offsets = work.offsets[chosen]
        compiled = in_place(compile_task(task), _at_output(nest, offsets), len(nest.operands) - 1)
        batch = _Batch(work.tiles[chosen], offsets, compiled)
        batches.setdefault(compiled.codelet.name, []).append(batch)
    groups = tuple(_group(nest, batches[name]) for name in sorted(batches))
    every = [batch.compiled for group in batches.values() for batch in group]
    codelets = by_name(compiled.codelet for compiled in every)
    scratch = max((compiled.scratch_bytes for compiled in every), default=0)
    return Vertices(groups, tuple(codelets[name] for name in sorted(codelets)), scratch)


def _at_output(nest: VertexNest, offsets: Ints) -> tuple[int, ...]:
    """Return the numbers of the inputs that begin where the output does, on all cores of `offsets` (n, operands)."""
    variable, _ = nest.operands[-1]
    return tuple(
        number
        for number, (name, _) in enumerate(nest.operands[:-1])
        if name == variable and (offsets[:, number] == offsets[:, -1]).all()
    )


def tasks(nest: VertexNest, work: Work, lie: Lie) -> Iterator[tuple[Ints, Task]]:
    """Yield every different task of `work`, and the rows of `work` that do it."""
    rows = [work.extents, work.initial[:, None].astype(np.int64)]
    if work.origin is not None:
        # Where a task begins matters along the axes that its functions name.
        named = named_axes((nest.body, *(s.index for s in nest.selectors)), nest.selectors)
        matters = np.array([axis in named for axis in range(work.origin.shape[1])], np.bool_)
        rows.append(np.where(matters, work.origin, 0))
    kinds, of_kind = np.unique(np.column_stack(rows), axis=0, return_inverse=True)
    of_kind = of_kind.reshape(-1)
    n_axes = work.extents.shape[1]
    for number, kind in enumerate(kinds.tolist()):
        chosen = np.flatnonzero(of_kind == number)
        origin = tuple(kind[n_axes + 1 :])
        task = _task(nest, tuple(kind[:n_axes]), bool(kind[n_axes]), origin, work.offsets[chosen], lie)
        yield chosen, simplified(task)


def _task(
    nest: VertexNest,
    extents: AxisSizes,
    initial: bool,
    origin: AxisSizes,
    offsets: Ints,
    lie: Lie,
) -> Task:
    """Return the task of a group of cores; its operands are aligned as the worst of theirs."""
    operands = [
        replace(
            operand,
            align_bytes=alignment_bytes(operand.dtype, tuple(np.unique(column).tolist())),
            is_interleaved=number in lie.interleaved,
        )
        for number, ((_, operand), column) in enumerate(zip(nest.operands, offsets.T, strict=True))
    ]
    return Task(
        extents=extents,
        inputs=tuple(operands[:-1]),
        output=operands[-1],
        combine=nest.combine,
        body=nest.body,
        reduction_axes=nest.reduction_axes,
        initial=initial,
        selectors=nest.selectors,
        origin=origin,
        apart=lie.apart,
    )


def _group(nest: VertexNest, batches: list[_Batch]) -> VertexGroup:
    """Return the vertices of all cores that run one codelet."""
    tiles = np.concatenate([batch.tiles for batch in batches])
    order = np.argsort(tiles, kind="stable")
    words: list[PerTile | Reference] = []
    for number in range(len(batches[0].compiled.words)):
        columns = [_column(batch, number) for batch in batches]
        values = _per_tile(np.concatenate(columns)[order])
        word = batches[0].compiled.words[number]
        if isinstance(word, Pointer):
            words.append(Reference(nest.operands[word.operand][0], values))
        elif isinstance(word, Scratch):
            words.append(Reference(SCRATCH, values))
        else:
            words.append(values)
    return VertexGroup(batches[0].compiled.codelet.name, tuple(tiles[order].tolist()), tuple(words), 0)


def _column(batch: _Batch, number: int) -> Ints:
    """Return the value of one word on every core of a batch; of a pointer the offset into its variable."""
    word = batch.compiled.words[number]
    if isinstance(word, Pointer):
        return batch.offsets[:, word.operand] + word.offset_bytes
    if isinstance(word, Scratch):
        value = word.offset_bytes
    elif isinstance(word, float):
        value = struct.unpack("<i", struct.pack("<f", word))[0]
    else:
        value = int(word)
    return np.full(len(batch.tiles), value, np.int64)


def _per_tile(values: Ints) -> PerTile:
    """Return one number where all are equal."""
    return int(values[0]) if (values == values[0]).all() else tuple(values.tolist())
