"""Elementwise tasks of a few points, which one worker does by itself (`vector` family)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.codelet_runs import run_task
from support.vector_tasks import elementwise

from t10.codelets.vector.family import VectorFamily
from t10.core.codelet import Compiled
from t10.core.task import Task

ALL_APART = frozenset({(0, 1), (0, 2), (1, 2)})


def compiled(task: Task) -> Compiled:
    made = VectorFamily().compile(task)
    assert made is not None
    return made


@pytest.mark.parametrize("apart", [frozenset[tuple[int, int]](), ALL_APART])
def test_one_worker_does_a_few_points_alone(apart: frozenset[tuple[int, int]]) -> None:
    """To find a share takes as long as some points: a quotient, which takes 72 cycles of these, took 192."""
    quotient = replace(elementwise("arith.divf", ["f32"] * 3, 1), apart=apart)
    assert run_task(quotient, compiled(quotient)).cycles <= 120
    for dtype in ("f16", "f32", "i32"):
        for n in range(1, 5):
            opcode = "arith.mulf" if dtype != "i32" else "arith.addi"
            task = replace(elementwise(opcode, [dtype] * 3, n), apart=apart)
            assert "one worker alone" in compiled(task).codelet.summary
            run_task(task, compiled(task)).check()
    assert "alone" not in compiled(elementwise("arith.mulf", ["f32"] * 3, 5)).codelet.summary
