"""Scalar operations on arrays: values, rounding to the operation's type, corners of integers and NaNs."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from t10.core.arrays import Array
from t10.core.dtypes import numpy_dtype
from t10.core.expression import Combine
from t10.core.neutral import neutral_value
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.errors import UnsupportedOpError
from t10.sim.combine import combine_arrays, neutral, reduce_axes
from t10.sim.scalar_eval import evaluate
from t10.sim.special import erf, erfc

NAN = float("nan")


def no_index(axis: int) -> Array:
    raise AssertionError(f"axis {axis} has no index here")


def apply(opcode: str, dtype: str, *operands: Array, attribute: str = "") -> Array:
    op = ScalarOp(opcode, tuple(range(len(operands))), dtype, attribute)
    return evaluate(ScalarFunction(len(operands), (op,), len(operands)), operands, no_index)


@pytest.mark.parametrize(("ours", "expected"), [(erf, math.erf), (erfc, math.erfc)])
def test_error_functions_agree_with_libm(
    ours: Callable[[Array], Array], expected: Callable[[float], float]
) -> None:
    points = np.linspace(-8, 8, 4001)
    values = np.array([expected(x) for x in points.tolist()])
    np.testing.assert_allclose(ours(points), values, rtol=1e-12, atol=1e-300)


def test_error_function_of_f32_is_rounded_once() -> None:
    points = np.linspace(-4, 4, 1001, dtype=np.float32)
    expected = np.array([math.erf(x) for x in points], np.float32)
    assert (apply("math.erf", "f32", points) == expected).all()


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_error_function_saturates(value: float) -> None:
    assert erf(np.array([value])) == [math.copysign(1, value)]


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("arith.divsi", (-7, 2), -3),
        ("arith.floordivsi", (-7, 2), -4),
        ("arith.ceildivsi", (7, 2), 4),
        ("arith.ceildivsi", (8, 2), 4),
        ("arith.ceildivsi", (-7, 2), -3),
        ("arith.remsi", (-7, 2), -1),
        ("arith.divui", (-1, 2), (1 << 31) - 1),
        ("arith.remui", (-1, 10), 5),
        ("arith.maxui", (-1, 1), -1),
        ("arith.maxsi", (-1, 1), 1),
        ("arith.shrsi", (-8, 1), -4),
        ("arith.shrui", (-8, 1), (1 << 31) - 4),
        ("arith.muli", (1 << 30, 4), 0),
        ("arith.xori", (5, 3), 6),
    ],
)
def test_integer_operations_read_signs_as_their_names_say(
    opcode: str, operands: tuple[int, int], expected: int
) -> None:
    arrays = [np.array([x], np.int32) for x in operands]
    assert apply(opcode, "i32", *arrays).tolist() == [expected]


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("oeq", [False, True, False]), ("ueq", [False, True, True]), ("ogt", [False, False, False]),
        ("ult", [True, False, True]), ("one", [True, False, False]), ("une", [True, False, True]),
        ("ord", [True, True, False]), ("uno", [False, False, True]), ("true", [True, True, True]),
    ],
)  # fmt: skip
def test_float_comparisons_say_what_a_nan_does(predicate: str, expected: list[bool]) -> None:
    a, b = np.array([1.0, 2.0, NAN]), np.array([2.0, 2.0, 1.0])
    assert apply("arith.cmpf", "i1", a, b, attribute=predicate).tolist() == expected


def test_unsigned_comparison_sees_minus_one_as_largest() -> None:
    a, b = np.array([-1], np.int64), np.array([1], np.int64)
    assert apply("arith.cmpi", "i1", a, b, attribute="ugt").tolist() == [True]
    assert apply("arith.cmpi", "i1", a, b, attribute="sgt").tolist() == [False]


def test_truth_values_are_minus_one_and_zero_with_a_sign() -> None:
    a, b = np.array([True, False]), np.array([False, False])
    assert apply("arith.cmpi", "i1", a, b, attribute="slt").tolist() == [True, False]
    assert apply("arith.cmpi", "i1", a, b, attribute="ult").tolist() == [False, False]


def test_maximumf_hands_nans_on_and_maxnumf_drops_them() -> None:
    a, b = np.array([NAN], np.float32), np.array([1], np.float32)
    assert np.isnan(apply("arith.maximumf", "f32", a, b)).all()
    for opcode in ("arith.maxnumf", "arith.minnumf"):
        assert apply(opcode, "f32", a, b).tolist() == apply(opcode, "f32", b, a).tolist() == [1]


def test_extremes_order_zeros_by_their_signs() -> None:
    a, b = np.array([0.0, -0.0, 0.0, -0.0], np.float32), np.array([-0.0, 0.0, 0.0, -0.0], np.float32)
    wanted: dict[Combine, list[bool]] = {"max": [False, False, False, True], "min": [True, True, False, True]}
    for opcode, signs in wanted.items():
        assert np.signbit(apply(f"arith.{opcode}imumf", "f32", a, b)).tolist() == signs
        assert np.signbit(apply(f"arith.{opcode}numf", "f32", a, b)).tolist() == signs
        for x, y, sign in zip(a, b, signs, strict=True):
            both = np.array([[x, y]], np.float32)
            assert np.signbit(reduce_axes(opcode, both, (1,))).tolist() == [[sign]]
            assert np.signbit(combine_arrays(opcode, both[:, 0], both[:, 1])).tolist() == [sign]


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_powers_of_one_half_are_no_roots(shape: tuple[int, ...]) -> None:
    half = np.array(0.5, np.float32)
    infinite, zero = (np.full(shape, value, np.float32) for value in (-np.inf, -0.0))
    assert (apply("math.powf", "f32", infinite, half) == np.inf).all()
    assert not np.signbit(apply("math.powf", "f32", zero, half)).any()
    assert np.isnan(apply("math.powf", "f32", np.full(shape, -1, np.float32), half)).all()


def test_a_multiply_add_rounds_once() -> None:
    x, y = np.array([1 + 2**-12], np.float32), np.array([-1 - 2**-11], np.float32)
    assert apply("math.fma", "f32", x, x, y).tolist() == [2**-24]


def test_sums_of_f16_are_f32() -> None:
    total = reduce_axes("sum", np.array([[2048, 1]], np.float16), (1,))
    assert total.dtype == np.float32
    assert total.tolist() == [[2049]]


@pytest.mark.parametrize("dtype", ["i1", "i8", "i32", "i64", "f16", "f32"])
def test_neutral_elements_change_nothing(dtype: str) -> None:
    kind = numpy_dtype(dtype)
    combines: tuple[Combine, ...] = ("sum", "prod", "max", "min")
    if kind.kind == "f":
        values = np.array([-np.inf, -2, 0, 2, np.inf], kind)
    else:
        values = (
            np.array([False, True]) if kind.kind == "b" else np.array([np.iinfo(kind).min, -1, 0, 6], kind)
        )
        combines = (*combines, "and", "or")
    for combine in combines:
        element = np.full_like(values, neutral(combine, dtype))
        np.testing.assert_array_equal(combine_arrays(combine, element, values), values)
        np.testing.assert_array_equal(np.full_like(values, neutral_value(combine, dtype)), element)


def test_f16_rounds_after_every_operation() -> None:
    # 2048 + 1 is not an f16; rounding after the first addition loses both ones.
    body = ScalarFunction(
        2, (ScalarOp("arith.addf", (0, 1), "f16"), ScalarOp("arith.addf", (2, 1), "f16")), 3
    )
    result = evaluate(body, [np.array([2048], np.float16), np.array([1], np.float16)], no_index)
    assert result.dtype == np.float16
    assert result.tolist() == [2048]


@pytest.mark.parametrize(("value", "rounded", "even"), [(0.5, 1, 0), (-0.5, -1, 0), (2.5, 3, 2), (1.4, 1, 1)])
def test_round_goes_away_from_zero_and_roundeven_to_even(value: float, rounded: float, even: float) -> None:
    x = np.array([value], np.float32)
    assert apply("math.round", "f32", x).tolist() == [rounded]
    assert apply("math.roundeven", "f32", x).tolist() == [even]


def test_conversions() -> None:
    assert apply("arith.fptosi", "i32", np.array([-2.7, 1e20], np.float32)).tolist() == [-2, (1 << 31) - 1]
    # 2^63 and 2^64 are one above what 64 bits hold.
    assert apply("arith.fptosi", "i64", np.array([2.0**63, -(2.0**64)])).tolist() == [2**63 - 1, -(2**63)]
    assert apply("arith.fptoui", "i64", np.array([2.0**64, -1.0])).view(np.uint64).tolist() == [2**64 - 1, 0]
    assert apply("arith.uitofp", "f32", np.array([-1], np.int8)).tolist() == [255]
    assert apply("arith.sitofp", "f32", np.array([True])).tolist() == [-1]
    assert apply("arith.extui", "i32", np.array([True])).tolist() == [1]
    assert apply("arith.extsi", "i32", np.array([True])).tolist() == [-1]
    assert apply("arith.trunci", "i1", np.array([2, 3], np.int32)).tolist() == [False, True]
    assert apply("arith.bitcast", "i32", np.array([1.0], np.float32)).tolist() == [0x3F800000]


def test_index_and_constants() -> None:
    ops = (ScalarOp("index", (), "index", "1"), ScalarOp("const", (), "index", "2"),
           ScalarOp("arith.muli", (0, 1), "index"))  # fmt: skip
    result = evaluate(ScalarFunction(0, ops, 2), [], lambda axis: np.arange(4) + 10 * axis)
    assert result.tolist() == [20, 22, 24, 26]


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(UnsupportedOpError, match=r"math\.unheard_of"):
        apply("math.unheard_of", "f32", np.zeros(1, np.float32))


def test_f16_is_clipped_where_it_overflows() -> None:
    """The tile makes no infinity of finite numbers; what is infinite in f32 is so in f16, but for exponentials."""
    x = np.array([6e4, -6e4, np.inf, -np.inf, np.nan, 1], np.float16)
    wanted = np.array([65504, -65504, np.inf, -np.inf, np.nan, 2], np.float16)
    np.testing.assert_array_equal(apply("arith.addf", "f16", x, x), wanted)
    np.testing.assert_array_equal(combine_arrays("sum", x, x), wanted)
    wide = np.array([1e5, -1e6, 65519, 65521, np.inf], np.float32)
    found = apply("arith.truncf", "f16", wide)
    np.testing.assert_array_equal(found, np.array([65504, -65504, 65504, 65504, np.inf], np.float16))
    np.testing.assert_array_equal(apply("arith.sitofp", "f16", np.array([100000, -7])), [65504, -7])
    powers = apply("math.exp", "f16", np.array([20, 100, np.inf], np.float16))
    np.testing.assert_array_equal(powers, np.array([65504, 65504, np.inf], np.float16))
    np.testing.assert_array_equal(apply("math.sinh", "f16", np.array([20, 100], np.float16)), [65504, np.inf])
    np.testing.assert_array_equal(apply("arith.divf", "f16", x[5:], x[5:] * 0), [np.inf])
    double = apply("arith.truncf", "f16", np.array([1e5, -1e39, 1e300]))
    np.testing.assert_array_equal(double, np.array([65504, -np.inf, np.inf], np.float16))
