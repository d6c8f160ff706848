"""From boxes of partitions to tasks: strides per axis, alignment, and the shortest nest that says the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, Selector
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.core.tile import WIDE_BYTES


def axis_strides(operand: Operand, lengths: AxisSizes) -> AxisSizes:
    """Return how many slots of a partition one step along every axis is; 0 for axes that do not index the operand.

    `lengths` are the partition's window lengths; slots are numbered row-major over its dims.
    """
    strides = [0] * len(lengths)
    dim_stride = 1
    shape = geometry.partition_shape(operand, lengths)
    for dim, extent in zip(reversed(operand.dims), reversed(shape), strict=True):
        for term in dim.terms:
            strides[term.axis] += term.coefficient * dim_stride
        dim_stride *= extent
    return tuple(strides)


def alignment_bytes(dtype: str, offsets_bytes: tuple[int, ...]) -> int:
    """Return the power of two, at most 16, that divides all addresses at offsets from an aligned one."""
    common = gcd(*offsets_bytes, WIDE_BYTES)
    return max(common & -common, 1) if common else max(size_bytes(dtype), WIDE_BYTES)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis of a nest: its number before, extent, and strides of all operands."""

    number: int
    extent: int
    strides: tuple[int, ...]
    is_reduced: bool


def simplified(task: Task) -> Task:
    """Return the same task with fewer axes: those of extent 1 dropped, those that walk on in one stride merged.

    Axes that `index` operations or selectors name are kept. Parallel axes come first, by falling output stride, then
    reduction axes by falling stride of the first operand that has one.
    """
    named = named_axes((task.body, *(s.index for s in task.selectors)), task.selectors)
    rows = list(zip(*[operand.strides for operand in task.operands], strict=True))
    axes = [
        _Axis(a, extent, rows[a], a in task.reduction_axes)
        for a, extent in enumerate(task.extents)
        if extent != 1 or a in named
    ]
    axes.sort(key=lambda axis: (axis.is_reduced, *_order(axis)))
    axes = _merged(axes, named)
    numbers = {axis.number: i for i, axis in enumerate(axes)}
    operands = [
        TaskOperand(o.dtype, tuple([axis.strides[i] for axis in axes]), o.align_bytes, o.is_interleaved)
        for i, o in enumerate(task.operands)
    ]
    reduced = tuple(i for i, axis in enumerate(axes) if axis.is_reduced)
    combine, initial = task.combine, task.initial
    if combine != "none" and not reduced and initial:
        # Nothing is left to combine: one contribution replaces what was there.
        combine = "none"
    return replace(
        task,
        extents=tuple([axis.extent for axis in axes]),
        inputs=tuple(operands[:-1]),
        output=operands[-1],
        combine=combine,
        reduction_axes=reduced,
        initial=initial,
        body=_renumbered(task.body, numbers),
        selectors=tuple(Selector(numbers[s.axis], _renumbered(s.index, numbers)) for s in task.selectors),
        origin=tuple(task.origin[axis.number] if task.origin else 0 for axis in axes) if named else (),
    )


def _order(axis: _Axis) -> tuple[int, ...]:
    """Return the sort key of an axis among its kind: the largest stride first, the output's before the inputs'."""
    return tuple([-stride for stride in reversed(axis.strides)])


def _merged(axes: list[_Axis], named: frozenset[int]) -> list[_Axis]:
    """Return the axes with neighbours merged where every operand steps on evenly from one to the other."""
    result: list[_Axis] = []
    for axis in axes:
        outer = result[-1] if result else None
        if (
            outer is not None
            and outer.is_reduced == axis.is_reduced
            and not {outer.number, axis.number} & named
            and all(o == i * axis.extent for o, i in zip(outer.strides, axis.strides, strict=True))
        ):
            result[-1] = replace(axis, extent=outer.extent * axis.extent)
        else:
            result.append(axis)
    return result


def named_axes(functions: tuple[ScalarFunction, ...], selectors: tuple[Selector, ...]) -> frozenset[int]:
    """Return the axes along which what is computed depends on where in the iteration space a point lies."""
    named = {int(op.attribute) for f in functions for op in f.ops if op.opcode == "index"}
    return frozenset(named | {selector.axis for selector in selectors})


def _renumbered(function: ScalarFunction, numbers: dict[int, int]) -> ScalarFunction:
    if not any(op.opcode == "index" for op in function.ops):
        return function
    ops = tuple(
        ScalarOp(op.opcode, op.operands, op.dtype, str(numbers[int(op.attribute)]))
        if op.opcode == "index"
        else op
        for op in function.ops
    )
    return ScalarFunction(function.n_inputs, ops, function.result)


def uses_position(task_functions: tuple[ScalarFunction, ...], selectors: tuple[Selector, ...]) -> bool:
    """Return whether what is computed depends on where in the iteration space a point lies."""
    return bool(selectors) or any(op.opcode == "index" for f in task_functions for op in f.ops)
