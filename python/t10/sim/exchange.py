"""Exchange of arbitrary pattern: cores take named elements from wherever they lie, and what crosses cores is counted.

Who takes from whom is defined by `core.movement` (`home_tables`, `copy_choice`). Here it happens, on the cores' bytes:
every element has a position, its number in the memories of all cores laid end to end, and destination cores are served
in groups that keep the index arrays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Array, Bools, Ints
from t10.core.loads import phase_loads
from t10.core.movement import (
    NO_LOADS,
    ElementMap,
    Pricing,
    Traffic,
    copy_choice,
    fill_runs,
    home_tables,
    take_runs,
)
from t10.sim.memory import CoreMemory
from t10.sim.partition import core_chunks
from t10.sim.traps import trap

CHUNK_SLOTS = 1 << 22
NOWHERE = -1
UNWRITTEN = -2


@dataclass(frozen=True, slots=True)
class Source:
    """A value that elements are taken from: its name, its buffer, what lies in it, and its number of elements."""

    value: str
    buffer: str
    lies: ElementMap
    n_elements: int


@dataclass(frozen=True, slots=True)
class _Directory:
    """Where every element of all sources lies, copy after copy, source after source.

    `positions` has one entry per element and copy: its position, or NOWHERE, or UNWRITTEN. `first_id` numbers the
    sources' elements laid end to end; element `id` of source s has entry `id + shift[s][core]` for core `core`.
    """

    positions: Array
    first_id: tuple[int, ...]
    shift: tuple[Ints, ...]
    row: int


def gather(
    memory: CoreMemory,
    sources: list[Source],
    wanted: Array,
    renaming: Array | None,
    constants: tuple[float | int | bool, ...],
    out: Array,
    pricing: Pricing | None = None,
) -> Traffic:
    """Fill `out` (cores, slots) with the elements that `wanted` names, and return what moved.

    `wanted` numbers elements of a value, -1 for slots that take nothing; `renaming` says which element of the sources
    (laid end to end) each of them is, -1 - k for constant k; None where they are the same. Loads are counted where
    `pricing` is given. Raises `SimTrap` where an element lies on no core or was never written.
    """
    directory = _directory(memory, sources, out.dtype, len(wanted))
    flat = memory.flat(out.dtype)
    taken = np.zeros(len(directory.positions), np.bool_)
    received: Ints = np.zeros(len(wanted), np.int64)
    fragments = 0
    runs: list[NDArray[np.int32]] = []
    fills: list[NDArray[np.int32]] = []
    for cores in core_chunks(len(wanted), wanted.shape[1], CHUNK_SLOTS):
        named = wanted[cores]
        ids = named if renaming is None else renaming[np.maximum(named, 0)]
        absent = (named < 0) | (ids < 0)
        partial = bool(absent.any())
        entries = _entries(directory, ids, cores)
        if partial:
            entries = np.where(absent, 0, entries)
        positions = directory.positions[entries] if len(directory.positions) else np.zeros_like(entries)
        _check(positions, absent if partial else None, ids, cores, sources, directory)
        out[cores] = flat[positions]
        for number, value in enumerate(constants):
            out[cores][(ids == -1 - number) & (named >= 0)] = value
        own: Ints = np.arange(cores.start, cores.stop, dtype=np.int64)[:, None] * directory.row
        remote = (positions < own) | (positions >= own + directory.row)
        if partial:
            remote &= ~absent
        received[cores] = remote.sum(axis=1)
        taken[entries[remote]] = True
        fragments = max(fragments, _fragments(directory, ids, positions, remote))
        if pricing is not None:
            runs.append(_runs(directory, ids, positions, ~absent, cores.start))
            fills.append(fill_runs(pricing.filled(named, ids), cores.start))
    sent = np.bincount(directory.positions[taken] // directory.row, minlength=1)
    copied = wanted.shape[1] - int(received.min(initial=wanted.shape[1]))
    loads = NO_LOADS
    if pricing is not None:
        n_cores, took, filled = memory.n_cores, np.concatenate(runs), np.concatenate(fills)
        loads = phase_loads(took, filled, n_cores, pricing.item_bytes, pricing.rates, pricing.places)
    return Traffic(
        int(received.max(initial=0)), int(sent.max()), fragments, int(received.sum()), copied, loads
    )


def _directory(memory: CoreMemory, sources: list[Source], dtype: np.dtype[Any], n_cores: int) -> _Directory:
    """Return where everything lies."""
    row = memory.row_bytes // dtype.itemsize
    kind = np.int32 if memory.n_cores * row < np.iinfo(np.int32).max else np.int64
    tables: list[Array] = []
    first_id: list[int] = []
    shift: list[Ints] = []
    n_ids = n_entries = 0
    for source in sources:
        core, slot = home_tables(source.lies, source.n_elements)
        base = memory.address_bytes(source.buffer) // dtype.itemsize
        memory.bytes_as(source.buffer, dtype, *source.lies.elements.shape)
        table = core.astype(kind) * kind(row) + (slot + kind(base)).astype(kind)
        table[core < 0] = NOWHERE
        written = memory.written(source.buffer)[: len(source.lies.elements)]
        if (written < source.lies.elements.shape[1] * dtype.itemsize).any():
            table[(core >= 0) & ((slot + 1) * dtype.itemsize > written[np.maximum(core, 0)])] = UNWRITTEN
        tables.append(table.reshape(-1))
        first_id.append(n_ids)
        shift.append(copy_choice(source.lies, n_cores) * source.n_elements + (n_entries - n_ids))
        n_ids += source.n_elements
        n_entries += table.size
    positions = np.concatenate(tables) if tables else np.zeros(0, kind)
    return _Directory(positions, tuple(first_id), tuple(shift), row)


def _entries(directory: _Directory, ids: Array, cores: slice) -> Array:
    """Return the directory's entry of every element; of constants and holes anything."""
    entries = ids
    before: Ints = np.zeros(1, np.int64)
    for first, shift in zip(directory.first_id, directory.shift, strict=True):
        change = (shift[cores] - before)[:, None]
        before = shift[cores]
        if change.any():
            entries = entries + (change if first == 0 else np.where(ids >= first, change, 0))
    return entries


