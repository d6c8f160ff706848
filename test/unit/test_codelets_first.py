"""Products whose sums begin with a row of partials: executed and compared with numpy, and counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.count import counted_cycles, run_cycles
from t10.codelets.matrix.family import MatrixFamily, compiled, ways
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

PAIRS = tuple((i, j) for i in range(4) for j in range(i + 1, 4))
BODY = ScalarFunction(
    3,
    (
        ScalarOp("arith.extf", (0,), "f32"),
        ScalarOp("arith.extf", (1,), "f32"),
        ScalarOp("arith.mulf", (3, 4), "f32"),
    ),
    5,
)
FIRST = 2


def biased(m: int, n: int, k: int, *, is_apart: bool = True, is_interleaved: bool = True) -> Task:
    """C[m, n] = B[n] + sum of X[m, k] W[n, k]."""
    rows = (("f16", (k, 0, 1)), ("f16", (0, k, 1)), ("f16", (0, 1, 0)), ("f32", (n, 1, 0)))
    *inputs, output = (TaskOperand(dtype, strides, 16, is_interleaved) for dtype, strides in rows)
    apart = frozenset(PAIRS if is_apart else ())
    return Task((m, n, k), tuple(inputs), output, "sum", BODY, (2,), apart=apart, first=FIRST)


def without(task: Task) -> Task:
    """Return the same product without the partials it begins with."""
    body = ScalarFunction(2, (*BODY.ops[:2], ScalarOp("arith.mulf", (2, 3), "f32")), 4)
    apart = frozenset({(0, 1), (0, 2), (1, 2)}) if task.apart else frozenset[tuple[int, int]]()
    return replace(task, inputs=task.inputs[:FIRST], body=body, apart=apart, first=None)


def check(task: Task, found: Compiled, seed: int = 0) -> None:
    run = run_task(task, found, seed=seed)
    run.check(rtol=1e-4, atol=1e-3)
    assert run.cycles == counted_cycles(task) == run_cycles(task)


@pytest.mark.parametrize("seed", range(16))
def test_sums_begin_with_a_row(seed: int) -> None:
    rng = Random(seed)
    task = biased(rng.randint(2, 60), 8 * rng.randint(1, 12), 4 * rng.randint(4, 24))
    operands = [replace(o, is_interleaved=rng.random() < 0.7) for o in task.operands]
    apart = frozenset(pair for pair in PAIRS if rng.random() < 0.7)
    task = replace(task, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart)
    check(task, compile_task(task), seed)


@pytest.mark.parametrize("k", [17, 30, 63])
def test_lines_that_are_copied_first_do_as_well(k: int) -> None:
    task = biased(45, 64, k)
    x, w, first = task.inputs
    # Lines lie 64 apart, and what is behind them is anything.
    far = [replace(o, strides=tuple(64 if s == k else s for s in o.strides)) for o in (x, w)]
    for each in (task, replace(task, inputs=(*far, first))):
        check(each, compile_task(each))


@pytest.mark.parametrize("access", ["triple", "pair", "single"])
def test_every_access_gives_the_same(access: str) -> None:
    task = biased(45, 64, 64, is_apart=access != "single")
    if access == "pair":
        task = replace(task, output=replace(task.output, is_interleaved=False))
    found = [way for way in ways(task) if way.structure.begin == access]
    assert found
    for way in found:
        check(task, compiled(way))


def test_rows_of_the_weights_stream_just_as_well() -> None:
    task = biased(40, 32, 48)
    x, w, first = task.inputs
    swapped = replace(task, inputs=(w, x, first))
    check(swapped, compile_task(swapped))


def test_a_first_row_costs_next_to_nothing() -> None:
    task = biased(45, 64, 64)
    more = (counted_cycles(task) or 0) - (counted_cycles(without(task)) or 0)
    assert 0 < more < 700


@pytest.mark.parametrize(
    "other",
    [
        replace(biased(45, 12, 64)),
        replace(biased(45, 64, 12)),
        replace(biased(1, 64, 64)),
    ],
)
def test_what_the_engine_does_not_begin_so_is_declined(other: Task) -> None:
    assert MatrixFamily().compile(other) is None


def test_references_in_cpp_do_the_same(tmp_path: Path) -> None:
    cases = [biased(45, 64, 64), biased(7, 24, 20), biased(45, 64, 64, is_interleaved=False, is_apart=False)]
    check_cpp_references([(task, compile_task(task)) for task in cases], tmp_path)
