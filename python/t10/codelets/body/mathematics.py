"""Mathematical functions on f32 as straight lines of primitive operations.

The coefficients are our own minimax fits; `test_codelets_expand.py` states the largest errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from t10.codelets.body.builder import FunctionBuilder
from t10.codelets.body.far import COSINE, FAR, REMAINDER, SINE

Emit = Callable[..., int]

# erf(x) = tanh(x P(x^2)); the polynomial is positive for every x^2, so that the argument of tanh grows without bound.
ERF_BY_TANH = (1.128379225730896, 0.10276973247528076, -0.00019444295321591198, -0.0006160042248666286,
               8.522569987690076e-05, -4.948980858898722e-06, 4.468452630135289e-08, 4.733932801315177e-09)  # fmt: skip
ERF_IN_HALF = (1.12841796875, 0.1011962890625)
"""erf(x) = tanh(x + x Q(x^2)) in f16, 1 + Q the polynomial: x is exact and larger, little of what Q rounds is left."""
Factors = tuple[tuple[float, float], ...]
FACTORS: Factors = ((-4.0, -0.25), (0.25, 4.0))
FACTORS_IN_HALF: Factors = ((0.7, 1.2),)
"""Factors of x that the coefficients take on, from the least to the greatest of each range; Q stays small in f16."""
ARC_TANGENT = (-0.3333294093608856, 0.19977329671382904, -0.13872846961021423, 0.0803603082895279)
ARC_SINE = (
    0.16666753590106964,
    0.07495232671499252,
    0.04547834023833275,
    0.02414099872112274,
    0.04223053157329559,
)
# pi / 2 in four parts, the first three of seven bits: their product with a whole number below 2^17 is exact.
HALF_PI = (1.5625, 0.0081787109375, 0.00011730194091796875, 3.139164786504813e-07)
FIRST_WHOLE_FLOAT = 8388608.0
WHOLE_EXPONENT_BITS = 31
SHORT_LN_2 = 0.693359375
ROUNDING = 12582912.0
"""A small float plus this, less this, is the nearest whole number."""
LOGARITHM_HIGH, LOGARITHM_LOW = 2.8857421875, -0.0003521057078614831
"""2 / ln 2 in two parts, the first of twelve bits."""
LOGARITHM = (0.961798906326294, 0.5766911506652832, 0.43238332867622375)
SPLIT = 4097.0
"""A float less what its product with this loses has twelve bits."""


def erf(b: FunctionBuilder, x: int) -> int:
    """Add the error function of x: tanh of x times a polynomial in x^2; largest error 1.2e-7."""
    return erf_of_scaled(b, x, 1.0)


def erf_of_scaled(b: FunctionBuilder, x: int, factor: float) -> int:
    """Add the error function of x times a constant, which the coefficients take on."""
    coefficients = [each * factor ** (2 * i + 1) for i, each in enumerate(ERF_BY_TANH)]
    return b.op("math.tanh", b.multiply(x, b.polynomial(b.multiply(x, x), coefficients)))


def erf_of_scaled_in_half(b: FunctionBuilder, x: int, factor: float) -> int:
    """Add the error function of x times a factor in `FACTORS_IN_HALF`, in f16.

    Largest error over all numbers of f16: 1.51 units of the last place, 2 with another factor than 1.
    """
    linear, cubic = (each * factor ** (2 * i + 1) for i, each in enumerate(ERF_IN_HALF))
    more = b.multiply(x, b.polynomial(b.multiply(x, x), (linear - 1.0, cubic)))
    return b.op("math.tanh", b.add(x, more))


def erfc(b: FunctionBuilder, x: int) -> int:
    """Add 1 - erf(x)."""
    return b.subtract(b.constant(1.0), erf(b, x))


def expm1(b: FunctionBuilder, x: int) -> int:
    """Add e^x - 1: by 2t / (1 - t), t = tanh(x / 2), near 0."""
    t = b.op("math.tanh", b.scale(x, 0.5))
    near = b.divide(b.add(t, t), b.subtract(b.constant(1.0), t))
    far = b.shift(b.op("math.exp", x), -1.0)
    return b.select(b.compare_with("olt", b.absolute(x), 1.0), near, far)


def log1p(b: FunctionBuilder, x: int) -> int:
    """Add ln(1 + x): the logarithm of the rounded sum, times what the rounding lost."""
    total = b.shift(x, 1.0)
    logarithm = b.op("math.log", total)
    mended = b.divide(b.multiply(logarithm, x), b.shift(total, -1.0))
    mended = b.select(b.compare_with("oeq", total, math.inf), logarithm, mended)
    return b.select(b.compare_with("oeq", total, 1.0), x, mended)


def log10(b: FunctionBuilder, x: int) -> int:
    """Add the decimal logarithm of x."""
    return b.scale(b.op("math.log2", x), math.log10(2.0))


def _half_of_power(b: FunctionBuilder, size: int) -> int:
    """Return e^size / 2, which does not overflow early: a short summand near ln 2 is taken off without rounding."""
    return b.scale(b.op("math.exp", b.shift(size, -SHORT_LN_2)), math.exp(SHORT_LN_2 - math.log(2.0)))


def sinh(b: FunctionBuilder, x: int) -> int:
    """Add the hyperbolic sine of x."""
    e = expm1(b, b.absolute(x))
    near = b.add(e, b.divide(e, b.shift(e, 1.0)))
    far = _half_of_power(b, b.absolute(x))
    size = b.select(b.compare_with("olt", b.absolute(x), 16.0), b.scale(near, 0.5), far)
    return b.with_sign_of(size, x)


def cosh(b: FunctionBuilder, x: int) -> int:
    """Add the hyperbolic cosine of x: e^|x| / 2 and its counterpart."""
    half = _half_of_power(b, b.absolute(x))
    return b.add(half, b.divide(b.constant(0.25), half))


def asinh(b: FunctionBuilder, x: int) -> int:
    """Add the inverse hyperbolic sine of x."""
    size = b.absolute(x)
    square = b.multiply(size, size)
    root = b.op("math.sqrt", b.shift(square, 1.0))
    near = log1p(b, b.add(size, b.divide(square, b.shift(root, 1.0))))
    far = b.shift(b.op("math.log", size), math.log(2.0))
    return b.with_sign_of(b.select(b.compare_with("olt", size, 1e9), near, far), x)


def acosh(b: FunctionBuilder, x: int) -> int:
    """Add the inverse hyperbolic cosine of x."""
    above = b.shift(x, -1.0)
    # Two roots: the product of -2 and -3 has one, too.
    root = b.multiply(b.op("math.sqrt", above), b.op("math.sqrt", b.shift(x, 1.0)))
    near = log1p(b, b.add(above, root))
    far = b.shift(b.op("math.log", x), math.log(2.0))
    return b.select(b.compare_with("olt", x, 1e9), near, far)


def atanh(b: FunctionBuilder, x: int) -> int:
    """Add the inverse hyperbolic tangent of x."""
    size = b.absolute(x)
    quotient = b.divide(b.add(size, size), b.subtract(b.constant(1.0), size))
    return b.with_sign_of(b.scale(log1p(b, quotient), 0.5), x)


Wave = tuple[int, int, int]
"""Sine and cosine of what is left of an argument after whole quarter turns, and the number of turns modulo 4."""


def _quarter_turn(b: FunctionBuilder, x: int) -> Wave:
    """Return the wave at x, within 1.2e-7 unless x is far; NaNs for infinities."""
    turns = b.floor(b.shift(b.scale(x, 2.0 / math.pi), 0.5))
    rest = x
    for part in HALF_PI:
        rest = b.subtract(rest, b.scale(turns, part))
    square = b.multiply(rest, rest)
    sine = b.multiply(rest, b.shift(b.multiply(square, b.polynomial(square, SINE[1:])), 1.0))
    half = b.subtract(b.constant(1.0), b.scale(square, 0.5))
    cosine = b.add(half, b.multiply(b.multiply(square, square), b.polynomial(square, COSINE[2:])))
    quarter = b.subtract(turns, b.scale(b.floor(b.scale(turns, 0.25)), 4.0))
    return sine, cosine, quarter


def _turned(b: FunctionBuilder, even: int, odd: int, quarter: int) -> int:
    """Return the value of a wave whose first quarters are even, odd, -even, -odd."""
    is_upper = b.compare_with("oge", quarter, 2.0)
    within = b.subtract(quarter, b.select(is_upper, b.constant(2.0), b.constant(0.0)))
    value = b.select(b.compare_with("oge", within, 1.0), odd, even)
    return b.select(is_upper, b.op("arith.negf", value), value)


def sin_for_half(b: FunctionBuilder, x: int) -> int:
    """Add the sine of x, a number of f16: none of these is far."""
    sine, cosine, quarter = _quarter_turn(b, x)
    return _turned(b, sine, cosine, quarter)


def cos_for_half(b: FunctionBuilder, x: int) -> int:
    """Add the cosine of x, a number of f16."""
    sine, cosine, quarter = _quarter_turn(b, x)
    return _turned(b, cosine, b.op("arith.negf", sine), quarter)


def tan_for_half(b: FunctionBuilder, x: int) -> int:
    """Add the tangent of x, a number of f16."""
    return b.divide(sin_for_half(b, x), cos_for_half(b, x))


def sin(b: FunctionBuilder, x: int) -> int:
    """Add the sine of x."""
    return b.op(FAR, x, sin_for_half(b, x), attribute="sin")


def cos(b: FunctionBuilder, x: int) -> int:
    """Add the cosine of x."""
    return b.op(FAR, x, cos_for_half(b, x), attribute="cos")


def tan(b: FunctionBuilder, x: int) -> int:
    """Add the tangent of x."""
    return b.divide(sin(b, x), cos(b, x))


def atan(b: FunctionBuilder, x: int) -> int:
    """Add the arc tangent of x: brought below tan(pi / 8) by a quarter or an eighth of a turn."""
    size = b.absolute(x)
    is_large = b.compare_with("ogt", size, 1.0 + math.sqrt(2.0))
    is_middle = b.compare_with("ogt", size, math.sqrt(2.0) - 1.0)
    one, zero = b.constant(1.0), b.constant(0.0)
    top = b.select(is_large, b.constant(-1.0), b.select(is_middle, b.subtract(size, one), size))
    bottom = b.select(is_large, size, b.select(is_middle, b.add(size, one), one))
    base = b.select(is_large, b.constant(math.pi / 2), b.select(is_middle, b.constant(math.pi / 4), zero))
    rest = b.divide(top, bottom)
    square = b.multiply(rest, rest)
    small = b.add(rest, b.multiply(b.multiply(rest, square), b.polynomial(square, ARC_TANGENT)))
    return b.with_sign_of(b.add(base, small), x)


def atan2(b: FunctionBuilder, y: int, x: int) -> int:
    """Add the angle of the point (x, y)."""
    width, height = b.absolute(x), b.absolute(y)
    low, high = b.op("arith.minimumf", width, height), b.op("arith.maximumf", width, height)
    quotient = b.select(b.compare("oeq", low, high), b.constant(1.0), b.divide(low, high))
    quotient = b.select(b.compare_with("oeq", high, 0.0), b.constant(0.0), quotient)
    angle = atan(b, quotient)
    angle = b.select(b.compare("ogt", height, width), b.subtract(b.constant(math.pi / 2), angle), angle)
    is_left = b.compare_with("olt", b.with_sign_of(b.constant(1.0), x), 0.0)
    return b.with_sign_of(b.select(is_left, b.subtract(b.constant(math.pi), angle), angle), y)


def _arc_sine_parts(b: FunctionBuilder, x: int) -> tuple[int, int, int]:
    """Return whether |x| is above 1/2, and the arc sine of |x|, or of sqrt((1 - |x|) / 2) where it is."""
    size = b.absolute(x)
    is_large = b.compare_with("ogt", size, 0.5)
    halved = b.scale(b.subtract(b.constant(1.0), size), 0.5)
    argument = b.select(is_large, b.op("math.sqrt", halved), size)
    square = b.select(is_large, halved, b.multiply(size, size))
    arc = b.add(argument, b.multiply(b.multiply(argument, square), b.polynomial(square, ARC_SINE)))
    return is_large, arc, size


def asin(b: FunctionBuilder, x: int) -> int:
    """Add the arc sine of x."""
    is_large, arc, _ = _arc_sine_parts(b, x)
    outer = b.subtract(b.constant(math.pi / 2), b.add(arc, arc))
    return b.with_sign_of(b.select(is_large, outer, arc), x)


def acos(b: FunctionBuilder, x: int) -> int:
    """Add the arc cosine of x."""
    is_large, arc, _ = _arc_sine_parts(b, x)
    twice = b.add(arc, arc)
    is_left = b.compare_with("olt", x, 0.0)
    outer = b.select(is_left, b.subtract(b.constant(math.pi), twice), twice)
    inner = b.subtract(b.constant(math.pi / 2), b.with_sign_of(arc, x))
    return b.select(is_large, outer, inner)


def _power_of_size(b: FunctionBuilder, size: int, y: int) -> int:
    """Return size^y for size >= 0."""
    power = b.op("math.exp2", b.multiply(y, b.op("math.log2", size)))
    is_one = b.op("arith.ori", b.compare_with("oeq", size, 1.0), b.compare_with("oeq", y, 0.0), dtype="i1")
    return b.select(is_one, b.constant(1.0), power)


def powf(b: FunctionBuilder, x: int, y: int) -> int:
    """Add x^y by logarithms: the relative error grows with the size of the result's exponent."""
    power = _power_of_size(b, b.absolute(x), y)
    is_whole = b.compare("oeq", b.floor(y), y)
    half = b.scale(y, 0.5)
    is_odd = b.op("arith.andi", is_whole, b.compare("one", b.floor(half), half), dtype="i1")
    is_left = b.compare_with("olt", b.with_sign_of(b.constant(1.0), x), 0.0)
    turned = b.op("arith.andi", is_left, is_odd, dtype="i1")
    power = b.select(turned, b.op("arith.negf", power), power)
    below = b.op("arith.andi", b.compare_with("olt", x, 0.0), b.compare_with("ogt", x, -math.inf), dtype="i1")
    fraction = b.compare("une", b.floor(y), y)
    return b.select(b.op("arith.andi", below, fraction, dtype="i1"), b.constant(math.nan), power)


