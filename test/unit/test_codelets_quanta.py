"""Quantised numbers that bodies dequantise again stay floats; every bit is as over bytes."""

from __future__ import annotations

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.quantised_bodies import SIGNED, UNSIGNED, quantised

from t10.codelets.body.expand import expand
from t10.codelets.vector.family import VectorFamily
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.sim.scalar_eval import evaluate

HALVES = np.arange(-600, 600, dtype=np.float32) / 2
AROUND = np.array([2.0**n for n in range(-3, 31)], np.float32)
SPECIAL = np.array(
    [0.0, -0.0, -0.25, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38, 8388609.0, -4194305.5], np.float32
)
X = np.concatenate([HALVES, np.nextafter(HALVES, np.float32(np.inf)), AROUND, np.negative(AROUND), SPECIAL])
INTEGER_OPCODES = frozenset({"arith.fptosi", "arith.trunci", "arith.sitofp", "arith.uitofp", "arith.extui"})


def results(function: ScalarFunction) -> np.ndarray:
    return evaluate(function, [X], lambda axis: np.zeros(1, np.int64))


def assert_same_bits(function: ScalarFunction) -> ScalarFunction:
    found, expected = results(expand(function, ("f32",))), results(function)
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))
    return expand(function, ("f32",))


WAYS = [
    pytest.param(zero, limits, back, id=f"{back[6:]}-{zero}")
    for limits, back in ((SIGNED, "arith.sitofp"), (UNSIGNED, "arith.uitofp"))
    for zero in (None, 0.0, -7.0, 113.0)
]


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("zero", "limits", "back"), WAYS)
def test_no_way_leads_over_bytes(
    zero: float | None, limits: tuple[float, float], back: str, *, swapped: bool
) -> None:
    made = assert_same_bits(quantised(zero, limits, back, swapped=swapped))
    assert not INTEGER_OPCODES & {op.opcode for op in made.ops}


@pytest.mark.parametrize(("zero", "limits", "back"), WAYS)
def test_bytes_are_rounded_by_two_sums(zero: float | None, limits: tuple[float, float], back: str) -> None:
    made = assert_same_bits(quantised(zero, limits, ""))
    assert "arith.cmpf" not in {op.opcode for op in made.ops}, f"{back} rounds by comparing"


@pytest.mark.parametrize(
    ("zero", "limits", "back"),
    [
        pytest.param(None, UNSIGNED, "arith.sitofp", id="bytes that wrap to negative numbers"),
        pytest.param(None, SIGNED, "arith.uitofp", id="negative numbers that wrap"),
        pytest.param(0.5, SIGNED, "arith.sitofp", id="a zero point that is no whole number"),
        pytest.param(None, (-3.5, 3.5), "arith.sitofp", id="fractional limits"),
        pytest.param(None, (127, -128), "arith.sitofp", id="limits that cross"),
        pytest.param(2.0**23, SIGNED, "arith.sitofp", id="a zero point that is too large"),
        pytest.param(None, (-(2.0**24), 2.0**24), "arith.sitofp", id="limits that are too large"),
    ],
)
def test_what_is_not_the_same_stays(zero: float | None, limits: tuple[float, float], back: str) -> None:
    made = assert_same_bits(quantised(zero, limits, back))
    assert "arith.fptosi" in {op.opcode for op in made.ops}


@pytest.mark.parametrize("is_float", [False, True])
@pytest.mark.parametrize(("zero", "limits", "back"), WAYS)
def test_code_computes_every_bit(
    zero: float | None, limits: tuple[float, float], back: str, *, is_float: bool
) -> None:
    body = quantised(zero, limits, back if is_float else "")
    x, y = (TaskOperand(dtype, (1,), 8) for dtype in ("f32", body.ops[-1].dtype))
    task = Task((len(X),), (x,), y, "none", body)
    compiled = VectorFamily().compile(task)
    assert compiled is not None
    made = run_task(task, compiled, inputs=[X])
    made.check()
    np.testing.assert_array_equal(np.signbit(made.found), np.signbit(made.expected))
