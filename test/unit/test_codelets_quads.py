"""Numbers of f32 that are rounded to f16 four at a time."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.codelet_runs import run_task

from t10.codelets.count import counted_cycles
from t10.codelets.vector.family import VectorFamily
from t10.core.codelet import Compiled
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

ZERO = ScalarOp("const", (), "f16", "0.0")


def rectified(n: int, *, is_apart: bool = True, inputs: int = 1) -> Task:
    """Return `max(f16(x), 0)` of f32, or of a sum of two."""
    ops = [ScalarOp("arith.addf", (0, 1), "f32")] if inputs == 2 else []
    value = inputs + len(ops)
    ops.append(ScalarOp("arith.truncf", (value - 1 if ops else 0,), "f16"))
    ops += [ZERO, ScalarOp("arith.maximumf", (value, value + 1), "f16")]
    x, y = TaskOperand("f32", (1,), 8), TaskOperand("f16", (1,), 8)
    apart = frozenset(combinations(range(inputs + 1), 2)) if is_apart else frozenset[tuple[int, int]]()
    return Task((n,), (x,) * inputs, y, "none", ScalarFunction(inputs, tuple(ops), value + 2), apart=apart)


def compiled(task: Task) -> Compiled:
    """Return the code of the vector family."""
    found = VectorFamily().compile(task)
    assert found is not None
    return found


def numbers(n: int, seed: int) -> NDArray[Any]:
    """Return numbers on both sides of zero and of f16's limits, some halfway between two of its own, and no numbers."""
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 6, n)).astype(np.float32)
    x[: n // 4] = rng.standard_normal(n // 4).astype(np.float16).astype(np.float32) * np.float32(1 + 2**-11)
    x[[3, n // 2]], x[5], x[n - 2], x[9] = np.nan, np.inf, -np.inf, -0.0
    return x


@pytest.mark.parametrize("n", [24, 96, 97, 98, 99, 2880])
@pytest.mark.parametrize("is_apart", [True, False])
@pytest.mark.parametrize("inputs", [1, 2])
def test_four_numbers_are_rounded_at_once(inputs: int, n: int, *, is_apart: bool) -> None:
    task = rectified(n, is_apart=is_apart, inputs=inputs)
    made = compiled(task)
    # A sum takes as many slots either way.
    assert inputs == 2 or "f32v4tof16" in made.codelet.assembly
    ran = run_task(task, made, inputs=[numbers(n, seed) for seed in range(inputs)])
    ran.check()
    assert ran.cycles == counted_cycles(task)


def test_a_rectified_sum_takes_three_slots_for_four_numbers() -> None:
    """Two slots for conversions made it four."""
    task = rectified(2880)
    cycles = counted_cycles(task)
    assert cycles is not None
    assert cycles < 6 * (2880 / 6 / 4 * 3 + 30)
