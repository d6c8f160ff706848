"""Combining partial sums: which elements of other cores arrive where, and the additions that follow.

Members of a group are the cores that end with the same output window, ranked by core number. Reduce-scatter leaves
chunk k with the core of rank k; all-reduce leaves everything with everybody, added in the order of ranks, so that every
copy has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import chunk_slots
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan


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
    own = sorted(spec.output.axes)
    where = geometry.coordinates(plan)
    keys = np.column_stack([np.zeros(len(where), np.int64), where[:, own], starts[:, own]])
    _, group = np.unique(keys, axis=0, return_inverse=True)
    return group.reshape(-1)


def groups(spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes) -> Groups:
    """Return the groups of cores that have the same output window where those stand at `positions`."""
    slot, group = len(spec.inputs), group_of_core(spec, plan, positions)
    ranks = geometry.replica_ranks(spec.output, plan, slot)
    table = np.empty((int(group.max()) + 1, geometry.n_replicas(spec, plan, slot)), np.int64)
    table[group, ranks] = np.arange(len(group))
    return Groups(ranks, table[group])


def scatter_rounds(who: Groups, n_slots: int, buffer_slots: int, even_slots: int) -> Iterator[Round]:
    """Yield the phases of a reduce-scatter of `n_slots` elements per core through a buffer of `buffer_slots`.

    Parts arrive at multiples of `even_slots`.

    In round j the core of rank k takes chunk k from rank k + j; as many rounds as fit the buffer share a phase, and a
    chunk larger than the buffer comes in pieces.
    """
    n_members = who.members.shape[1]
    chunk = chunk_slots(n_slots, n_members)
    piece = min(chunk, buffer_slots)
    stride = _even(piece, even_slots)
    at_once = max(buffer_slots // stride, 1)
    for first in range(0, chunk, piece):
        begin = who.ranks * chunk + first
        widths = np.clip(n_slots - begin, 0, min(piece, chunk - first))
        for start in range(1, n_members, at_once):
            yield Round(who, range(start, min(start + at_once, n_members)), begin, widths, stride)


def all_rounds(who: Groups, n_slots: int, buffer_slots: int, even_slots: int) -> Iterator[Round]:
    """Yield the phases of an all-reduce; of more than two members, a core's own part arrives among the others'."""
    n_members = who.members.shape[1]
    replaces = n_members > 2
    turns = range(n_members) if replaces else range(1, 2)
    at_once = max(buffer_slots // len(turns) // even_slots * even_slots, 1)
    for first in range(0, n_slots, at_once):
        width = min(at_once, n_slots - first)
        begin, widths = (np.full(len(who.ranks), n, np.int64) for n in (first, width))
        yield Round(who, turns, begin, widths, _even(width, even_slots), replaces)


def _even(n_slots: int, even_slots: int) -> int:
    return -(-n_slots // even_slots) * even_slots
