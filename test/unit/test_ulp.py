"""Accuracy of functions in units of the last place, on the plan simulator and in assembly (docs/numerics.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from support.codelet_runs import run_task

from t10.codelets.compile import compile_task
from t10.codelets.count import cycles_of
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.core.task import Task, TaskOperand

N = 1024
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """A function's range of arguments, and the most units of the last place of f32 and f16 it may be away on a tile."""

    low: float
    high: float
    tile: float
    half: float = 1.5


PLAN, HALF = 4.0, 1.5
"""The most units anything may be away in f32 on the plan simulator (numpy's promise), and in f16 anywhere."""

FIGURES = {
    "exp": Accuracy(-80, 80, 0.51), "exp2": Accuracy(-120, 120, 0.51), "expm1": Accuracy(-10, 80, 2),
    "log": Accuracy(1e-30, 1e30, 0.51), "log2": Accuracy(1e-30, 1e30, 0.51), "log10": Accuracy(1e-30, 1e30, 2.5),
    "log1p": Accuracy(-0.9, 1e6, 2.5), "sqrt": Accuracy(0, 1e30, 0.51), "rsqrt": Accuracy(1e-30, 1e30, 0.51),
    "cbrt": Accuracy(-1e6, 1e6, 1), "erf": Accuracy(-4, 4, 3, 1.51), "tanh": Accuracy(-9, 9, 0.51),
    "sin": Accuracy(-3, 3, 2.5), "cos": Accuracy(-1.5, 1.5, 2.5), "tan": Accuracy(-1.5, 1.5, 4),
    "asin": Accuracy(-1, 1, 2.5), "acos": Accuracy(-1, 0.99, 2.5), "atan": Accuracy(-100, 100, 3),
    "sinh": Accuracy(-80, 80, 4), "cosh": Accuracy(-80, 80, 2.5), "asinh": Accuracy(-1e6, 1e6, 3),
    "acosh": Accuracy(1.01, 1e6, 3), "atanh": Accuracy(-0.99, 0.99, 3),
}  # fmt: skip


