"""Sums of parts in interleaved memory: executed, counted, bounded, and compared with numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.count import cycles_of
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.reduce.parts import parts
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand
from t10.core.tile import N_WORKERS
from t10.cost.bound.columns import Table
from t10.cost.bound.reduction import reduction_bound
from t10.cost.combine import combine_operator

SLOT_CYCLES = 6


TOLERANCE = {"f32": 2e-5, "f16": 2e-3}


def sums(
    n_parts: int,
    columns: int,
    dtype: str = "f32",
    *,
    initial: bool = False,
    is_wide: bool = True,
    gap: int = 0,
) -> Task:
    """Return the sum of parts in interleaved memory, where the sums lie as well if they are wide."""
    source = TaskOperand(dtype, (-(-columns // 8) * 8 + 8 * gap, 1), 16, is_interleaved=True)
    output = TaskOperand(dtype, (0, 1), 16 if is_wide else 8, is_wide)
    return Task((n_parts, columns), (source,), output, "sum", identity(), (0,), initial)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("seed", range(24))
def test_sums_of_parts_are_right_counted_and_not_below_their_bound(seed: int, dtype: str) -> None:
    rng, least = Random(seed), 2 if dtype == "f32" else 4
    n_parts, columns = (
        rng.choice((2, 3, 5, 16, 32, 64)),
        least * rng.choice((1, 2, 3, 4, 11, 12, 13, 55, 220)),
    )
    is_wide, initial = rng.random() < 0.7, rng.random() < 0.5
    task = sums(n_parts, columns, dtype, initial=initial, is_wide=is_wide, gap=rng.randint(0, 2))
    (code,) = parts(task)
    run = run_task(task, code, seed=seed)
    run.check(rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
    assert run.cycles == cycles_where_it_lies(task, code)
    one = combine_operator(dtype, "sum")
    bound = reduction_bound(
        one,
        Table(np.array([n_parts]), np.array([columns])),
        initial=initial,
        extents=Table(*one.extents),
    )
    assert bound is not None
    assert bound[0] <= run.cycles
    # Few sums are added up faster where each has a worker of its own, or a piece of them as the bound takes it. Walks
    # across columns begin two slots sooner than this code, and the bound is of both.
    fastest = cycles_of(task) if columns <= N_WORKERS else run.cycles
    assert fastest is not None
    room = 12 if columns <= N_WORKERS else 6
    assert fastest <= bound[0] + room * SLOT_CYCLES + (not is_wide) * run.cycles


@pytest.mark.parametrize(("dtype", "lanes", "more"), [("f32", 4, 3), ("f16", 8, 5)])
def test_a_vector_takes_its_loads_and_a_few_slots(dtype: str, lanes: int, more: int) -> None:
    tasks = [sums(7, n_vectors * lanes, dtype) for n_vectors in (6, 12)]
    few, many = (run_task(task, parts(task)[0]).cycles for task in tasks)
    assert many - few == SLOT_CYCLES * (7 + more)


def test_partial_sums_are_added_up_so() -> None:
    assert compile_task(sums(5, 440)).codelet.name.startswith("Reduce_parts")


def test_the_cpp_reference_computes_the_same(tmp_path: Path) -> None:
    tasks = [sums(2, 6), sums(3, 110, initial=True), sums(16, 22, is_wide=False), sums(32, 440, gap=1)]
    tasks += [sums(3, 108, "f16", initial=True), sums(16, 440, "f16", gap=1)]
    check_cpp_references([(task, parts(task)[0]) for task in tasks], tmp_path)


def _tasks_of_other_kinds() -> dict[str, Task]:
    task = sums(4, 24)
    (source,) = task.inputs
    doubled = ScalarFunction(1, (ScalarOp("arith.addf", (0, 0), "f32"),), 1)
    return {
        "elsewhere": replace(task, inputs=(replace(source, is_interleaved=False),)),
        "at odd places": replace(task, inputs=(replace(source, align_bytes=8),)),
        "odd parts": replace(task, inputs=(replace(source, strides=(26, 1)),)),
        "odd columns": sums(4, 23),
        "two halves more": sums(4, 26, "f16"),
        "one part": sums(1, 24),
        "many parts": sums(65, 24),
        "maxima": replace(task, combine="max"),
        "widened": replace(task, inputs=(replace(source, dtype="f16"),)),
        "computed": replace(task, body=doubled),
    }


@pytest.mark.parametrize("name", _tasks_of_other_kinds())
def test_other_sums_are_left_alone(name: str) -> None:
    assert parts(_tasks_of_other_kinds()[name]) == ()
