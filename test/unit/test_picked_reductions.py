"""Reductions that pick what they combine by their place along a short axis, as means and squares of the same rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.chip import load_chip
from t10.codelets.body.picks import picked, picking_axes
from t10.codelets.reduce.family import ReduceFamily
from t10.codelets.reduce.picked import picking_axis
from t10.core.expression import AxisSizes, Combine
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.cost.bound.least import LeastSteps
from t10.cost.counted import CountedSteps
from t10.profile.notation import operator

REDUCE = ReduceFamily()


def moments(axis: int, *, dtype: str = "f16") -> ScalarFunction:
    """x at place 0, its square at others."""
    wide = (ScalarOp("arith.extf", (0,), "f32"),) if dtype == "f16" else ()
    x, first = len(wide), 1 + len(wide)
    return ScalarFunction(
        1,
        (
            *wide,
            ScalarOp("index", (), "index", str(axis)),
            ScalarOp("const", (), "index", "0"),
            ScalarOp("arith.cmpi", (first, first + 1), "i1", "eq"),
            ScalarOp("arith.mulf", (x, x), "f32"),
            ScalarOp("arith.select", (first + 2, x, first + 3), "f32"),
        ),
        first + 4,
    )


def task(
    rows: int, n: int, places: int = 2, *, dtype: str = "f16", outer: bool = False, combine: Combine = "sum",
    initial: bool = True, origin: AxisSizes = (0, 0, 0),
) -> Task:  # fmt: skip
    """Rows of which several things are combined, whose results lie beside each other or (`outer`) one after another."""
    stride = -(-n // 8) * 8
    strides = (1, rows, 0) if outer else (places, 1, 0)
    return Task((rows, places, n), (TaskOperand(dtype, (stride, 0, 1), 16),), TaskOperand("f32", strides, 16),
                combine, moments(1, dtype=dtype), (2,), initial, origin=origin)  # fmt: skip


def checked(one: Task) -> int:
    """Run a task as code of its own, compare with what it means, and return its cycles."""
    found = REDUCE.compile(one)
    assert found is not None
    assert "picked" in found.codelet.name or one.extents[1] == 1
    run = run_task(one, found)
    run.check(rtol=2e-5, atol=2e-5)
    return run.cycles


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("n", [4, 7, 16, 30, 48, 71, 130])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 6, 13])
def test_rows_of_any_number_and_length(rows: int, n: int, dtype: str) -> None:
    for outer in (False, True):
        for initial in (True, False):
            checked(task(rows, n, dtype=dtype, outer=outer, initial=initial))


def test_places_begin_where_the_core_does() -> None:
    for first in range(3):
        checked(task(3, 40, places=1, origin=(0, first, 0)))
        checked(task(3, 40, places=3, origin=(0, first, 0)))


def test_results_far_from_one_another() -> None:
    checked(task(15_000, 4, outer=True))


def test_maxima_are_picked_too() -> None:
    checked(task(5, 60, combine="max", dtype="f32"))


def test_few_rows_take_no_longer_than_one_of_the_sums() -> None:
    for rows in (1, 2, 3):
        both = task(rows, 48)
        one = replace(both, extents=(rows, 1, 48), body=picked(both.body, 1, 0), origin=())
        found = REDUCE.compile(one)
        assert found is not None
        assert checked(both) <= 1.4 * run_task(one, found).cycles


def test_what_is_left_to_others() -> None:
    plain = task(4, 16)
    assert picking_axis(plain) == 1
    assert picking_axis(replace(plain, output=TaskOperand("f16", (2, 1, 0), 16))) is None, "two share a word"
    assert picking_axis(task(2, 16, places=5)) is None
    moving = replace(plain, inputs=(TaskOperand("f16", (16, 64, 1), 16),))
    assert picking_axis(moving) is None, "another input at each place"


def test_an_index_that_is_used_otherwise_picks_nothing() -> None:
    used = ScalarFunction(
        1,
        (
            ScalarOp("index", (), "index", "1"),
            ScalarOp("const", (), "index", "3"),
            ScalarOp("arith.cmpi", (1, 2), "i1", "slt"),
            ScalarOp("const", (), "f32", "0.0"),
            ScalarOp("arith.select", (3, 0, 4), "f32"),
        ),
        5,
    )
    assert picking_axes(used) == ()
    assert picking_axes(moments(1)) == (1,)


def test_a_step_takes_as_long_as_its_slowest_place() -> None:
    square = "@y c0 cmpi:eq 0 extf>f32 0 extf>f32 0 extf>f32 exp mulf select"
    spec = operator("reduction", "m k -> m y", "f16", square, "sum", {"m": 8, "k": 64, "y": 2})
    chip = load_chip("test-16")

    both = np.array([[8, 2, 64], [8, 1, 64]])
    counted = CountedSteps(chip).sub_task(spec, both)
    alone = operator(
        "reduction", "m k -> m", "f16", "0 extf>f32 0 extf>f32 exp mulf", "sum", {"m": 8, "k": 64}
    )
    assert counted[1] == CountedSteps(chip).sub_task(alone, np.array([[8, 64]]))[0]
    assert (LeastSteps(chip.launch_cycles).sub_task(spec, both) <= counted).all()


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [
        task(2, 48),
        task(13, 71),
        task(13, 71, outer=True),
        task(4, 60, places=3),
        task(6, 64, dtype="f32"),
        task(2, 96, initial=False),
    ]
    cases = [(one, found) for one in tasks if (found := REDUCE.compile(one)) is not None]
    assert len(cases) == len(tasks)
    check_cpp_references(cases, tmp_path)
