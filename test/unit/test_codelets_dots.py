"""Products of a matrix and a vector as dot products: executed, counted, and compared with numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support import specs
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.count import counted_cycles, cycles_of, run_cycles
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.matrix.dots import dots
from t10.codelets.matrix.family import compiled, ways
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.cost.bound.dots import dots_bound
from t10.cost.work import apart, sub_task

BODY = ScalarFunction(
    2,
    (
        ScalarOp("arith.extf", (0,), "f32"),
        ScalarOp("arith.extf", (1,), "f32"),
        ScalarOp("arith.mulf", (2, 3), "f32"),
    ),
    4,
)


def matvec(n: int, k: int, gap: int = 0, *, is_matrix_first: bool = False) -> Task:
    """y[n] = W[n, k] x[k], rows of W `gap` elements apart."""
    vector, matrix = TaskOperand("f16", (0, 1), 8), TaskOperand("f16", (k + gap, 1), 8)
    inputs = (matrix, vector) if is_matrix_first else (vector, matrix)
    return apart(Task((n, k), inputs, TaskOperand("f32", (1, 0), 4), "sum", BODY, (1,)))


@pytest.mark.parametrize("seed", range(12))
def test_dot_products_are_exact_and_counted(seed: int) -> None:
    rng = Random(seed)
    n, k = rng.choice((1, 2, 5, 6, 7, 40, 61)), 4 * rng.randint(3, 40)
    task = matvec(n, k, 4 * rng.randint(0, 3), is_matrix_first=rng.random() < 0.5)
    for code in dots(task):
        run = run_task(task, code, seed=seed)
        run.check(rtol=1e-4, atol=1e-3)
        assert run.cycles == cycles_where_it_lies(task, code)
    assert counted_cycles(task) == run_cycles(task)
    assert n == 1 or dots(task)


def test_the_cpp_reference_computes_the_same(tmp_path: Path) -> None:
    tasks = [matvec(n, k, gap) for n, k, gap in ((1, 12, 0), (5, 16, 4), (40, 64, 0), (61, 100, 8))]
    tasks.append(matvec(13, 24, 4, is_matrix_first=True))
    check_cpp_references([(task, code) for task in tasks for code in dots(task)], tmp_path)


def test_long_rows_take_more_than_three_and_a_half_weights_per_cycle() -> None:
    for n, k in ((456, 160), (214, 336), (138, 512)):
        task = matvec(n, k)
        engine = min(cycles_where_it_lies(task, compiled(way)) for way in ways(task))
        cycles = cycles_of(task)
        assert cycles is not None
        assert n * k / cycles > 3.6
        assert cycles < 0.94 * engine


def test_short_rows_are_left_to_the_engine() -> None:
    assert "dots" not in compile_task(matvec(456, 16)).codelet.name


@pytest.mark.parametrize(
    "task",
    [
        replace(matvec(12, 64), initial=False),
        replace(matvec(12, 64), apart=frozenset[tuple[int, int]]()),
        matvec(12, 66),
        matvec(12, 64, 2),
        matvec(12, 8),
        matvec(12, 2056),
        matvec(12, 64, 4096),
    ],
    ids=("adds", "together", "odd", "odd rows", "short", "long", "far"),
)
def test_what_is_no_such_product_is_left_alone(task: Task) -> None:
    assert dots(task) == ()


def test_no_box_takes_less_than_the_bound() -> None:
    rng, shares = Random(7), list[float]()
    like = specs.matmul(1, 4096, 2048)
    weights = specs.operand("b", "weight", "f16", (4096, 2048), specs.dims(1, 2))
    spec = replace(like, inputs=(like.inputs[0], weights))
    for _ in range(40):
        box = (1, rng.randint(2, 300), 4 * rng.randint(3, 60))
        for code in dots(sub_task(spec, box)):
            cycles = cycles_where_it_lies(sub_task(spec, box), code)
            bound = dots_bound(spec, np.array([box]))
            assert bound is not None
            assert bound[0] <= cycles
            shares.append(bound[0] / cycles)
    assert len(shares) == 40
    assert min(shares) > 0.95
