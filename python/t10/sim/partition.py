"""One operand's partition on all cores as an array with one dimension per axis of its operator, and boxes of it.

A partition is stored dim by dim (`core.geometry`), but a sub-task is a box of axes. Since every dim's slot is a sum of
one contribution per axis, a strided view shows the partition by axis without a copy: an axis in two dims (a diagonal)
adds their strides, two axes in one dim (a sliding window) overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.lib.stride_tricks import as_strided

from t10.core import geometry
from t10.core.arrays import Array, Bools, Ints
from t10.core.expression import AxisSizes, Operand
from t10.core.plan import OperatorPlan
from t10.sim.traps import trap

Selection = tuple["slice | Ints", ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """An operand's slots on the working cores: `slots` (cores, elements of a partition) is a writable view of memory.

    `lengths` are its window lengths w_a; `number` counts rotatable operands (inputs, then the output); epilogue inputs
    use the output's.
    """

    operand: Operand
    number: int
    lengths: AxisSizes
    slots: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the extents of the partition, one per dim."""
        return geometry.partition_shape(self.operand, self.lengths)

    def by_axis(self) -> Array:
        """Return the partition as (cores, *w_a over all axes), 1 for axes that do not index it."""
        strides = [0] * len(self.lengths)
        dim_stride = self.slots.itemsize
        for dim, extent in zip(reversed(self.operand.dims), reversed(self.shape), strict=True):
            for term in dim.terms:
                strides[term.axis] += term.coefficient * dim_stride
            dim_stride *= extent
        own = self.operand.axes
        shape = [length if axis in own else 1 for axis, length in enumerate(self.lengths)]
        return as_strided(self.slots, (len(self.slots), *shape), (self.slots.strides[0], *strides))


@dataclass(frozen=True, slots=True)
class Box:
    """A sub-task: `local[a]` are its local indices along axis a, shape (cores, n) or (1, n) where all cores agree.

    `inside[a]` tells which of them are real points, shape as `indices[a]`, None where all are; `indices[a]` are global.
    """

    local: tuple[Ints, ...]
    indices: tuple[Ints, ...]
    inside: tuple[Bools | None, ...]

    @property
    def extents(self) -> AxisSizes:
        """Return the points along every axis."""
        return tuple(local.shape[1] for local in self.local)


def make_box(plan: OperatorPlan, extents: AxisSizes, positions: AxisSizes) -> Box:
    """Return the box that every core computes at a loop state; `extents` are N_a, points beyond them do not count."""
    starts = geometry.phases(plan) + np.array(positions) * np.array(plan.rp)
    moving = [steps > 1 for steps in plan.steps]
    sizes = [rp if moves else n for rp, n, moves in zip(plan.rp, plan.lengths, moving, strict=True)]
    return _box(plan, extents, starts, moving, tuple(sizes))


def make_windows(plan: OperatorPlan, extents: AxisSizes, starts: Ints, lengths: AxisSizes) -> Box:
    """Return the points of whole windows in slot order: local index of slot j is `start + (j - start) mod w`."""
    base = geometry.coordinates(plan) * np.array(plan.lengths)
    local: list[Ints] = []
    for axis, length in enumerate(lengths):
        start = starts[:, axis, None]
        local.append((start + (np.arange(length) - start) % length) % plan.lengths[axis])
    return _with_globals(tuple(local), base, extents)


def _box(plan: OperatorPlan, extents: AxisSizes, starts: Ints, moving: list[bool], sizes: AxisSizes) -> Box:
    local: list[Ints] = []
    for axis, size in enumerate(sizes):
        offsets = np.arange(size)[None, :]
        if moving[axis]:
            offsets = _shared((starts[:, axis, None] + offsets) % plan.lengths[axis])
        local.append(offsets)
    return _with_globals(tuple(local), geometry.coordinates(plan) * np.array(plan.lengths), extents)


def _with_globals(local: tuple[Ints, ...], base: Ints, extents: AxisSizes) -> Box:
    indices = tuple(base[:, axis, None] + here for axis, here in enumerate(local))
    inside = tuple(i < n for i, n in zip(indices, extents, strict=True))
    return Box(local, indices, tuple(None if here.all() else here for here in inside))


def _shared(local: Ints) -> Ints:
    """Return one row where all cores have the same local indices."""
    return local[:1] if (local == local[0]).all() else local


