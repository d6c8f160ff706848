"""Sines, cosines and tangents of huge arguments in assembly: right wherever the argument lies, in every family."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.codelet_runs import run_task

from t10.codelets.compile import compile_task
from t10.codelets.loops.family import LoopFamily
from t10.codelets.vector.family import VectorFamily
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

FAMILIES = {"Vector": VectorFamily(), "Loops": LoopFamily()}
NAMES = ("sin", "cos", "tan")
PI_BITS = 400


@lru_cache
def pi() -> int:
    """Return pi times 2^PI_BITS, by Machin's formula."""

    def arc_tangent_of_inverse(n: int) -> int:
        power, total, k = (1 << PI_BITS) // n, 0, 0
        while power:
            total += (-power if k % 2 else power) // (2 * k + 1)
            power, k = power // (n * n), k + 1
        return total

    return 4 * (4 * arc_tangent_of_inverse(5) - arc_tangent_of_inverse(239))


def exact(name: str, x: float) -> float:
    """Return a function of a finite number, whole turns taken off in integers."""
    numerator, denominator = x.as_integer_ratio()
    rest = (numerator << PI_BITS) // denominator % (2 * pi())
    return getattr(math, name)(rest / (1 << PI_BITS))


def task_of(name: str, n: int, stride: int = 1) -> Task:
    body = ScalarFunction(1, (ScalarOp(f"math.{name}", (0,), "f32"),), 1)
    return Task((n,), (TaskOperand("f32", (stride,), 8),), TaskOperand("f32", (1,), 8), "none", body)


def arguments() -> NDArray[np.float32]:
    """Return every power of two, numbers of all sizes, what lies nearest a quarter turn, and where far begins."""
    rng = np.random.default_rng(0)
    spread = np.exp2(rng.uniform(-5, 128, 600)) * rng.choice([-1, 1], 600)
    # No other float is as near to a whole number of quarter turns as the first.
    ends = [16367173 * 2.0**72, 131072.0, -131072.0, 131071.99, (2.0**24 - 1) * 2.0**104, -0.0, 0.0]
    return np.concatenate([np.exp2(np.arange(-20.0, 128)), spread, ends]).astype(np.float32)


def worst(name: str, x: NDArray[np.float32], found: NDArray[Any]) -> float:
    """Return the largest error, of tangents as a part of their slope."""
    wanted = np.array([exact(name, float(v)) for v in x])
    slope = 1 + wanted**2 if name == "tan" else 1.0
    return float((np.abs(found - wanted) / slope).max())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", NAMES)
def test_waves_are_right_for_every_finite_argument(name: str, family: str) -> None:
    x = arguments()
    task = task_of(name, x.size)
    compiled = FAMILIES[family].compile(task)
    assert compiled is not None
    assert worst(name, x, run_task(task, compiled, inputs=[x]).found) < 2e-7


@pytest.mark.parametrize("name", NAMES)
def test_far_arguments_lose_no_bits_near_zeros(name: str) -> None:
    """The slow path is within 4 units of the last place wherever the result lies."""
    x = np.array([v for v in arguments() if abs(v) >= 131072], np.float32)
    task = task_of(name, x.size)
    found = run_task(task, compile_task(task), inputs=[x]).found
    wanted = np.array([exact(name, float(v)) for v in x])
    units = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(np.float32))
    assert units.max() < 4


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", NAMES)
def test_only_infinities_and_nans_give_nans(name: str, family: str) -> None:
    x = np.array([np.inf, 1e9, -np.inf, np.nan, 3.0, -1e38, np.inf], np.float32)
    task = task_of(name, x.size)
    compiled = FAMILIES[family].compile(task)
    assert compiled is not None
    found = run_task(task, compiled, inputs=[x]).found
    np.testing.assert_array_equal(np.isnan(found), ~np.isfinite(x))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100])
def test_waves_in_place_and_in_parts(n: int) -> None:
    """In place the argument is overwritten; few points leave workers without turns, odd ones a single point."""
    x = np.random.default_rng(n).choice(arguments(), n)
    task = task_of("cos", n)
    assert worst("cos", x, run_task(task, compile_task(task), inputs=[x], in_place=0).found) < 2e-7


def test_waves_of_strided_arguments() -> None:
    """A drained loop: its last turn is written out."""
    x = arguments()[:99]
    task = task_of("sin", 33, stride=3)
    assert worst("sin", x[:97:3], run_task(task, compile_task(task), inputs=[x[:97]]).found) < 2e-7


def test_a_wave_amid_other_values_keeps_their_registers() -> None:
    """sin(x k) k + x: what lives around the slow path stays."""
    ops = (
        ScalarOp("arith.mulf", (0, 1), "f32"),
        ScalarOp("math.sin", (2,), "f32"),
        ScalarOp("arith.mulf", (3, 1), "f32"),
        ScalarOp("arith.addf", (4, 0), "f32"),
    )
    rows = TaskOperand("f32", (40, 1), 8)
    task = Task((6, 40), (rows, TaskOperand("f32", (1, 0), 4)), rows, "none", ScalarFunction(2, ops, 5))
    x = np.random.default_rng(0).uniform(-4, 4, 240).astype(np.float32)
    k = np.array([1, 1e6, 3, 1e30, -2e9, 0.5], np.float32)
    found = run_task(task, compile_task(task), inputs=[x, k]).found
    wide = np.repeat(k, 40)
    waves = np.array([exact("sin", float(v)) for v in (x * wide).astype(np.float32)])
    assert (np.abs(found.ravel() - (waves * wide + x)) < 3e-7 * (np.abs(wide) + np.abs(x))).all()


@pytest.mark.parametrize("name", NAMES)
def test_ordinary_arguments_take_the_same_time(name: str) -> None:
    """Cycles depend on data only where an argument is far."""
    task = task_of(name, 300)
    compiled = compile_task(task)
    rng = np.random.default_rng(0)
    near = [rng.uniform(-size, size, 300).astype(np.float32) for size in (0.1, 100, 131071)]
    cycles = {run_task(task, compiled, inputs=[x]).cycles for x in near}
    assert len(cycles) == 1
    assert run_task(task, compiled, inputs=[near[0] * np.float32(1e9)]).cycles > min(cycles)
