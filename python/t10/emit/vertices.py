"""Vertices of a compute set: one task per core, compiled, and equal codelets gathered into groups."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from t10.codelets.compile import compile_task
from t10.codelets.in_place import in_place
from t10.core.arrays import Ints
from t10.core.codelet import Codelet, Compiled, Pointer, Scratch, by_name
from t10.core.device import PerTile, Reference, VertexGroup
from t10.core.vertex_nest import Lie, VertexNest, Work, tasks

SCRATCH = "scratch"


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