def select(partition: Partition, plan: OperatorPlan, starts: Ints, box: Box, *, step: int) -> Selection:
    """Return, per axis, where a box lies in the partition: a slice where all cores agree on a run, else slot numbers.

    `starts` are the operand's window starts (cores, axes). Raises `SimTrap` when a core lacks an element it needs.
    """
    rotating = plan.ft[partition.number]
    simple = partition.operand.simple_axes
    chosen: list[slice | Ints] = []
    for axis, length in enumerate(partition.lengths):
        if axis not in partition.operand.axes:
            chosen.append(slice(0, 1))
            continue
        local = box.local[axis]
        if rotating[axis] > 1:
            _check_resident(partition, plan, starts, axis, local, step)
            if axis not in simple and (starts[:, axis] % length).any():
                core = int(np.flatnonzero(starts[:, axis] % length)[0])
                raise trap(
                    f"{partition.operand.name}: a block with halo begins inside a block", core=core, step=step
                )
        chosen.append(_run(_shared(local % length)))
    return tuple(chosen)


def _check_resident(
    partition: Partition, plan: OperatorPlan, starts: Ints, axis: int, local: Ints, step: int
) -> None:
    """Raise a trap unless every local index lies in its core's window of the axis."""
    offset = (local - starts[:, axis, None]) % plan.lengths[axis]
    missing = (offset >= partition.lengths[axis]).any(axis=1)
    if missing.any():
        core = int(np.flatnonzero(missing)[0])
        raise trap(
            f"{partition.operand.name}: axis {axis} of the sub-task needs index "
            f"{int(local[core % len(local)][int(np.argmax(offset[core] >= partition.lengths[axis]))])}, resident is "
            f"[{int(starts[core, axis])}, +{partition.lengths[axis]}) mod {plan.lengths[axis]}",
            core=core,
            step=step,
        )


def _run(slots: Ints) -> slice | Ints:
    """Return slots as a slice where all cores take the same run."""
    if len(slots) > 1:
        return slots
    first = int(slots[0, 0])
    is_run = bool((np.diff(slots[0]) == 1).all())
    return slice(first, first + slots.shape[1]) if is_run else slots


def read(view: Array, chosen: Selection, cores: slice) -> Array:
    """Return a box of a partition shown by axis, (cores, *extents): a view where possible, else a copy."""
    result = view[(cores, *(c if isinstance(c, slice) else slice(None) for c in chosen))]
    for axis, slots in enumerate(chosen):
        if isinstance(slots, slice):
            continue
        if len(slots) == 1:
            result = np.take(result, slots[0], axis=axis + 1)
            continue
        front = np.moveaxis(result, axis + 1, 1)
        taken = front[np.arange(len(result))[:, None], slots[cores]]
        result = np.moveaxis(taken, 1, axis + 1)
    return result


def is_plain(chosen: Selection) -> bool:
    """Return whether a box is a plain view of its partition."""
    return all(isinstance(c, slice) for c in chosen)


def write(view: Array, chosen: Selection, cores: slice, values: Array) -> None:
    """Store a box into a partition shown by axis."""
    if is_plain(chosen):
        view[(cores, *(c for c in chosen if isinstance(c, slice)))] = values
        return
    n_dims = view.ndim
    numbers: Ints = np.arange(cores.start, cores.stop, dtype=np.int64)
    index: list[Ints] = [numbers.reshape((-1,) + (1,) * (n_dims - 1))]
    for axis, slots in enumerate(chosen):
        if isinstance(slots, slice):
            numbers = np.arange(slots.start, slots.stop, dtype=np.int64)[None, :]
        else:
            numbers = slots
        rows = numbers if len(numbers) == 1 else numbers[cores]
        index.append(rows.reshape(len(rows), *(rows.shape[1] if i == axis else 1 for i in range(n_dims - 1))))
    view[tuple(index)] = values


def core_chunks(n_cores: int, elements_per_core: int, limit: int) -> list[slice]:
    """Return ranges of cores that keep an array of `elements_per_core` within `limit` elements, at least one each."""
    n = max(1, min(n_cores, limit // max(elements_per_core, 1)))
    return [slice(first, min(first + n, n_cores)) for first in range(0, n_cores, n)]


def points(extents: AxisSizes) -> int:
    """Return the number of points of a box."""
    return prod(extents)
