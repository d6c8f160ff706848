"""Loops of tasks: which of them become one."""

from __future__ import annotations

from t10.core.scalar import identity
from t10.core.task import Task, TaskOperand
from t10.core.task_nest import simplified


def test_loops_that_walk_on_evenly_become_one() -> None:
    task = Task((2, 3), (TaskOperand("f32", (3, 1)),), TaskOperand("f32", (3, 1)), "none", identity())
    assert simplified(task).extents == (6,)


def test_outputs_and_sums_stay_apart() -> None:
    """Also where all outputs lie in one place: each is the sum of its own terms."""
    x, y = TaskOperand("f32", (3, 1)), TaskOperand("f32", (0, 0))
    task = Task((2, 3), (x,), y, "sum", identity(), reduction_axes=(1,))
    assert simplified(task).extents == (2, 3)
    assert simplified(task).reduction_axes == (1,)
