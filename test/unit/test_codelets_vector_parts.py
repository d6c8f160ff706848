"""Elementwise codelets of a few rows, of which every worker takes a part, and of short ones."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from support.codelet_runs import run_task

from t10.codelets.vector.family import VectorFamily
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand


def vector_code(task: Task) -> Compiled:
    made = VectorFamily().compile(task)
    assert made is not None
    return made


@pytest.mark.parametrize("outer", [(2,), (3,), (2, 2), (5,), (6,)])
@pytest.mark.parametrize("columns", [3, 8, 37, 64])
def test_workers_may_take_a_part_of_a_row_each(outer: tuple[int, ...], columns: int) -> None:
    # One operand has elements along rows, one a value for each row, one a row that is the same for all.
    length = -(-columns // 4) * 4 + 4
    extents = (*outer, columns)
    along = (*(length * prod(outer[axis + 1 :]) for axis in range(len(outer))), 1)
    each = (*(prod(outer[axis + 1 :]) for axis in range(len(outer))), 0)
    ops = (
        ScalarOp("arith.extf", (0,), "f32"), ScalarOp("arith.subf", (3, 1), "f32"),
        ScalarOp("arith.truncf", (4,), "f16"), ScalarOp("arith.mulf", (5, 2), "f16"),
    )  # fmt: skip
    operands = (
        TaskOperand("f16", along, 8),
        TaskOperand("f32", each, 4),
        TaskOperand("f16", (*(0 for _ in outer), 1), 8),
    )
    task = Task(extents, operands, TaskOperand("f16", along, 8), "none", ScalarFunction(3, ops, 6))
    made = vector_code(task)
    assert "take a part of a row each" in made.codelet.summary
    run_task(task, made).check(rtol=2e-3, atol=2e-3)


def test_parts_begin_no_further_than_a_word_says() -> None:
    far = Task((2, 64), (TaskOperand("f32", (1 << 14, 1)),), TaskOperand("f32", (64, 1)), "none", identity())
    near = replace(far, inputs=(TaskOperand("f32", (1 << 13, 1)),))
    assert "part of a row" in vector_code(near).codelet.summary
    assert "part of a row" not in vector_code(far).codelet.summary
    run_task(far, vector_code(far)).check()


@pytest.mark.parametrize("columns", [1, 2, 3])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_short_rows_are_computed_whole(columns: int, dtype: str) -> None:
    """As the outputs of few tokens lie, where a bias is the same for all of them."""
    body = ScalarFunction(2, (ScalarOp("arith.subf", (0, 1), dtype),), 2)
    dense, other = TaskOperand(dtype, (columns, 1), 8), TaskOperand(dtype, (1, 0), 4)
    cycles: list[int] = []
    for rows in (24, 48):
        apart = frozenset({(0, 1), (0, 2), (1, 2)})
        task = Task((rows, columns), (dense, other), dense, "none", body, apart=apart)
        found = run_task(task, vector_code(task))
        found.check()
        cycles.append(found.cycles)
    # Four rows more for each worker. With turns of four points, rows of two and three f16 take 40 and 58 slots.
    assert cycles[1] - cycles[0] <= 6 * 4 * {1: 2, 2: 11, 3: 36}[columns]
