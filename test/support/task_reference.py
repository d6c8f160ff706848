"""What a task means, on numpy arrays: every point of its nest at once, written from its definition alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import numpy_dtype
from t10.core.task import Task, TaskOperand
from t10.sim.combine import UFUNC, neutral
from t10.sim.scalar_eval import evaluate

Array = NDArray[Any]


def offsets(task: Task, operand: TaskOperand) -> Array:
    """Return the element offset of every point of the nest, of the shape of its extents."""
    found = np.zeros((1,) * len(task.extents), np.int64)
    for axis, (extent, stride) in enumerate(zip(task.extents, operand.strides, strict=True)):
        found = found + (np.arange(extent) * stride).reshape(_along(axis, len(task.extents)))
    return np.broadcast_to(found, task.extents)


def span(task: Task, operand: TaskOperand) -> tuple[int, int]:
    """Return the smallest and the largest element offset that an operand reaches."""
    steps = [(e - 1) * s for e, s in zip(task.extents, operand.strides, strict=True)]
    return sum(min(0, s) for s in steps), sum(max(0, s) for s in steps)


def output_offsets(task: Task) -> Array:
    """Return the element offset of every output element, of the shape of the parallel extents."""
    first = tuple(0 if axis in task.reduction_axes else slice(None) for axis in range(len(task.extents)))
    return offsets(task, task.output)[first]


def task_result(task: Task, inputs: Sequence[Array], before: Array) -> Array:
    """Return the output elements, of the shape of the parallel extents.

    `inputs` are the operands' memories as flat arrays, and `before` the output's, each from its smallest offset on.
    Sums of floats are kept in f64: a codelet may add in any order.
    """
    values = [_read(task, operand, flat) for operand, flat in zip(task.inputs, inputs, strict=True)]
    index = _index_of(task)
    value = evaluate(task.body, values, index)
    if task.combine != "sum" or (value.dtype, task.acc_dtype) != (np.float32, "f16"):
        # What is wider than its sum is rounded as that is.
        value = value.astype(numpy_dtype(task.acc_dtype))
    value = np.broadcast_to(value, task.extents)
    for selector in task.selectors:
        counts = evaluate(selector.index, values, index).astype(np.int64) == index(selector.axis)
        value = np.where(counts, value, neutral(task.combine, task.acc_dtype))
    low, _ = span(task, task.output)
    old = before[output_offsets(task) - low]
    with np.errstate(all="ignore"):
        found = _combined(task, value, old)
        if task.first is not None and task.initial:
            first = _without_reductions(task, _read(task, task.inputs[task.first], inputs[task.first]))
            wide = np.float64 if task.combine == "sum" else found.dtype
            found = UFUNC[task.combine](found.astype(wide), first.astype(wide)).astype(found.dtype)
        if task.epilogue is None:
            return found
        others = values[len(values) - (task.epilogue.n_inputs - 1) :]
        ended = evaluate(task.epilogue, [found, *(_without_reductions(task, each) for each in others)], index)
        return np.broadcast_to(ended, found.shape).astype(numpy_dtype(task.output.dtype))


def _without_reductions(task: Task, value: Array) -> Array:
    return value[tuple(0 if a in task.reduction_axes else slice(None) for a in range(value.ndim))]


def _combined(task: Task, value: Array, old: Array) -> Array:
    dtype = numpy_dtype(task.acc_dtype)
    if task.combine == "none":
        return value
    wide = np.dtype(np.float64) if task.combine == "sum" and dtype.kind == "f" else dtype
    operation = UFUNC[task.combine]
    found = value.astype(wide)
    if task.reduction_axes:
        found = operation.reduce(found, axis=task.reduction_axes, dtype=wide)
    if not task.initial:
        found = operation(old.astype(wide), found)
    return found.astype(dtype)


def _read(task: Task, operand: TaskOperand, flat: Array) -> Array:
    low, _ = span(task, operand)
    return flat[offsets(task, operand) - low]


def _index_of(task: Task) -> Any:
    origin = task.origin or (0,) * len(task.extents)

    def index(axis: int) -> Array:
        rank = len(task.extents)
        return (origin[axis] + np.arange(task.extents[axis])).reshape(_along(axis, rank))

    return index


def _along(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(-1 if a == axis else 1 for a in range(rank))
