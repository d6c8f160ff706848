"""Bodies in primitive operations compute what the whole ones do."""

from __future__ import annotations

import numpy as np
import pytest

from t10.codelets.body.expand import CONSTANT_POWERS, expand
from t10.codelets.body.far import FAR
from t10.codelets.count import cycles_of
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.core.task import Task, TaskOperand
from t10.sim.scalar_eval import evaluate

PRIMITIVE_MATH = {f"math.{name}" for name in (
    "absf", "absi", "exp", "exp2", "log", "log2", "tanh", "sqrt", "rsqrt", "floor", "trunc", "copysign")}  # fmt: skip
WIDE = np.concatenate([-np.geomspace(1e-6, 80, 2000), np.geomspace(1e-6, 80, 2000), [0.0]]).astype(np.float32)
UNIT = np.linspace(-1, 1, 4001, dtype=np.float32)
POSITIVE = np.geomspace(1e-6, 1e6, 4000).astype(np.float32)
ABSOLUTE, RELATIVE = 3e-7, 6e-7


def one(opcode: str, n_inputs: int = 1, dtype: str = "f32") -> ScalarFunction:
    return ScalarFunction(n_inputs, (ScalarOp(opcode, tuple(range(n_inputs)), dtype),), n_inputs)


def run(function: ScalarFunction, *inputs: np.ndarray) -> np.ndarray:
    return evaluate(near(function), inputs, lambda axis: np.zeros(1, np.int64))


def near(function: ScalarFunction) -> ScalarFunction:
    """Return the function as it is where no argument is far."""
    values = list(range(function.n_inputs))
    ops: list[ScalarOp] = []
    for op in function.ops:
        operands = tuple(values[v] for v in op.operands)
        if op.opcode == FAR:
            values.append(operands[-1])
            continue
        values.append(function.n_inputs + len(ops))
        ops.append(ScalarOp(op.opcode, operands, op.dtype, op.attribute))
    return ScalarFunction(function.n_inputs, tuple(ops), values[function.result])


def both(opcode: str, *inputs: np.ndarray, dtype: str = "f32") -> tuple[np.ndarray, np.ndarray]:
    function = one(opcode, len(inputs), dtype)
    expanded = expand(function, (dtype,) * len(inputs))
    assert all(op.opcode.startswith("arith.") or op.opcode in PRIMITIVE_MATH or op.opcode in ("const", FAR)
               for op in expanded.ops)  # fmt: skip
    return run(expanded, *inputs), run(function, *inputs)


@pytest.mark.parametrize(
    ("opcode", "x"),
    [("math.erf", WIDE), ("math.erfc", WIDE), ("math.expm1", WIDE), ("math.log1p", POSITIVE), ("math.log1p", UNIT),
     ("math.log10", POSITIVE), ("math.sinh", WIDE), ("math.cosh", WIDE), ("math.asinh", WIDE),
     ("math.asinh", POSITIVE), ("math.acosh", POSITIVE), ("math.atanh", UNIT), ("math.sin", WIDE),
     ("math.cos", WIDE), ("math.atan", WIDE), ("math.atan", UNIT), ("math.asin", UNIT), ("math.acos", UNIT),
     ("math.cbrt", WIDE)],
)  # fmt: skip
def test_functions_are_within_a_few_units_of_the_last_place(opcode: str, x: np.ndarray) -> None:
    found, expected = both(opcode, x)
    scale = 20 if opcode in ("math.cosh", "math.sinh") else 1
    np.testing.assert_allclose(found, expected, atol=ABSOLUTE, rtol=RELATIVE * scale)


