"""Reductions of few rows in pieces of any length, of which each worker takes one."""

from __future__ import annotations

import pytest
from support.codelet_runs import run_task

from t10.codelets.reduce.family import ReduceFamily
from t10.core.expression import Combine
from t10.core.scalar import identity
from t10.core.task import Task, TaskOperand


def cycles(rows: int, n: int, combine: Combine, dtype: str, *, row: int = 0, initial: bool = True) -> int:
    """Run a reduction of rows that begin every `row` elements, compare, and return its cycles."""
    stride = row or -(-n // 4) * 4
    inputs = (TaskOperand(dtype, (stride, 1), 16),)
    task = Task((rows, n), inputs, TaskOperand(dtype, (1, 0), 8), combine, identity(), (1,), initial)
    code = ReduceFamily().compile(task)
    assert code is not None
    run = run_task(task, code)
    tolerance = 3e-3 if dtype == "f16" else 2e-5
    run.check(rtol=tolerance, atol=4 * tolerance)
    return run.cycles


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("combine", ["sum", "max"])
@pytest.mark.parametrize("n", [33, 101, 197, 226, 777, 1000])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows_of_any_length(rows: int, n: int, combine: Combine, dtype: str) -> None:
    for row in (0, n):
        for initial in (True, False):
            cycles(rows, n, combine, dtype, row=row, initial=initial)


def test_a_last_piece_that_is_shorter_leaves_no_worker_idle() -> None:
    assert cycles(3, 778, "max", "f16") <= 1.1 * cycles(3, 784, "max", "f16")
    assert cycles(2, 197, "max", "f32") <= 0.7 * cycles(4, 197, "max", "f32")
