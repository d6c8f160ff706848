"""Sums of what lies in interleaved memory, of parts and of rows, take 16 bytes at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.reduce.family import ReduceFamily
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction, ScalarOp, identity
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


ROWS = [(1, 96, "f16", 32), (2, 128, "f16", 51), (13, 64, "f16", 83), (1, 96, "f32", 43), (5, 40, "f32", 41)]
"""Rows, their elements, the type of these, and the slots of six cycles that their sums in f32 take at most."""


def row_sums(n_rows: int, columns: int, dtype: str, *, initial: bool, total: str = "f32") -> Task:
    """Return the sums of rows in interleaved memory."""
    x, body = TaskOperand(dtype, (columns, 1), 16, is_interleaved=True), identity()
    if dtype != total:
        body = ScalarFunction(1, (ScalarOp("arith.extf", (0,), "f32"),), 1)
    return Task((n_rows, columns), (x,), TaskOperand(total, (1, 0)), "sum", body, (1,), initial)


@pytest.mark.parametrize(("n_rows", "columns", "dtype", "slots"), ROWS)
@pytest.mark.parametrize("initial", [True, False])
def test_rows_in_interleaved_memory_take_16_bytes_at_a_time(
    n_rows: int, columns: int, dtype: str, slots: int, initial: bool
) -> None:
    task = row_sums(n_rows, columns, dtype, initial=initial)
    run = run_task(task, compiled(task))
    run.check(rtol=1e-5, atol=1e-5)
    assert run.cycles <= 6 * (slots if initial else slots + 3)
    assert "ld128" in compiled(task).codelet.assembly
    (x,) = task.inputs
    # Rows of no whole 16 bytes, and such as begin anywhere, are none.
    lanes = 8 if dtype == "f16" else 4
    for other in (
        replace(task, inputs=(replace(x, is_interleaved=False),)),
        replace(task, inputs=(replace(x, align_bytes=8),)),
        row_sums(n_rows, columns + lanes // 2, dtype, initial=initial),
    ):
        assert "ld128" not in compiled(other).codelet.assembly
        run_task(other, compiled(other)).check(rtol=1e-5, atol=1e-5)


def test_rows_of_f16_are_summed_in_f32_and_rounded_once() -> None:
    task = row_sums(1, 128, "f16", initial=True, total="f16")
    assert "f16v8acc" in compiled(task).codelet.assembly
    run_task(task, compiled(task)).check(rtol=1e-3, atol=1e-3)


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [sums(n, m, dtype, initial=n > 7) for n, m, dtype, _ in CASES]
    tasks += [row_sums(n, m, dtype, initial=n > 1) for n, m, dtype, _ in ROWS]
    check_cpp_references([(task, compiled(task)) for task in tasks], tmp_path)
