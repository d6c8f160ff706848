"""Plans that follow a producer: an operator cut exactly as the value it reads lies, so that nothing moves before it.

After a split reduction every core owns a chunk of the flattened partition. Where that is a slice of the first dim
that is longer than one, it is a finer cut of that dim, and an operator can follow it too, if the cores that share
the sum are numbered next to each other (`natural_core_order` sees to that).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.lengths import lengths_of
from t10.core.movement import operand_of
from t10.core.plan import OperatorPlan
from t10.errors import InfeasiblePlanError
from t10.plan.search.alignment import Pace, align_pace
from t10.plan.search.placement import place

Parts = list[tuple[int, int, int]]
"""(dim, parts, length of a part) of a result, in the order of core numbers, slowest first."""


def following_plan(
    spec: OperatorSpec, number: int, producer: OperatorSpec, plan: OperatorPlan
) -> OperatorPlan | None:
    """Return the plan under which operand `number` lies as `plan` leaves the producer's result, None without one."""
    return lying_plan(spec, number, result_parts(producer, plan), producer.output.shape)


def lying_plan(
    spec: OperatorSpec, number: int, parts: Parts | None, shape: tuple[int, ...]
) -> OperatorPlan | None:
    """Return the plan under which operand `number` lies as a value of a shape is cut in parts, None without one."""
    operand = operand_of(spec, number)
    if parts is not None and operand.shape != shape:
        parts = reshaped_parts(parts, shape, operand.shape)
    if parts is None or any(len(dim.terms) > 1 or (dim.terms and not dim.is_simple) for dim in operand.dims):
        return None
    f_op = [1] * len(spec.axes)
    cut: dict[int, int] = {}
    for dim_number, factor, length in parts:
        dim = operand.dims[dim_number]
        if not dim.terms:
            if factor > 1:
                return None
            continue
        axis = dim.terms[0].axis
        if factor > 1 and not spec.axes[axis].is_splittable:
            return None
        f_op[axis], cut[axis] = factor, length
    rest = [axis for axis in range(len(spec.axes)) if axis not in cut]
    ft = tuple((1,) * len(f_op) for _ in spec.rotatable)
    lengths = tuple([cut.get(axis, length) for axis, length in enumerate(lengths_of(spec, tuple(f_op), ft))])
    try:
        pace: Pace = align_pace(spec, tuple(f_op), ft, lengths)
    except InfeasiblePlanError:
        return None
    return place(spec, tuple(f_op), ft, pace, (*cut, *rest))


def reshaped_parts(parts: Parts, shape: tuple[int, ...], reshaped: tuple[int, ...]) -> Parts | None:
    """Return a grid over the dims of a reshaped tensor that gives every core the same elements, None without one.

    Dims of which several become one, or one becomes several, must be cut in equal parts that are contiguous in both.
    """
    by_dim = {dim: (position, factor, length) for position, (dim, factor, length) in enumerate(parts)}
    found: list[tuple[int, tuple[int, int, int]]] = []
    for old, new in _blocks(shape, reshaped):
        cut = [by_dim[dim] for dim in old if dim in by_dim]
        if len(old) == len(new) == 1:
            found += [(position, (new[0], factor, length)) for position, factor, length in cut]
            continue
        if any(
            factor * length != shape[dim]
            for dim in old
            if dim in by_dim
            for _, factor, length in [by_dim[dim]]
        ):
            return None
        factors = [by_dim[dim][1] if dim in by_dim else 1 for dim in old]
        n_parts = _as_one([shape[dim] for dim in old], factors)
        split = None if n_parts is None else _as_many(n_parts, [reshaped[dim] for dim in new])
        positions = [position for position, factor, _ in cut if factor > 1]
        if split is None or positions != list(
            range(min(positions, default=0), max(positions, default=-1) + 1)
        ):
            return None
        place = min(positions, default=0)
        found += [(place, (dim, f, reshaped[dim] // f)) for dim, f in zip(new, split, strict=True)]
    return [part for _, part in sorted(found, key=lambda item: item[0])]


def _blocks(shape: tuple[int, ...], reshaped: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Return the smallest groups of dims with equal products, dims of extent 1 left out."""
    old = [dim for dim, extent in enumerate(shape) if extent > 1]
    new = [dim for dim, extent in enumerate(reshaped) if extent > 1]
    blocks: list[tuple[list[int], list[int]]] = []
    while old and new:
        left, right = [old.pop(0)], [new.pop(0)]
        sizes = [shape[left[0]], reshaped[right[0]]]
        while sizes[0] != sizes[1]:
            if sizes[0] < sizes[1]:
                left.append(old.pop(0))
                sizes[0] *= shape[left[-1]]
            else:
                right.append(new.pop(0))
                sizes[1] *= reshaped[right[-1]]
        blocks.append((left, right))
    return blocks


def _as_one(extents: list[int], factors: list[int]) -> int | None:
    """Return in how many contiguous parts dims, taken as one, are cut; None if parts are not contiguous."""
    is_open = False
    for extent, factor in zip(extents, factors, strict=True):
        if is_open and factor > 1:
            return None
        is_open = is_open or factor < extent
    return prod(factors)


def _as_many(n_parts: int, extents: list[int]) -> list[int] | None:
    """Return the parts of every dim if a tensor is cut in contiguous equal parts, None if that is impossible."""
    factors: list[int] = []
    for extent in extents:
        factor = extent if n_parts % extent == 0 else n_parts
        if extent % factor:
            return None
        factors.append(factor)
        n_parts //= factor
    return factors if n_parts == 1 else None


def result_parts(spec: OperatorSpec, plan: OperatorPlan) -> Parts | None:
    """Return the grid that a result is cut in, None if it is not one."""
    if prod(plan.ft[-1]) > 1 or plan.reduce == "all":
        return None
    dim_by_axis = {dim.terms[0].axis: number for number, dim in enumerate(spec.output.dims) if dim.terms}
    n_members = geometry.n_replicas(spec, plan, len(spec.inputs))
    cut = _cut_axis(spec, plan, n_members)
    if n_members > 1 and cut is None:
        return None
    result: list[tuple[int, int, int]] = []
    is_behind_cut = False
    for axis in _numbered_axes(spec, plan, cut if n_members > 1 else None):
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


def _numbered_axes(spec: OperatorSpec, plan: OperatorPlan, cut: int | None) -> Iterator[int]:
    """Yield all axes as they number cores, slowest first; one that is only cut by a reduction, in front of that.

    Where an axis of one part stands in the order of cores means nothing.
    """
    order = plan.cut_order
    yield from (axis for axis in range(len(plan.f_op)) if axis not in order and axis != cut)
    if cut is not None and cut not in order:
        reduced = next(i for i, axis in enumerate(order) if axis not in spec.output.axes)
        order = (*order[:reduced], cut, *order[reduced:])
    yield from order


def _cut_axis(spec: OperatorSpec, plan: OperatorPlan, n_members: int) -> int | None:
    """Return the axis of which every member of a reduction ends with an equal slice, None if chunks are no slices."""
    for dim in spec.output.dims:
        length = plan.lengths[dim.terms[0].axis] if dim.terms else 1
        if length > 1:
            return dim.terms[0].axis if length % n_members == 0 else None
    return None
