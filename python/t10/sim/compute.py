"""One sub-task on all cores: what each core computes from the elements that lie in its own memory.

Points outside the iteration space contribute the neutral element. Where a whole part is padding, what a core computes
for it is never read: it lies outside the output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from t10.core import geometry
from t10.core.arrays import Array
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, OperatorSpec, Selector
from t10.core.plan import OperatorPlan
from t10.sim.combine import combine_arrays, neutral, reduce_axes
from t10.sim.narrow import narrowed
from t10.sim.partition import Box, Partition, Selection, core_chunks, make_box, points, read, select, write
from t10.sim.product import Factors, inputs_read, sum_of_products
from t10.sim.scalar_eval import evaluate

CHUNK_ELEMENTS = 1 << 23
"""Most elements of one intermediate array; larger groups of cores are computed piece by piece."""


@dataclass(frozen=True, slots=True)
class Running:
    """A sub-task of an operator: its operands' partitions, at which positions their windows stand, and how to compute.

    `standing` are positions per axis of every rotatable operand; `factors` are the body's if it is a product.
    """

    spec: OperatorSpec
    plan: OperatorPlan
    inputs: tuple[Partition, ...]
    accumulator: Partition
    standing: tuple[AxisSizes, ...]
    factors: Factors | None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A group of cores in one sub-task: its box and what they read, one array per input with all axes."""

    running: Running
    box: Box
    cores: slice
    arrays: list[Array]

    def index(self, axis: int) -> Array:
        """Return global indices along an axis, with all axes."""
        return self._along(self.box.indices[axis], axis)

    def inside(self, axis: int) -> Array | None:
        """Return which points along an axis count, None where all of these cores' do."""
        inside = self.box.inside[axis]
        if inside is None or inside[self.cores].all():
            return None
        return self._along(inside, axis)

    def _along(self, rows: Array, axis: int) -> Array:
        here = rows if len(rows) == 1 else rows[self.cores]
        n_axes = len(self.running.spec.axes)
        return here.reshape(len(here), *(here.shape[1] if a == axis else 1 for a in range(n_axes)))


def compute_sub_task(running: Running, positions: AxisSizes, step: int) -> None:
    """Compute the sub-task of a loop state on every core, from resident elements into the accumulators.

    Raises `SimTrap` where a core needs an element it does not hold.
    """
    spec, plan = running.spec, running.plan
    box = make_box(plan, spec.extents, positions)
    selections: list[Selection] = []
    for partition in (*running.inputs, running.accumulator):
        starts = geometry.window_starts(plan, partition.number, running.standing[partition.number])
        selections.append(select(partition, plan, starts, box, step=step))
    picked = {s.axis for s in spec.selectors if _is_independent(spec, s)}
    whole = [tuple(_whole(p, a) if a in picked and a in p.operand.axes else c for a, c in enumerate(chosen))
             for p, chosen in zip(running.inputs, selections[:-1], strict=True)]  # fmt: skip
    views = [partition.by_axis() for partition in running.inputs]
    accumulator = running.accumulator.by_axis()
    for cores in core_chunks(plan.n_cores, _elements_per_core(running, box, picked), CHUNK_ELEMENTS):
        arrays = [read(view, chosen, cores) for view, chosen in zip(views, whole, strict=True)]
        piece = _Piece(running, box, cores, arrays)
        value, hits = (_product(piece, running.factors), None) if running.factors else _general(piece, picked)
        value = narrowed(value, numpy_dtype(spec.acc_dtype))
        if hits is not None:
            value = np.where(hits, value, read(accumulator, selections[-1], cores))
        elif spec.combine != "none":
            value = combine_arrays(spec.combine, read(accumulator, selections[-1], cores), value)
        write(accumulator, selections[-1], cores, value)


def _whole(partition: Partition, axis: int) -> slice:
    return slice(0, partition.lengths[axis])


def _is_independent(spec: OperatorSpec, selector: Selector) -> bool:
    """Return whether a selector's index is the same along the axis it selects from: then it can be looked up."""
    return not any(selector.axis in spec.inputs[number].axes for number in inputs_read(selector.index))


