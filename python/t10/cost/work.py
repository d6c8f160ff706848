"""What a core does for a box of an operator, as a task: the operands' partitions are exactly as large as the box."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.scalar import ScalarFunction, identity
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import axis_strides, simplified
from t10.core.tile import WIDE_BYTES


def sub_task(spec: OperatorSpec, box: AxisSizes, *, initial: bool = True, simplify: bool = True) -> Task:
    """Return the task of one compute step over `box` points of every axis, all operands in elements of their own.

    Axes are those of the operator unless it is simplified.
    """
    inputs = tuple(_operand(operand, box) for operand in spec.inputs)
    output = _operand(spec.output, box, spec.acc_dtype)
    task = apart(
        Task(
            extents=box,
            inputs=inputs,
            output=output,
            combine=spec.combine,
            body=spec.body,
            reduction_axes=spec.reduction_axes,
            initial=initial or spec.combine == "none",
            selectors=spec.selectors,
            origin=(0,) * len(box),
        )
    )
    return simplified(task) if simplify else task


def epilogue(spec: OperatorSpec, extents: AxisSizes) -> Task:
    """Return the task of an epilogue over `extents` points of every parallel axis (1 for reduction axes)."""
    function: ScalarFunction = spec.epilogue or identity()
    inputs = (
        _operand(spec.output, extents, spec.acc_dtype),
        *(_operand(operand, extents) for operand in spec.epilogue_inputs),
    )
    output = _operand(spec.output, extents)
    return simplified(apart(Task(extents, inputs, output, "none", function, origin=(0,) * len(extents))))


def box_bytes(spec: OperatorSpec, box: AxisSizes) -> int:
    """Return the bytes of all operands' parts of a box."""
    sizes = [(operand, operand.dtype) for operand in spec.inputs] + [(spec.output, spec.acc_dtype)]
    return sum(prod(partition_shape(operand, box)) * size_bytes(dtype) for operand, dtype in sizes)


def _operand(operand: Operand, box: AxisSizes, dtype: str = "") -> TaskOperand:
    return TaskOperand(dtype or operand.dtype, axis_strides(operand, box), WIDE_BYTES, is_interleaved=True)


def apart(task: Task) -> Task:
    """Return the task with all its operands in memory elements of their own."""
    n = len(task.operands)
    return replace(task, apart=frozenset((i, j) for i in range(n) for j in range(i + 1, n)))