def _check(
    positions: Array,
    absent: Array | None,
    ids: Array,
    cores: slice,
    sources: list[Source],
    directory: _Directory,
) -> None:
    """Raise a trap where an element that is needed lies nowhere, or where nobody wrote it."""
    bad = positions < 0
    if absent is not None:
        bad &= ~absent
    if not bad.any():
        return
    row, column = (int(i[0]) for i in np.nonzero(bad))
    number = int(np.searchsorted(np.array(directory.first_id), int(ids[row, column]), side="right")) - 1
    source = sources[number]
    element = int(ids[row, column]) - directory.first_id[number]
    core = row + int(cores.start)
    if int(positions[row, column]) == UNWRITTEN:
        raise trap(
            f"read of poisoned bytes in buffer {source.buffer}: element {element} of {source.value}",
            core=core,
        )
    raise trap(f"element {element} of {source.value} lies on no core", core=core)


def _runs(
    directory: _Directory, ids: Array, positions: Array, takes: Bools, first_core: int
) -> NDArray[np.int32]:
    """Return what cores take, in runs; buffers begin where words do, so slots may count from the memory's begin."""
    source = np.zeros(ids.shape, np.int8)
    for first in directory.first_id[1:]:
        source += ids >= first
    core, slot = np.divmod(positions, directory.row)
    return take_runs(source, core, slot, takes, first_core)


def _fragments(directory: _Directory, ids: Array, positions: Array, remote: Array) -> int:
    """Return the most runs of any core: elements that follow each other at the sender and here are one fragment."""
    joined = remote[:, 1:] & remote[:, :-1] & (positions[:, 1:] - positions[:, :-1] == 1)
    for first in directory.first_id[1:]:
        joined &= (ids[:, 1:] >= first) == (ids[:, :-1] >= first)
    return int((remote.sum(axis=1) - joined.sum(axis=1)).max(initial=0))
