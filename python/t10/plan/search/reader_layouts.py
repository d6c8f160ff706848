"""Plans that follow a reader: an operator cut so that its result lies exactly as the reader takes it.

The reader's operand is a grid over the cores. The producer cuts its output alike, in the same order of cores. Where it
splits a reduction, every core owns a slice of the first dim that is longer than one: that dim then takes fewer parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t10.core.expression import OperatorSpec
from t10.core.lengths import lengths_of
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.errors import InfeasiblePlanError
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.plan.search.producer_layouts import Parts, reshaped_parts, result_parts


def leading_plans(
    producer: OperatorSpec, reader: OperatorSpec, number: int, plan: OperatorPlan
) -> Iterator[OperatorPlan]:
    """Yield the producer's plans that leave its result as operand `number` of `reader` lies under `plan`."""
    parts = operand_parts(reader, number, plan)
    shape = operand_of(reader, number).shape
    if parts is not None and shape != producer.output.shape:
        parts = reshaped_parts(parts, shape, producer.output.shape)
    if parts is None:
        return
    whole = [(dim, factor, length) for dim, factor, length in parts if factor > 1]
    for f_op, order in _cuts(producer, whole):
        ft = tuple((1,) * len(f_op) for _ in producer.rotatable)
        lengths = list(lengths_of(producer, f_op, ft))
        for dim, factor, length in whole:
            axis = producer.output.dims[dim].terms[0].axis
            lengths[axis] = length * (factor // f_op[axis])
        try:
            pace = align_pace(producer, f_op, ft, tuple(lengths))
        except InfeasiblePlanError:
            continue
        rest = [axis for axis in range(len(f_op)) if axis not in order]
        found = place(producer, f_op, ft, pace, (*rest, *order))
        left = None if found is None else result_parts(producer, found)
        if found is not None and left is not None and [part for part in left if part[1] > 1] == whole:
            yield found


def operand_parts(spec: OperatorSpec, number: int, plan: OperatorPlan) -> Parts | None:
    """Return the grid that an operand is cut in, None where it rotates, is read in windows, or by several cores."""
    operand = operand_of(spec, number)
    if prod(plan.ft[min(number, len(spec.inputs))]) > 1 or operand.pad_value:
        return None
    if any(dim.terms and not dim.is_simple for dim in operand.dims):
        return None
    dim_by_axis = {dim.terms[0].axis: position for position, dim in enumerate(operand.dims) if dim.terms}
    if any(axis not in dim_by_axis for axis in plan.cut_order):
        return None
    order = (*(axis for axis in plan.core_order if plan.f_op[axis] == 1), *plan.cut_order)
    return [(dim_by_axis[axis], plan.f_op[axis], plan.lengths[axis]) for axis in order if axis in dim_by_axis]


def _cuts(spec: OperatorSpec, parts: Parts) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield (F_op, axes of several parts, slowest first) that may leave a result in so many parts per dim."""
    axes: list[int] = []
    f_op = [1] * len(spec.axes)
    for dim, factor, _ in parts:
        terms = spec.output.dims[dim].terms
        if len(terms) != 1 or not spec.axes[terms[0].axis].is_splittable:
            return
        axes.append(terms[0].axis)
        f_op[terms[0].axis] = factor
    yield tuple(f_op), tuple(axes)
    for axis in axes:
        for reduced in spec.reduction_axes:
            for members in _members(spec, reduced, f_op[axis]):
                cut = list(f_op)
                cut[axis], cut[reduced] = f_op[axis] // members, members
                position = axes.index(axis) + 1
                order = (*axes[:position], reduced, *axes[position:])
                yield tuple(cut), tuple(a for a in order if cut[a] > 1)


def _members(spec: OperatorSpec, axis: int, factor: int) -> list[int]:
    """Return in how many parts a reduction axis may be cut where its sums are divided over so many cores at most."""
    found = spec.axes[axis]
    if not found.is_splittable:
        return []
    return [n for n in range(2, min(factor, found.extent) + 1) if factor % n == 0]