@pytest.mark.parametrize(
    ("opcode", "factor"), [("arith.divf", 1.4142135), ("arith.mulf", 0.7071068), ("arith.mulf", -3.0)]
)
def test_the_polynomial_of_erf_takes_on_a_factor(opcode: str, factor: float) -> None:
    """Nothing but x itself and its square is then alive beside the polynomial: two points find registers."""
    scaled = (
        ScalarOp("const", (), "f32", constant_text(factor)),
        ScalarOp(opcode, (0, 1), "f32"),
        ScalarOp("math.erf", (2,), "f32"),
    )
    function = ScalarFunction(1, scaled, 3)
    expanded = expand(function, ("f32",))
    x = np.concatenate([WIDE, np.array([np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)])
    np.testing.assert_allclose(run(expanded, x), run(function, x), atol=ABSOLUTE, rtol=RELATIVE)
    assert "arith.divf" not in {op.opcode for op in expanded.ops}
    ones = ScalarOp("const", (), "f32", constant_text(1.0))
    gelu = (ones, ScalarOp("arith.addf", (3, 4), "f32"), ScalarOp("arith.mulf", (0, 5), "f32"))
    body = ScalarFunction(1, (*scaled, *gelu, ScalarOp("arith.truncf", (6,), "f16")), 7)
    task = Task((528,), (TaskOperand("f32", (1,)),), TaskOperand("f16", (1,)), "none", body)
    cycles = cycles_of(task)
    assert cycles is not None
    assert cycles < 16 * 528


def test_far_factors_are_left_to_a_product() -> None:
    """Coefficients would leave the range of f32."""
    far = (ScalarOp("const", (), "f32", constant_text(1e6)), ScalarOp("arith.mulf", (0, 1), "f32"))
    function = ScalarFunction(1, (*far, ScalarOp("math.erf", (2,), "f32")), 3)
    np.testing.assert_allclose(run(expand(function, ("f32",)), WIDE), run(function, WIDE), atol=ABSOLUTE)


@pytest.mark.parametrize("opcode", ["math.ceil", "math.round", "math.roundeven", "math.isnan", "math.isinf",
                                    "math.isfinite"])  # fmt: skip
def test_rounding_and_tests_are_exact(opcode: str) -> None:
    x = np.array(
        [0.0, 0.4, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e6, 8388609.0, 3e30, np.inf, -np.inf, np.nan], np.float32
    )
    dtype = "i1" if opcode.startswith("math.is") else "f32"
    function = ScalarFunction(1, (ScalarOp(opcode, (0,), dtype),), 1)
    np.testing.assert_array_equal(run(expand(function, ("f32",)), x), run(function, x))


def test_functions_of_f16_are_rounded_once() -> None:
    x = WIDE.astype(np.float16)
    found, expected = both("math.sin", x, dtype="f16")
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize(("dtype", "bits"), [("f32", 23), ("f16", 26)])
def test_remainders_are_exact(dtype: str, bits: int) -> None:
    rng = np.random.default_rng(0)
    kind = np.float16 if dtype == "f16" else np.float32
    y = np.exp2(rng.uniform(-12, 2, 20000)).astype(kind)
    wide = y * np.exp2(rng.uniform(-2, bits, y.size)) * rng.choice([-1, 1], y.size)
    x = np.clip(wide, -np.finfo(kind).max, np.finfo(kind).max).astype(kind)
    found, expected = both("arith.remf", x, y, dtype=dtype)
    np.testing.assert_array_equal(found, expected)
    ends = np.array([3, -1, 0, np.inf, 5, np.nan], kind), np.array([np.inf, 1, 0, 2, 0, 1], kind)
    np.testing.assert_array_equal(*both("arith.remf", *ends, dtype=dtype))


@pytest.mark.parametrize("opcode", ["math.sin", "math.cos", "math.tan"])
def test_waves_of_near_arguments(opcode: str) -> None:
    """Below 2^17 within 3e-7, a tangent within as much of its slope; infinities give NaNs; -0 stays."""
    x = np.array([1e3, 12345.678, 65504, 1e5, 131071.99], np.float32)
    exact = {"math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan}[opcode](x.astype(np.float64))
    slope = 1 + exact**2 if opcode == "math.tan" else 1
    assert (np.abs(both(opcode, x)[0] - exact) < 3e-7 * slope).all()
    assert np.isnan(both(opcode, np.array([np.inf, -np.inf, np.nan], np.float32))[0]).all()
    if opcode != "math.cos":
        assert np.signbit(both(opcode, np.array([-0.0], np.float32))[0]).all()


def test_the_ends_of_acosh_and_of_powers() -> None:
    x = np.array([-1, -2, -6e4, -3e38, -np.inf, 0.5, 1, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(*both("math.acosh", x))
    x, y = (
        np.array([-1, 1, np.nan, -1, -2], np.float32),
        np.array([np.nan, np.nan, 0, np.inf, np.nan], np.float32),
    )
    np.testing.assert_array_equal(*both("math.powf", x, y))


def test_powers() -> None:
    x, y = np.meshgrid(np.array([0, 0.5, 1, 1.5, 7, -2, -0.5, np.inf], np.float32),
                       np.array([0, 1, 2, 3, -1, -2, 0.5, 2.25], np.float32))  # fmt: skip
    found, expected = both("math.powf", x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_angles_of_points() -> None:
    x, y = np.meshgrid(np.linspace(-3, 3, 41, dtype=np.float32), np.linspace(-3, 3, 41, dtype=np.float32))
    found, expected = both("math.atan2", y, x)
    np.testing.assert_allclose(found, expected, atol=ABSOLUTE, rtol=RELATIVE)


def test_remainders_have_the_sign_of_the_dividend() -> None:
    x = np.linspace(-50, 50, 401, dtype=np.float32)
    found, expected = both("arith.remf", x, np.full_like(x, 3.5))
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_whole_powers() -> None:
    x, y = np.array([2, 3, -3, 10, 7], np.int32), np.array([10, 5, 3, 0, 1], np.int32)
    function = one("math.ipowi", 2, "i32")
    np.testing.assert_array_equal(run(expand(function, ("i32", "i32")), x, y), x**y)


@pytest.mark.parametrize("exponent", CONSTANT_POWERS)
def test_constant_powers(exponent: float) -> None:
    x = np.array([-np.inf, -3, -1, -0.0, 0.0, 0.25, 4, np.inf, np.nan], np.float32)
    ops = (ScalarOp("const", (), "f32", str(exponent)), ScalarOp("math.powf", (0, 1), "f32"))
    function = ScalarFunction(1, ops, 2)
    found, expected = np.broadcast_arrays(run(expand(function, ("f32",)), x), run(function, x))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.signbit(found[expected == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("dtype", ["i8", "i16"])
def test_narrow_integers_without_sign_become_floats(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    x = np.array([0, 1, -1, np.iinfo(kind).max, np.iinfo(kind).min], kind)
    function = one("arith.uitofp", 1)
    found = run(expand(function, (dtype,)), x)
    np.testing.assert_array_equal(found, x.view(f"u{x.itemsize}").astype(np.float32))


def test_constant_powers_need_no_logarithm() -> None:
    ops = (ScalarOp("const", (), "f32", "2.0"), ScalarOp("math.powf", (0, 1), "f32"))
    expanded = expand(ScalarFunction(1, ops, 2), ("f32",))
    assert [op.opcode for op in expanded.ops] == ["arith.mulf"]
