"""Plans that follow a producer: an operator cut exactly as the value it reads lies, so that nothing moves before it.

After a split reduction every core owns a chunk of the flattened partition. Where that is a slice of the first dim
that is longer than one, it is a finer cut of that dim, and an operator can follow it too, if the cores that share
the sum are numbered next to each other (`natural_core_order` sees to that).
"""

from __future__ import annotations

from math import prod

from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.errors import InfeasiblePlanError
from t10.plan.alignment import Pace, align_pace
from t10.plan.placement import place


def following_plan(
    spec: OperatorSpec, number: int, producer: OperatorSpec, plan: OperatorPlan
) -> OperatorPlan | None:
    """Return the plan under which operand `number` lies as `plan` leaves the producer's result, None without one."""
    operand = operand_of(spec, number)
    if operand.shape != producer.output.shape:
        return None  # read through a reshape
    parts = _result_parts(producer, plan)
    if parts is None or any(len(dim.terms) > 1 or (dim.terms and not dim.is_simple) for dim in operand.dims):
        return None
    f_op = [1] * len(spec.axes)
    order: list[int] = []
    for dim_number, factor, length in parts:
        dim = operand.dims[dim_number]
        if not dim.terms:
            if factor > 1:
                return None
            continue
        axis = dim.terms[0].axis
        if -(-spec.axes[axis].extent // factor) != length or (
            factor > 1 and not spec.axes[axis].is_splittable
        ):
            return None
        f_op[axis] = factor
        order.append(axis)
    rest = [axis for axis in range(len(spec.axes)) if axis not in order]
    ft = tuple((1,) * len(f_op) for _ in spec.rotatable)
    try:
        pace: Pace = align_pace(spec, tuple(f_op), ft)
    except InfeasiblePlanError:
        return None
    return place(spec, tuple(f_op), ft, pace, (*order, *rest))


def _result_parts(spec: OperatorSpec, plan: OperatorPlan) -> list[tuple[int, int, int]] | None:
    """Return (dim, parts, length of a part) of a result in core order, slowest first; None if it is not such a grid."""
    if prod(plan.ft[-1]) > 1 or plan.reduce == "all":
        return None
    dim_by_axis = {dim.terms[0].axis: number for number, dim in enumerate(spec.output.dims) if dim.terms}
    n_members = geometry.n_replicas(spec, plan, len(spec.inputs))
    cut = _cut_axis(spec, plan, n_members)
    if n_members > 1 and cut is None:
        return None
    result: list[tuple[int, int, int]] = []
    is_behind_cut = False
    for axis in plan.core_order:
        factor, length = plan.f_op[axis], plan.lengths[axis]
        if axis not in dim_by_axis:
            if factor > 1 and not is_behind_cut:
                return None
            continue
        is_behind_cut = n_members > 1 and axis == cut
        if is_behind_cut:
            factor, length = factor * n_members, length // n_members
        result.append((dim_by_axis[axis], factor, length))
    return result


def _cut_axis(spec: OperatorSpec, plan: OperatorPlan, n_members: int) -> int | None:
    """Return the axis of which every member of a reduction ends with an equal slice, None if chunks are no slices."""
    for dim in spec.output.dims:
        length = plan.lengths[dim.terms[0].axis] if dim.terms else 1
        if length > 1:
            return dim.terms[0].axis if length % n_members == 0 else None
    return None
