"""Sums of squares and products along rows go to accumulators; no loop surrounds outputs that have a worker each."""

from __future__ import annotations

import numpy as np
import pytest
from support.codelet_runs import Run, run_task

from t10.codelets.compile import compile_task
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

DISTANCE = ScalarFunction(
    2,
    (
        ScalarOp("arith.extf", (0,), "f32"),
        ScalarOp("arith.subf", (2, 1), "f32"),
        ScalarOp("arith.mulf", (3, 3), "f32"),
    ),
    4,
)
SQUARE = ScalarFunction(1, (ScalarOp("arith.mulf", (0, 0), "f32"),), 1)
PRODUCT = ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f32"),), 2)


def distances(rows: int, n: int) -> Task:
    """Return sums of (x - m)^2 along rows of f16, with an m of f32 for each."""
    inputs = (TaskOperand("f16", (-(-n // 4) * 4, 1), 8), TaskOperand("f32", (1, 0), 8))
    return Task((rows, n), inputs, TaskOperand("f32", (1, 0), 8), "sum", DISTANCE, (1,))


def of_words(rows: int, n: int, body: ScalarFunction) -> Task:
    inputs = (TaskOperand("f32", (-(-n // 2) * 2, 1), 8),) * body.n_inputs
    return Task((rows, n), inputs, TaskOperand("f32", (1, 0), 8), "sum", body, (1,))


def ran(task: Task, inputs: list[np.ndarray] | None = None) -> tuple[Run, str]:
    code = compile_task(task)
    return run_task(task, code, inputs=inputs), code.codelet.assembly


@pytest.mark.parametrize("n", [3, 4, 15, 16, 18, 19, 63, 64, 77, 130])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7, 13])
def test_squared_distances_are_right(rows: int, n: int) -> None:
    run, assembly = ran(distances(rows, n))
    run.check(rtol=1e-5, atol=1e-5)
    are_fours = n % 4 == 0
    # Of few rows pieces may be too short for a loop.
    assert n < 16 or "Reduce_pieces" in assembly or ("f32v4sqacc" if are_fours else "f32v2mac") in assembly


@pytest.mark.parametrize("body", [SQUARE, PRODUCT])
@pytest.mark.parametrize("n", [2, 7, 8, 9, 33, 64])
@pytest.mark.parametrize("rows", [1, 6, 7, 20])
def test_products_of_words_are_right(rows: int, n: int, body: ScalarFunction) -> None:
    run, assembly = ran(of_words(rows, n, body))
    run.check(rtol=2e-5, atol=1e-5)
    assert ("f32v2mac" in assembly) == (n >= 8)


def mixed(*ops: tuple[str, tuple[int, ...]]) -> ScalarFunction:
    """Return a function of an f32 and an f16, which is value 2 once it is widened."""
    made = tuple(ScalarOp(opcode, operands, "f32") for opcode, operands in (("arith.extf", (1,)), *ops))
    return ScalarFunction(2, made, 1 + len(made))


MIXED = {
    "x z": mixed(("arith.mulf", (0, 2))),
    "(x + z)^2": mixed(("arith.addf", (0, 2)), ("arith.mulf", (3, 3))),
    "(x + z) z": mixed(("arith.addf", (0, 2)), ("arith.mulf", (3, 2))),
    "(x + z) x": mixed(("arith.addf", (0, 2)), ("arith.mulf", (3, 0))),
    "|x + z|^2": mixed(("arith.addf", (0, 2)), ("math.absf", (3,)), ("arith.mulf", (4, 4))),
    "x e^z": mixed(("math.exp", (2,)), ("arith.mulf", (0, 3))),
}


@pytest.mark.parametrize("body", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("n", [16, 20, 64, 65, 130])
@pytest.mark.parametrize("rows", [1, 6, 7, 24])
def test_values_of_two_sizes_keep_their_registers_behind_the_loop(
    rows: int, n: int, body: ScalarFunction
) -> None:
    """Values share registers in the loop; what is left of it behind is another schedule of the same."""
    inputs = tuple(TaskOperand(dtype, (-(-n // 4) * 4, 1), 8) for dtype in ("f32", "f16"))
    run, _ = ran(Task((rows, n), inputs, TaskOperand("f32", (1, 0), 8), "sum", body, (1,)))
    run.check(rtol=1e-4, atol=1e-4 * n)


def test_four_squares_take_five_slots() -> None:
    short, long = (ran(distances(12, n))[0].cycles for n in (64, 64 + 4 * 50))
    assert long - short == 2 * 6 * 5 * 50


def test_two_products_take_two_slots() -> None:
    short, long = (ran(of_words(12, n, PRODUCT))[0].cycles for n in (64, 64 + 2 * 50))
    assert long - short == 2 * 6 * 2 * 50


def test_infinities_and_nans_stay_in_their_row() -> None:
    """What lies behind a row is masked before it is squared, and accumulators are empty for the next row."""
    x = np.ones((13, 20), np.float16)
    x[3, 5], x[7, 0], x[:, 18:] = np.inf, np.nan, np.nan
    run, _ = ran(distances(13, 18), [x.reshape(-1)[:-2], np.full(13, 3.0, np.float32)])
    run.check()
    expected = np.full(13, 72.0)
    expected[3], expected[7] = np.inf, np.nan
    np.testing.assert_array_equal(run.found, expected)


@pytest.mark.parametrize("rows", range(1, 9))
def test_outputs_with_a_worker_each_have_no_loop_around(rows: int) -> None:
    operands = TaskOperand("f32", (128, 1), 8), TaskOperand("f32", (1, 0), 8)
    task = Task((rows, 33), operands[:1], operands[1], "max", identity(), (1,))
    run, assembly = ran(task)
    run.check()
    assert ("brnzdec" in assembly) == (rows > 6)