def constant_power(b: FunctionBuilder, x: int, exponent: float) -> int:
    """Add x to the power of a constant that `is_plain_exponent`, within 2.5 units of the last place."""
    return _signed_power(b, x, exponent, _fine_power(b, b.absolute(x), exponent))


def constant_power_for_half(b: FunctionBuilder, x: int, exponent: float) -> int:
    """Add x to the power of such a constant by one logarithm, good enough to be rounded to f16."""
    power = b.op("math.exp2", b.scale(b.op("math.log2", b.absolute(x)), exponent))
    return _signed_power(b, x, exponent, power)


def is_plain_exponent(exponent: float) -> bool:
    """Return whether a number, and its halves of twelve bits, are far from the ends of f32."""
    return 2.0**-100 < abs(exponent) < 2.0**100


def _signed_power(b: FunctionBuilder, x: int, exponent: float, power: int) -> int:
    """Return x to the power of a constant, given that of |x|."""
    if exponent.is_integer():
        return b.with_sign_of(power, x) if exponent % 2.0 else power
    below = b.op("arith.andi", b.compare_with("olt", x, 0.0), b.compare_with("ogt", x, -math.inf), dtype="i1")
    return b.select(below, b.constant(math.nan), power)


def _fine_power(b: FunctionBuilder, size: int, exponent: float) -> int:
    """Return size^exponent for size >= 0 as 2^(exponent * log2(size)), with a logarithm in two words.

    size = 2^e m, m near 1. With s = (m - 1) / (m + 1), log2(size) = e + 2 / ln 2 (s + s^3 / 3 + ...): all but the first
    two summands are small enough for one word.
    """
    is_tiny = b.compare_with("olt", size, 2.0**-100)
    scaled = b.select(is_tiny, b.scale(size, 2.0**64), size)
    moved = b.select(is_tiny, b.constant(-64.0), b.constant(0.0))
    logarithm = b.op("math.log2", scaled)
    e = b.shift(b.shift(logarithm, ROUNDING), -ROUNDING)
    m = b.multiply(scaled, b.op("math.exp2", b.op("arith.negf", e)))
    e = b.add(e, moved)
    # s = s_high + s_low: products of numbers of twelve bits are exact.
    above, below = b.shift(m, -1.0), b.shift(m, 1.0)
    reciprocal = b.divide(b.constant(1.0), below)
    s = b.multiply(above, reciprocal)
    s_high, below_high = _leading_bits(b, s), _leading_bits(b, below)
    below_low = b.subtract(m, b.shift(below_high, -1.0))
    rest = b.subtract(b.subtract(above, b.multiply(s_high, below_high)), b.multiply(s_high, below_low))
    s_low = b.multiply(rest, reciprocal)
    # total + low is the logarithm, high its leading bits.
    square = b.multiply(s, s)
    low = b.multiply(b.multiply(s, square), b.polynomial(square, LOGARITHM))
    low = b.add(b.add(low, b.scale(s, LOGARITHM_LOW)), b.scale(s_low, LOGARITHM_HIGH))
    first = b.scale(s_high, LOGARITHM_HIGH)
    total = b.add(e, first)
    low = b.add(low, b.subtract(first, b.subtract(total, e)))
    high = _leading_bits(b, total)
    low = b.add(b.subtract(total, high), low)
    mantissa, binary = math.frexp(exponent)
    leading = math.ldexp(round(mantissa * 4096.0), binary - 12)
    # The power is 2^(product + left); where it overflows or vanishes, one word is enough.
    longest = b.scale(high, leading)
    shorter = b.add(b.scale(high, exponent - leading), b.scale(low, exponent))
    product = b.add(longest, shorter)
    left = b.subtract(shorter, b.subtract(product, longest))
    power = b.multiply(b.op("math.exp2", product), b.shift(b.scale(left, math.log(2.0)), 1.0))
    rough = b.scale(b.add(logarithm, moved), exponent)
    return b.select(b.compare_with("olt", b.absolute(rough), 200.0), power, b.op("math.exp2", rough))


