"""Combining partial sums: cores that have them of the same output part end with one chunk of it each, or all with all.

Members of a group are the cores with the same output window, ranked by core number.

Reduce-scatter: in round j the core of rank k takes chunk k from rank k + j (modulo the group) and combines it with its
own. As many rounds as fit the shift buffer share one exchange phase; a chunk larger than the buffer comes in pieces.

All-reduce: in one exchange phase every core takes the same elements of all other members, as many as fit the shift
buffer, so that nobody needs them any more when they are combined in place. All combine in the order of ranks: every
copy has the same bits.
"""

from __future__ import annotations

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import window_chunk
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.reduction import Groups, group_of_core, groups
from t10.sim.combine import combine_arrays
from t10.sim.memory import CoreMemory
from t10.sim.partition import Partition
from t10.sim.shift import SHIFT_BUFFER
from t10.sim.traps import trap


def reduction_groups(spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes) -> Groups:
    """Return the groups of cores that have the same output window where those stand at `positions`.

    Raises `SimTrap` when the groups are not all of the size that the plan implies.
    """
    group = group_of_core(spec, plan, positions)
    found, expected = np.bincount(group)[group], geometry.n_replicas(spec, plan, len(spec.inputs))
    wrong = np.flatnonzero(found != expected)
    if wrong.size:
        core = int(wrong[0])
        message = f"partial results lie on {int(found[core])} cores, expected {expected}"
        raise trap(message, operator=spec.name, core=core)
    return groups(spec, plan, positions)


def reduce_scatter(
    memory: CoreMemory, spec: OperatorSpec, plan: OperatorPlan, accumulator: Partition, groups: Groups
) -> int:
    """Combine partial results in place, chunk k on the core of rank k, and return the bytes each core takes."""
    slots = accumulator.slots
    n_cores, n_slots = slots.shape
    n_members = groups.members.shape[1]
    chunk = window_chunk(n_slots, n_members)
    per_phase = memory.size_bytes(SHIFT_BUFFER) // slots.itemsize
    if per_phase == 0:
        raise trap("the shift buffer does not hold one element", operator=spec.name)
    piece = min(chunk, per_phase)
    at_once = max(per_phase // piece, 1)
    cores: Ints = np.arange(n_cores, dtype=np.int64)
    for first in range(0, chunk, piece):
        offsets: Ints = np.arange(first, min(first + piece, chunk), dtype=np.int64)
        numbers: Ints = groups.ranks[:, None] * chunk + offsets
        inside = numbers < n_slots
        numbers = np.minimum(numbers, n_slots - 1)
        for begin in range(1, n_members, at_once):
            rounds = range(begin, min(begin + at_once, n_members))
            received = memory.bytes_as(SHIFT_BUFFER, slots.dtype, n_cores, numbers.shape[1] * len(rounds))
            parts = np.split(received, len(rounds), axis=1)
            for j, part in zip(rounds, parts, strict=True):
                source = groups.members[cores, (groups.ranks + j) % n_members]
                part[:] = slots[source[:, None], numbers]
            total = slots[cores[:, None], numbers]
            for part in parts:
                total = combine_arrays(spec.combine, total, part)
            core_rows, columns = np.nonzero(inside)
            slots[core_rows, numbers[inside]] = total[core_rows, columns]
    return (n_members - 1) * chunk * slots.itemsize


def all_reduce(
    memory: CoreMemory, spec: OperatorSpec, plan: OperatorPlan, accumulator: Partition, groups: Groups
) -> int:
    """Combine partial results in place, all of them on every member, and return the bytes each core takes."""
    slots = accumulator.slots
    n_cores, n_slots = slots.shape
    n_members = groups.members.shape[1]
    at_once = memory.size_bytes(SHIFT_BUFFER) // slots.itemsize // (n_members - 1)
    if at_once == 0:
        raise trap(f"the shift buffer does not hold one element of {n_members - 1} cores", operator=spec.name)
    cores: Ints = np.arange(n_cores, dtype=np.int64)
    ranks = groups.ranks[:, None]
    for first in range(0, n_slots, at_once):
        piece = slice(first, min(first + at_once, n_slots))
        width = piece.stop - piece.start
        received = memory.bytes_as(SHIFT_BUFFER, slots.dtype, n_cores, width * (n_members - 1))
        parts = np.split(received, n_members - 1, axis=1)
        for j, part in enumerate(parts):
            # Places are in the order of ranks, the core's own left out.
            part[:] = slots[groups.members[cores, j + (groups.ranks <= j)], piece]
        own = slots[:, piece].copy()
        total = np.where(ranks == 0, own, parts[0])
        for rank in range(1, n_members):
            before = parts[rank - 1]
            after = parts[min(rank, n_members - 2)]
            taken = np.where(ranks == rank, own, np.where(ranks < rank, before, after))
            total = combine_arrays(spec.combine, total, taken)
        slots[:, piece] = total
    return (n_members - 1) * n_slots * slots.itemsize
