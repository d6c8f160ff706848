"""What follows the accumulation: the epilogue on the output elements each core owns, into the operator's result."""

from __future__ import annotations

import numpy as np

from t10.core import geometry
from t10.core.arrays import Array, Ints
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.scalar import identity
from t10.sim.narrow import narrowed
from t10.sim.partition import Box, Partition, core_chunks, make_windows
from t10.sim.scalar_eval import evaluate
from t10.sim.traps import trap

CHUNK_ELEMENTS = 1 << 23


def run_epilogue(
    spec: OperatorSpec,
    plan: OperatorPlan,
    positions: AxisSizes,
    accumulator: Partition,
    inputs: tuple[Partition, ...],
    result: Array,
    chunk_numbers: Ints | None,
) -> None:
    """Write the operator's result, shape (cores, slots), from its accumulators.

    `positions` are those of the accumulators' windows, per axis. `chunk_numbers` is, per core, which chunk of the
    flattened partition it owns after a reduce-scatter; None where every core owns its whole partition.
    """
    starts = geometry.window_starts(plan, len(spec.inputs), positions)
    for partition in inputs:
        _check_aligned(partition.operand, starts, accumulator)
    windows = make_windows(plan, spec.extents, starts, accumulator.lengths)
    function = spec.epilogue or identity()
    partitions = (accumulator, *inputs)
    for cores in core_chunks(plan.n_cores, accumulator.slots.shape[1], CHUNK_ELEMENTS):
        if chunk_numbers is None:
            views = [partition.by_axis()[cores] for partition in partitions]
            value = evaluate(function, views, lambda axis, cores=cores: _global(windows, axis, cores))
            value = np.broadcast_to(value, np.broadcast_shapes(value.shape, views[0].shape))
            by_dim = _to_dims(spec.output, value)
            result[cores] = narrowed(by_dim.reshape(by_dim.shape[0], -1), numpy_dtype(spec.output.dtype))
            continue
        n_slots = accumulator.slots.shape[1]
        offsets: Ints = np.arange(result.shape[1], dtype=np.int64)
        numbers: Ints = chunk_numbers[cores, None] * result.shape[1] + offsets
        points = _Points(spec, accumulator, np.minimum(numbers, n_slots - 1), windows, cores)
        values = [points.read(partition) for partition in partitions]
        value = narrowed(evaluate(function, values, points.index), numpy_dtype(spec.output.dtype))
        # Slots past the end of the partition hold nothing; zero keeps them from looking like forgotten ones.
        result[cores] = np.where(numbers < n_slots, value, value.dtype.type(0))


class _Points:
    """Chosen output slots of some cores, shape (cores, n), as points of the parallel axes."""

    def __init__(
        self, spec: OperatorSpec, accumulator: Partition, numbers: Ints, windows: Box, cores: slice
    ) -> None:
        self.cores = cores
        self.windows = windows
        self.by_axis: dict[int, Ints] = {}
        rest = numbers
        for dim, extent in zip(reversed(spec.output.dims), reversed(accumulator.shape), strict=True):
            rest, here = np.divmod(rest, extent)
            for term in dim.terms:
                self.by_axis[term.axis] = here

    def read(self, partition: Partition) -> Array:
        """Return an operand's elements at the points."""
        slots = np.zeros((1, 1), np.int64)
        for dim, extent in zip(partition.operand.dims, partition.shape, strict=True):
            slots = slots * extent + sum(t.coefficient * self.by_axis[t.axis] for t in dim.terms)
        rows = partition.slots[self.cores]
        return np.take_along_axis(rows, np.broadcast_to(slots, (len(rows), slots.shape[1])), axis=1)

    def index(self, axis: int) -> Array:
        """Return the points' global indices along an axis."""
        rows = self.windows.indices[axis][self.cores]
        slots = self.by_axis[axis]
        return np.take_along_axis(rows, np.broadcast_to(slots, (len(rows), slots.shape[1])), axis=1)


def _check_aligned(operand: Operand, starts: Ints, accumulator: Partition) -> None:
    """Raise a trap where a dim over several axes would be read across the seam of a circular window."""
    for axis in operand.axes - operand.simple_axes:
        wrong = np.flatnonzero(starts[:, axis] % accumulator.lengths[axis])
        if wrong.size:
            raise trap(f"{operand.name}: a block with halo begins inside a block", core=int(wrong[0]))


def _global(windows: Box, axis: int, cores: slice) -> Array:
    rows = windows.indices[axis][cores]
    n_axes = len(windows.indices)
    return rows.reshape(len(rows), *(rows.shape[1] if a == axis else 1 for a in range(n_axes)))


def _to_dims(output: Operand, value: Array) -> Array:
    """Return an array with one dimension per axis as one with one dimension per dim of the output."""
    order = [dim.terms[0].axis + 1 for dim in output.dims if dim.terms]
    rest = [a for a in range(1, value.ndim) if a not in order]
    moved = value.transpose([0, *order, *rest])
    shape = [value.shape[dim.terms[0].axis + 1] if dim.terms else 1 for dim in output.dims]
    return moved.reshape(len(value), *shape)