def _elements_per_core(running: Running, box: Box, picked: set[int]) -> int:
    """Return the elements of the largest intermediate array of one core."""
    extents = box.extents
    if running.factors is None:
        return points(tuple(n for a, n in enumerate(extents) if a not in picked))
    spec = running.spec
    sizes = [points(tuple(extents[a] for a in axes)) for axes in running.factors.axes]
    return max(*sizes, points(tuple(n for a, n in enumerate(extents) if a not in spec.reduction_axes)))


def _product(piece: _Piece, factors: Factors) -> Array:
    """Return the contributions of a sum of products; both factors are 0 at points that do not count."""
    reduction = piece.running.spec.reduction_axes
    values: list[Array] = []
    for function in factors.functions:
        value = evaluate(function, piece.arrays, piece.index)
        for axis in reduction:
            inside = piece.inside(axis)
            if inside is not None:
                value = np.where(inside, value, value.dtype.type(0))
        values.append(value)
    with np.errstate(all="ignore"):
        return sum_of_products(values[0], values[1], reduction)


def _general(piece: _Piece, picked: set[int]) -> tuple[Array, Array | None]:
    """Return the contributions of any body: evaluated for every point, then combined over the reduction axes.

    A sum of one term at most comes with where it has one: it is moved, since adding it to 0 would lose the sign of -0.
    """
    spec = piece.running.spec
    arrays, conditions, looked_up = _pick(piece, picked)

    def index(axis: int) -> Array:
        return looked_up[axis] if axis in looked_up else piece.index(axis)

    value = narrowed(evaluate(spec.body, arrays, index), numpy_dtype(spec.acc_dtype))
    if spec.combine == "none":
        return value, None
    if spec.combine == "sum" and picked.issuperset(spec.reduction_axes):
        return value, reduce(np.logical_and, conditions)
    for axis in spec.reduction_axes:
        inside = None if axis in picked else piece.inside(axis)
        if inside is not None:
            conditions.append(inside)
    n_cores = len(range(*piece.cores.indices(piece.running.plan.n_cores)))
    extents = [1 if a in picked else n for a, n in enumerate(piece.box.extents)]
    # Axes that the value does not depend on still count once per point.
    shape = [n_cores, *(n if a in spec.reduction_axes else 1 for a, n in enumerate(extents))]
    value = np.broadcast_to(value, np.broadcast_shapes(value.shape, tuple(shape)))
    for condition in conditions:
        value = np.where(condition, value, neutral(spec.combine, spec.acc_dtype))
    return reduce_axes(spec.combine, value, tuple(a + 1 for a in spec.reduction_axes)), None


def _pick(piece: _Piece, picked: set[int]) -> tuple[list[Array], list[Array], dict[int, Array]]:
    """Return the operands at selected points, the conditions under which they count, and the indices looked up.

    A selected axis whose index does not vary along it is not walked: its one element is taken where it lies, if it
    lies in this core's sub-task.
    """
    spec, plan = piece.running.spec, piece.running.plan
    arrays = list(piece.arrays)
    conditions: list[Array] = []
    looked_up: dict[int, Array] = {}
    for selector in spec.selectors:
        axis = selector.axis
        index = evaluate(selector.index, arrays, piece.index).astype(np.int64)
        if axis not in picked:
            conditions.append(index == piece.index(axis))
            continue
        local, first = (_column(rows[:, :1], piece, len(spec.axes)) for rows in
                        (piece.box.local[axis], piece.box.indices[axis]))  # fmt: skip
        # The first point's local and global index differ by where this core's part of the axis begins.
        target = index - (first - local)
        length = plan.lengths[axis]
        near = (target >= 0) & (target < length) & (index >= 0) & (index < spec.axes[axis].extent)
        near &= (target - local) % length < piece.box.extents[axis]
        conditions.append(near)
        looked_up[axis] = index
        for number, partition in enumerate(piece.running.inputs):
            if axis in partition.operand.axes:
                slot = np.where(near, target, 0) % partition.lengths[axis]
                arrays[number] = np.take_along_axis(arrays[number], slot, axis=axis + 1)
    return arrays, conditions, looked_up


def _column(rows: Array, piece: _Piece, n_axes: int) -> Array:
    here = rows if len(rows) == 1 else rows[piece.cores]
    return here.reshape(-1, *(1,) * n_axes)
