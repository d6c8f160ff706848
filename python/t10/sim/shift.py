"""Shifts: every core takes from its ring neighbour what its next window lacks, through the shift buffer, in place.

Windows are circular, so what arrives belongs exactly where the freed elements lay, and both lie at the same slots on
sender and receiver. Rounds of the shift buffer's size therefore never overwrite what another core still needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.sim.memory import CoreMemory
from t10.sim.partition import Partition
from t10.sim.traps import trap

SHIFT_BUFFER = "shift"


@dataclass(frozen=True, slots=True)
class ShiftedSlots:
    """The slots a shift replaces, as runs of three nested counters: `slot = outer + middle[core] + inner`.

    `outer` and `inner` are offsets all cores share, `middle` (cores or 1, n) follows the window's start.
    """

    outer: Ints
    middle: Ints
    inner: Ints

    @property
    def n_elements(self) -> int:
        """Return the elements a core passes on."""
        return len(self.outer) * self.middle.shape[1] * len(self.inner)

    def slots(self, first: int, last: int) -> Ints:
        """Return slots number `first` to `last` (excluded) of the slab, shape (cores or 1, n)."""
        numbers = np.arange(first, last)
        n_inner, n_middle = len(self.inner), self.middle.shape[1]
        outer = self.outer[numbers // (n_inner * n_middle)]
        middle = self.middle[:, numbers // n_inner % n_middle]
        return outer[None, :] + middle + self.inner[numbers % n_inner][None, :]


def shift(
    memory: CoreMemory,
    spec: OperatorSpec,
    plan: OperatorPlan,
    partition: Partition,
    positions: AxisSizes,
    axis: int,
    direction: int,
    *,
    step: int,
) -> int:
    """Advance one operand along `axis` from loop state `positions` and return the bytes each core passed on.

    Raises `SimTrap` where a core has no neighbour that holds what it needs.
    """
    sources, slab = _arriving(spec, plan, partition, positions, axis, direction, step)
    n_elements = slab.n_elements
    itemsize = partition.slots.itemsize
    per_round = memory.size_bytes(SHIFT_BUFFER) // itemsize
    if per_round == 0:
        raise trap("the shift buffer does not hold one element", step=step)
    for first in range(0, n_elements, per_round):
        last = min(first + per_round, n_elements)
        _round(memory, partition, sources, slab.slots(first, last))
    return n_elements * itemsize


def shift_across(
    spec: OperatorSpec,
    plan: OperatorPlan,
    here: Partition,
    there: Partition,
    positions: AxisSizes,
    axis: int,
    direction: int,
    *,
    step: int,
) -> int:
    """Make the next window of an operand in its other window, and return the bytes each core passed on.

    The window `here` stays as it is: what a step reads that is made meanwhile. Raises `SimTrap` as `shift` does.
    """
    sources, slab = _arriving(spec, plan, here, positions, axis, direction, step)
    slots = slab.slots(0, slab.n_elements)
    there.slots[:] = here.slots
    rows = np.arange(len(sources))[:, None]
    there.slots[rows, slots] = here.slots[sources[:, None], slots[sources] if len(slots) > 1 else slots]
    return slab.n_elements * here.slots.itemsize


def _arriving(
    spec: OperatorSpec,
    plan: OperatorPlan,
    partition: Partition,
    positions: AxisSizes,
    axis: int,
    direction: int,
    step: int,
) -> tuple[Ints, ShiftedSlots]:
    """Return from which core every core takes what its next window lacks, and in which slots that lies."""
    sources = geometry.shift_sources(spec, plan, partition.number, axis, direction)
    if (sources < 0).any():
        core = int(np.flatnonzero(sources < 0)[0])
        raise trap(f"{partition.operand.name}: no ring neighbour along axis {axis}", core=core, step=step)
    starts = geometry.window_starts(plan, partition.number, positions)[:, axis]
    slab = make_slab(partition, axis, plan.rp[axis], starts if direction > 0 else starts - plan.rp[axis])
    return sources, slab


def make_slab(partition: Partition, axis: int, pace: int, first: Ints) -> ShiftedSlots:
    """Return the slots that hold local indices `first[core]` to `first[core] + pace` (excluded) of an axis.

    Dims over several axes are replaced whole. Axes in several dims of their own (diagonals) move where both agree.
    """
    extents = partition.shape
    strides = [prod(extents[d + 1 :]) for d in range(len(extents))]
    length = partition.lengths[axis]
    simple = [d for d, dim in enumerate(partition.operand.dims) if dim.is_simple and axis in dim.axes]
    if axis not in partition.operand.simple_axes or pace == length:
        return ShiftedSlots(np.zeros(1, np.int64), np.zeros((1, 1), np.int64), np.arange(prod(extents)))
    window = (first[:, None] + np.arange(pace)) % length
    if len(simple) > 1:
        middle = window * sum(strides[d] for d in simple)
        others = [d for d in range(len(extents)) if d not in simple]
        inner = _offsets([extents[d] for d in others], [strides[d] for d in others])
        return ShiftedSlots(np.zeros(1, np.int64), middle, inner)
    at = simple[0]
    outer = _offsets(list(extents[:at]), strides[:at])
    return ShiftedSlots(outer, window * strides[at], np.arange(strides[at]))


def _offsets(extents: list[int], strides: list[int]) -> Ints:
    """Return the row-major slot offsets of a box of dims."""
    result = np.zeros(1, np.int64)
    for extent, stride in zip(extents, strides, strict=True):
        result = (result[:, None] + np.arange(extent) * stride).reshape(-1)
    return result


def _round(memory: CoreMemory, partition: Partition, sources: Ints, slots: Ints) -> None:
    """Bring the same slots of every core from its source: exchange into the shift buffer, then copy in place."""
    n_cores, n = len(sources), slots.shape[1]
    # The shift buffer is declared as bytes of the operand's own type: one buffer serves all.
    received = memory.bytes_as(SHIFT_BUFFER, partition.slots.dtype, n_cores, n)
    if len(slots) == 1 and int(slots[0, -1] - slots[0, 0]) == n - 1:
        run = slice(int(slots[0, 0]), int(slots[0, 0]) + n)
        received[:] = partition.slots[sources, run]
        partition.slots[:, run] = received
        return
    rows = np.arange(n_cores)[:, None]
    received[:] = partition.slots[sources[:, None], slots[sources] if len(slots) > 1 else slots]
    partition.slots[rows, slots] = received
