"""Selected axes that need not be walked: where the index does not vary along them, it says which point counts."""

from __future__ import annotations

from t10.core.scalar import ScalarFunction
from t10.core.task import Task


def picked_axes(task: Task) -> tuple[int, ...]:
    """Return the reduction axes to look up: one selector each, which depends on no selected axis."""
    selected = [selector.axis for selector in task.selectors]
    return tuple(
        selector.axis
        for selector in task.selectors
        if selector.axis in task.reduction_axes
        and selected.count(selector.axis) == 1
        and not any(_depends_on(task, selector.index, axis) for axis in selected)
    )


def picks_one(task: Task) -> bool:
    """Return whether a sum has one term at most, which is moved: adding it to 0 would lose the sign of -0."""
    reduced = set(task.reduction_axes)
    return task.initial and task.combine == "sum" and bool(reduced) and reduced <= set(picked_axes(task))


def inputs_read(function: ScalarFunction) -> frozenset[int]:
    """Return the inputs that a function's result depends on."""
    needed = {function.result}
    for i in reversed(range(len(function.ops))):
        if function.n_inputs + i in needed:
            needed.update(function.ops[i].operands)
    return frozenset(v for v in needed if v < function.n_inputs)


def _depends_on(task: Task, function: ScalarFunction, axis: int) -> bool:
    named = any(op.opcode == "index" and int(op.attribute) == axis for op in function.ops)
    return named or any(task.inputs[i].strides[axis] for i in inputs_read(function))
