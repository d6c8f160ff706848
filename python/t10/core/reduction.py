"""Combining partial sums: which elements of other cores arrive where, and the additions that follow.

Members of a group are the cores that end with the same output window, ranked by core number. Reduce-scatter leaves
chunk k with the core of rank k; all-reduce leaves everything with everybody, added in the order of ranks, so that every
copy has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core import _rings, geometry
from t10.core.arrays import Ints
from t10.core.chunks import window_chunk
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.tile import WIDE_BYTES

WORD_BYTES, PAIR_BYTES = 4, 8


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Who reduces with whom: `ranks` (cores,) within a group, `members` (cores, r) the group's cores by rank."""

    ranks: Ints
    members: Ints

    @staticmethod
    def one(n_members: int) -> Groups:
        """Return one group of the first cores."""
        ranks: Ints = np.arange(n_members, dtype=np.int64)
        return Groups(ranks, np.broadcast_to(ranks, (n_members, n_members)))


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One exchange phase and the additions after it.

    Every core takes `widths` (cores,) elements from slot `first` (cores,) on of the cores `turns` ranks behind it, or
    of all in the order of ranks where it `replaces`. Part j arrives at slot `j * stride`. Every core then combines all
    parts with its own, or replaces its own by their combination.
    """

    who: Groups
    turns: range
    first: Ints
    widths: Ints
    stride: int
    replaces: bool = False

    @property
    def n_parts(self) -> int:
        """Return how many parts every core takes."""
        return len(self.turns)

    @property
    def moves(self) -> NDArray[np.int32]:
        """Return what moves, rows as `t10.core.loads.phase_loads` takes them."""
        who, n_cores = self.who, len(self.widths)
        turns: Ints = np.array(self.turns)
        ranks = (turns if self.replaces else who.ranks[:, None] + turns) % who.members.shape[1]
        sources = np.take_along_axis(who.members, np.broadcast_to(ranks, (n_cores, len(turns))), axis=1)
        cores: Ints = np.arange(n_cores, dtype=np.int64)[:, None]
        places: Ints = np.arange(len(turns), dtype=np.int64) * self.stride
        columns = np.broadcast_arrays(0, sources, self.first[:, None], cores, places, self.widths[:, None])
        return np.stack(columns, axis=-1)[self.widths > 0].reshape(-1, len(columns)).astype(np.int32)


def group_of_core(spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes) -> Ints:
    """Return a number per core that stands at `positions`: the same for cores that have the same output window."""
    starts = geometry.window_starts(plan, len(spec.inputs), positions)
    group = np.empty(plan.n_cores, np.int64)
    _rings.window_groups(geometry.coordinates(plan), starts, sorted(spec.output.axes), group)
    return group


def groups(spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes) -> Groups:
    """Return the groups of cores that have the same output window where those stand at `positions`."""
    slot, group = len(spec.inputs), group_of_core(spec, plan, positions)
    ranks = geometry.replica_ranks(spec.output, plan, slot)
    table = np.empty((int(group.max()) + 1, geometry.n_replicas(spec, plan, slot)), np.int64)
    table[group, ranks] = np.arange(len(group))
    return Groups(ranks, table[group])


def part_slots(n_slots: Any, item_bytes: int) -> Any:
    """Return how many elements parts of `n_slots` elements arrive apart: numbers, arrays, or what records formulas.

    Code adds up words that lie side by side two at a time, and of longer parts 16 bytes.
    """
    quads, pairs, words = _units(item_bytes)
    n_bytes = n_slots * item_bytes
    unit = np.where(n_bytes > PAIR_BYTES, quads, np.where(n_bytes == WORD_BYTES, words, pairs))
    return -(-n_slots // unit) * unit


def slots_at_once(room_slots: Any, item_bytes: int) -> Any:
    """Return the elements of a part for which there is room in one phase: whole 16 bytes, or 8, or 4, or one."""
    quads, pairs, words = _units(item_bytes)
    few = np.where(room_slots >= pairs, pairs, np.where(room_slots >= words, words, 1))
    return np.maximum(room_slots - room_slots % quads, few)


def _units(item_bytes: int) -> tuple[int, int, int]:
    """Return the elements in 16 bytes, in 8 and in 4; one of larger elements."""
    quads, pairs, words = (max(n // item_bytes, 1) for n in (WIDE_BYTES, PAIR_BYTES, WORD_BYTES))
    return quads, pairs, words


def scatter_rounds(who: Groups, n_slots: int, buffer_slots: int, item_bytes: int) -> Iterator[Round]:
    """Yield the phases of a reduce-scatter of `n_slots` elements per core through a buffer of `buffer_slots`.

    In round j the core of rank k takes chunk k from rank k + j; as many rounds as fit the buffer share a phase, and a
    chunk larger than the buffer comes in pieces.
    """
    n_members = who.members.shape[1]
    chunk = window_chunk(n_slots, n_members)
    piece = min(chunk, buffer_slots)
    stride = int(part_slots(piece, item_bytes))
    at_once = max(buffer_slots // stride, 1)
    for first in range(0, chunk, piece):
        begin = who.ranks * chunk + first
        widths = np.clip(n_slots - begin, 0, min(piece, chunk - first))
        for start in range(1, n_members, at_once):
            yield Round(who, range(start, min(start + at_once, n_members)), begin, widths, stride)


def all_rounds(who: Groups, n_slots: int, buffer_slots: int, item_bytes: int) -> Iterator[Round]:
    """Yield the phases of an all-reduce; of more than two members, a core's own part arrives among the others'."""
    n_members = who.members.shape[1]
    replaces = n_members > 2
    turns = range(n_members) if replaces else range(1, 2)
    at_once = int(slots_at_once(buffer_slots // len(turns), item_bytes))
    for first in range(0, n_slots, at_once):
        width = min(at_once, n_slots - first)
        begin, widths = (np.full(len(who.ranks), n, np.int64) for n in (first, width))
        yield Round(who, turns, begin, widths, int(part_slots(width, item_bytes)), replaces)