def arguments(name: str, dtype: str) -> NDArray[np.floating]:
    """Return arguments over a function's range: dense near 0, and evenly spread."""
    figures = FIGURES[name]
    rng = np.random.default_rng(0)
    low, high = max(figures.low, -6e4), min(figures.high, 6e4)
    if dtype == "f32":
        low, high = figures.low, figures.high
    spread = rng.uniform(low, high, N // 2)
    near = np.exp(rng.uniform(math.log(max(low, 1e-4)), math.log(high), N // 2))
    near *= rng.choice([-1, 1], near.size) if low < 0 else 1
    return np.clip(np.concatenate([spread, near]), low, high).astype(
        np.float16 if dtype == "f16" else np.float32
    )


def exact(name: str, x: NDArray[np.floating]) -> Doubles:
    """Return a function in f64."""
    wide = x.astype(np.float64)
    if name == "erf":
        return np.array([math.erf(v) for v in wide])
    names = {"rsqrt": "sqrt", "asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
             "acosh": "arccosh", "atanh": "arctanh"}  # fmt: skip
    result = getattr(np, names.get(name, name))(wide)
    return 1 / result if name == "rsqrt" else result


def units_away(found: NDArray[np.floating], wanted: Doubles) -> float:
    """Return the largest distance in units of the last place of the type's exact result, denormals' where it is one."""
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.spacing(np.abs(wanted).astype(found.dtype)).astype(np.float64)
    fits = np.isfinite(unit)
    return float((np.abs(found.astype(np.float64) - wanted)[fits] / unit[fits]).max())


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("name", FIGURES)
def test_functions_are_as_accurate_as_documented(name: str, dtype: str) -> None:
    body = ScalarFunction(1, (ScalarOp(f"math.{name}", (0,), dtype),), 1)
    operand = TaskOperand(dtype, (1,), 8)
    task = Task((N,), (operand,), operand, "none", body)
    x = arguments(name, dtype)
    run = run_task(task, compile_task(task), inputs=[x])
    plan, tile = (units_away(values, exact(name, x)) for values in (run.expected, run.found))
    assert plan <= (PLAN if dtype == "f32" else HALF), f"plan: {plan}"
    assert tile <= (FIGURES[name].tile if dtype == "f32" else FIGURES[name].half), f"tile: {tile}"


def test_the_error_function_of_every_f16() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    operand = TaskOperand("f16", (1,), 8)
    task = Task(
        (x.size,), (operand,), operand, "none", ScalarFunction(1, (ScalarOp("math.erf", (0,), "f16"),), 1)
    )
    found = run_task(task, compile_task(task), inputs=[x]).found
    is_number = ~np.isnan(x)
    assert units_away(found[is_number], exact("erf", x[is_number])) <= FIGURES["erf"].half
    assert np.isnan(found[~is_number]).all()
    assert (np.signbit(found) == np.signbit(x))[is_number].all()


@pytest.mark.parametrize(
    ("opcode", "factor"), [("arith.divf", 1.4140625), ("arith.mulf", 0.70703125), ("arith.mulf", 1.19)]
)
def test_the_error_function_of_multiples_of_every_f16(opcode: str, factor: float) -> None:
    """The multiple is part of the polynomial: 4 slots for four numbers less than an erf of a quotient."""
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    constant = float(np.float16(factor))
    ops = (
        ScalarOp("const", (), "f16", constant_text(constant)),
        ScalarOp(opcode, (0, 1), "f16"),
        ScalarOp("math.erf", (2,), "f16"),
    )
    operand = TaskOperand("f16", (1,), 8)
    task = Task((x.size,), (operand,), operand, "none", ScalarFunction(1, ops, 3))
    found = run_task(task, compile_task(task), inputs=[x]).found
    is_number = ~np.isnan(x)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
        scaled = wide / constant if opcode == "arith.divf" else wide * constant
    assert units_away(found[is_number], exact("erf", scaled[is_number])) <= 2.0
    assert np.isnan(found[~is_number]).all()
    assert (np.signbit(found) == np.signbit(x))[is_number & (x != 0)].all()
    cycles = cycles_of(task)
    assert cycles is not None
    assert cycles < 2.6 * x.size


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("exponent", [1 / 3, 2.7, -1.3, 7.0, -8.0, 100.5, 1e-3, 0.4999])
def test_powers_of_constants_are_as_accurate_as_documented(exponent: float, dtype: str) -> None:
    """Over all results that are finite and no denormals; of f32 from denormal arguments on."""
    kind = np.float16 if dtype == "f16" else np.float32
    exponent = float(kind(exponent))
    ops = (ScalarOp("const", (), dtype, repr(exponent)), ScalarOp("math.powf", (0, 1), dtype))
    operand = TaskOperand(dtype, (1,), 8)
    task = Task((N,), (operand,), operand, "none", ScalarFunction(1, ops, 2))
    least, most = (-14, 15.9) if dtype == "f16" else (-126, 127.9)
    ends = sorted((least / exponent, most / exponent))
    low, high = max(ends[0], least - 20 if dtype == "f32" else least), min(ends[1], most)
    x = np.exp2(np.random.default_rng(0).uniform(low, high, N)).astype(kind)
    run = run_task(task, compile_task(task), inputs=[x])
    assert units_away(run.found, x.astype(np.float64) ** exponent) <= (2.5 if dtype == "f32" else HALF)


@pytest.mark.parametrize("exponent", [1.3, -0.3, 3.5, 5.0, -5.0, 6.0, -6.0, 1e5])
def test_powers_of_constants_at_the_ends(exponent: float) -> None:
    x = np.array([0, -0.0, 1, -1, 2, -2, 1e-40, 3e38, np.inf, -np.inf, np.nan, 0.5], np.float32)
    ops = (ScalarOp("const", (), "f32", repr(exponent)), ScalarOp("math.powf", (0, 1), "f32"))
    operand = TaskOperand("f32", (1,), 8)
    task = Task((len(x),), (operand,), operand, "none", ScalarFunction(1, ops, 2))
    found = run_task(task, compile_task(task), inputs=[x]).found
    with np.errstate(all="ignore"):
        wanted = x ** np.float32(exponent)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    is_number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(wanted)[is_number])


def test_powers_lose_with_the_size_of_the_result() -> None:
    rng = np.random.default_rng(0)
    x = np.exp2(rng.uniform(-126, 127, N)).astype(np.float32)
    y = (rng.uniform(-126, 127, N) / np.log2(x.astype(np.float64))).astype(np.float32)
    operand = TaskOperand("f32", (1,), 8)
    body = ScalarFunction(2, (ScalarOp("math.powf", (0, 1), "f32"),), 2)
    task = Task((N,), (operand, operand), operand, "none", body)
    found = run_task(task, compile_task(task), inputs=[x, y]).found
    exact = x.astype(np.float64) ** y.astype(np.float64)
    away = np.abs(found - exact) / np.spacing(exact.astype(np.float32))
    assert (away <= 2 + 1.05 * np.abs(np.log2(exact))).all()
