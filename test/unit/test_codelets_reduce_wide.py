"""Sums of what lies in interleaved memory take 16 bytes at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.reduce.family import ReduceFamily
from t10.core.codelet import Compiled
from t10.core.scalar import identity
from t10.core.task import Task, TaskOperand

TOLERANCE = {"f16": 1.2e-2, "f32": 2e-5}
CASES = [(7, 384, "f16", 147), (7, 384, "f32", 240), (31, 96, "f32", 190), (3, 37, "f32", 75)]
"""Parts, columns, their type, and the slots of six cycles that their sums take at most."""


def sums(n_parts: int, columns: int, dtype: str, *, initial: bool) -> Task:
    """Return the sum of parts that lie at multiples of 16 bytes in interleaved memory."""
    x = TaskOperand(dtype, (-(-columns // 8) * 8, 1), 16, is_interleaved=True)
    return Task((n_parts, columns), (x,), TaskOperand(dtype, (0, 1)), "sum", identity(), (0,), initial)


def compiled(task: Task) -> Compiled:
    """Return a task as vector code."""
    found = ReduceFamily().compile(task)
    assert found is not None
    return found


@pytest.mark.parametrize(("n_parts", "columns", "dtype", "slots"), CASES)
@pytest.mark.parametrize("initial", [True, False])
def test_parts_in_interleaved_memory_take_16_bytes_at_a_time(
    n_parts: int, columns: int, dtype: str, slots: int, initial: bool
) -> None:
    task = sums(n_parts, columns, dtype, initial=initial)
    code = compiled(task)
    run = run_task(task, code)
    run.check(rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert run.cycles <= 6 * slots
    assert "ld128" in code.codelet.assembly
    assert code.codelet.fields[0].is_interleaved


@pytest.mark.parametrize(("n_parts", "columns", "dtype", "slots"), CASES)
def test_parts_elsewhere_or_at_odd_places_do_not(n_parts: int, columns: int, dtype: str, slots: int) -> None:
    task = sums(n_parts, columns, dtype, initial=False)
    (x,) = task.inputs
    for other in (
        replace(x, is_interleaved=False),
        replace(x, align_bytes=8),
        replace(x, strides=(x.strides[0] + 2, 1)),
    ):
        assert "ld128" not in compiled(replace(task, inputs=(other,))).codelet.assembly


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [sums(n, m, dtype, initial=n > 7) for n, m, dtype, _ in CASES]
    check_cpp_references([(task, compiled(task)) for task in tasks], tmp_path)