def _leading_bits(b: FunctionBuilder, x: int) -> int:
    """Return the twelve leading bits of x."""
    product = b.scale(x, SPLIT)
    return b.subtract(product, b.subtract(product, x))


def cbrt(b: FunctionBuilder, x: int) -> int:
    """Add the cube root: by logarithms, then one step of Newton's."""
    size = b.absolute(x)
    root = b.op("math.exp2", b.scale(b.op("math.log2", size), 1.0 / 3.0))
    step = b.scale(b.subtract(b.divide(size, b.multiply(root, root)), root), 1.0 / 3.0)
    is_plain = b.op(
        "arith.andi", b.compare_with("ogt", size, 0.0), b.compare_with("olt", size, math.inf), dtype="i1"
    )
    return b.with_sign_of(b.select(is_plain, b.add(root, step), size), x)


def ceil(b: FunctionBuilder, x: int) -> int:
    """Add the smallest whole number that is not below x."""
    return b.op("arith.negf", b.floor(b.op("arith.negf", x)))


def round_half_away(b: FunctionBuilder, x: int) -> int:
    """Add the nearest whole number, halves away from 0."""
    return b.with_sign_of(b.floor(b.shift(b.absolute(x), 0.5)), x)


def round_half_even(b: FunctionBuilder, x: int) -> int:
    """Add the nearest whole number, halves to even ones: a large summand pushes the fraction out."""
    size = b.absolute(x)
    pushed = b.shift(b.shift(size, FIRST_WHOLE_FLOAT), -FIRST_WHOLE_FLOAT)
    whole = b.select(b.compare_with("olt", size, FIRST_WHOLE_FLOAT), pushed, size)
    return b.with_sign_of(whole, x)


