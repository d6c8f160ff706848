"""Reductions of so many tensors that their loops run out of registers."""

from __future__ import annotations

import pytest
from support.codelet_runs import run_task

from t10.codelets.reduce.family import ReduceFamily
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand


def cycles(task: Task) -> int:
    """Run a task along columns, compare, and return its cycles."""
    code = ReduceFamily().compile(task)
    assert code is not None
    assert "columns" in code.codelet.name
    run = run_task(task, code)
    run.check(rtol=3e-3, atol=1e-2)
    return run.cycles


def sum_of(n: int, dtype: str) -> ScalarFunction:
    """A body that adds up n inputs in their type."""
    ops = [ScalarOp("arith.addf", (n + i - 2 if i > 1 else 0, i), dtype) for i in range(1, n)]
    ops += [ScalarOp("arith.extf", (2 * n - 2,), "f32")] if dtype == "f16" else []
    return ScalarFunction(n, tuple(ops), n + len(ops) - 1)


def test_pointers_in_the_frame_leave_those_in_registers_alone() -> None:
    """Five inputs and three strides take the registers: the output's pointer lies in memory."""
    strides = ((40, 1), (0, 0), (56, 1), (0, 0), (48, 1))
    inputs = tuple(TaskOperand("f32", each, 8) for each in strides)
    cycles(Task((40, 40), inputs, TaskOperand("f32", (0, 1), 8), "sum", sum_of(5, "f32"), (0,)))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("n", [5, 6, 7])
def test_columns_of_many_tensors_share_the_stride_of_equal_rows(n: int, dtype: str) -> None:
    inputs = (TaskOperand(dtype, (64, 1), 16),) * n
    task = Task((24, 64), inputs, TaskOperand("f32", (0, 1), 16), "sum", sum_of(n, dtype), (0,))
    assert cycles(task) < 24 * 64 * 5