def remainder(b: FunctionBuilder, x: int, y: int) -> int:
    """Add fmod(x, y)."""
    return b.op(FAR, x, y, _remainder(b, x, y, 2), attribute=REMAINDER)


def remainder_for_half(b: FunctionBuilder, x: int, y: int) -> int:
    """Add fmod(x, y) of numbers of f16, exact: no quotient of theirs is beyond 2^40."""
    return _remainder(b, x, y, 4)


def _remainder(b: FunctionBuilder, x: int, y: int, n_steps: int) -> int:
    """Return fmod(x, y) by as many steps, each of which takes 12 bits off the quotient, which has no more."""
    size, step = b.absolute(x), b.absolute(y)
    high = _leading_bits(b, step)
    low = b.subtract(step, high)
    rest = size
    for i in reversed(range(n_steps)):
        # Products of 12 bits with the halves of the step are exact.
        factor = 2.0 ** (12 * i)
        scaled = b.scale(step, factor)
        whole = b.op("math.trunc", b.divide(rest, scaled))
        for half in (high, low):
            rest = b.subtract(rest, b.multiply(whole, b.scale(half, factor)))
        rest = b.select(b.compare_with("olt", rest, 0.0), b.add(rest, scaled), rest)
        rest = b.select(b.compare("oge", rest, scaled), b.subtract(rest, scaled), rest)
    return b.with_sign_of(b.select(b.compare("olt", size, step), size, rest), x)


def fma(b: FunctionBuilder, x: int, y: int, z: int) -> int:
    """Add x * y + z, rounded twice."""
    return b.add(b.multiply(x, y), z)


FOR_HALF: dict[str, Emit] = {
    "arith.remf": remainder_for_half, "math.sin": sin_for_half, "math.cos": cos_for_half,
    "math.tan": tan_for_half,
}  # fmt: skip
"""Functions whose results are rounded to f16, where that allows less work."""
UNARY: dict[str, Emit] = {
    "math.erf": erf, "math.erfc": erfc, "math.expm1": expm1, "math.log1p": log1p, "math.log10": log10,
    "math.sinh": sinh, "math.cosh": cosh, "math.asinh": asinh, "math.acosh": acosh, "math.atanh": atanh,
    "math.sin": sin, "math.cos": cos, "math.tan": tan, "math.atan": atan, "math.asin": asin, "math.acos": acos,
    "math.cbrt": cbrt, "math.ceil": ceil, "math.round": round_half_away, "math.roundeven": round_half_even,
}  # fmt: skip
BINARY: dict[str, Emit] = {"math.atan2": atan2, "math.powf": powf, "arith.remf": remainder}
"""Functions of f32 by opcode; those of f16 that have no others are computed in f32 and rounded."""
