"""Combining contributions into an accumulator that stays in one register: `$a7` for floats, `$m6` for integers.

The high word of a 64-bit accumulator lies in the worker's frame.
"""

from __future__ import annotations

import numpy as np

from t10.codelets.loops.floats import SPREAD_NAN, is_float_type, rounded
from t10.codelets.loops.integers import wrapped
from t10.codelets.loops.scalar import constant
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.codelets.loops.wide import ACCUMULATOR_HIGH, Pair, Word, emit_wide, low, widened
from t10.codelets.loops.wide import constant as wide_constant
from t10.core.dtypes import numpy_dtype
from t10.core.expression import Combine
from t10.core.intervals import WIDE_DTYPES
from t10.core.scalar import ScalarOp, constant_text

NEUTRALS = {"sum": "0.0", "prod": "1.0", "max": "-inf", "min": "inf", "maxnum": "-inf", "minnum": "inf"}
FLOAT_ACCUMULATOR, INTEGER_ACCUMULATOR = "$a7", "$m6"
FLOATS = {
    "sum": "f32add",
    "prod": "f32mul",
    "max": "f32max",
    "min": "f32min",
    "maxnum": "f32max",
    "minnum": "f32min",
}
INTEGERS = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "and": "and", "or": "or"}
WIDE = {"sum": "arith.addi", "prod": "arith.muli", "max": "arith.maxsi", "min": "arith.minsi", "and": "arith.andi",
        "or": "arith.ori"}  # fmt: skip
TRUTHS = {"sum": "or", "prod": "and", "max": "or", "min": "and", "and": "and", "or": "or"}


def accumulator(dtype: str) -> str:
    """Return the register that holds a running value of a type."""
    return FLOAT_ACCUMULATOR if is_float_type(dtype) else INTEGER_ACCUMULATOR


def neutral_text(combine: Combine, dtype: str) -> str:
    """Return the spelling of the value that changes nothing."""
    if is_float_type(dtype):
        return NEUTRALS[combine]
    kind = numpy_dtype(dtype)
    if combine in ("max", "min"):
        limits = (0, 1) if kind.kind == "b" else (int(np.iinfo(kind).min), int(np.iinfo(kind).max))
        return constant_text(limits[combine == "min"])
    if combine == "and":
        return "1" if kind.kind == "b" else "-1"
    return "1" if combine == "prod" else "0"


def set_accumulator(code: VirtualCode, x: Word, dtype: str) -> None:
    """Add the move of a value into the accumulator; a high word lies in the frame."""
    if dtype not in WIDE_DTYPES:
        code.effect(f"mov {accumulator(dtype)}, {{x}}", x=low(x))
        return
    pair = widened(code, x)
    code.effect(
        f"mov {INTEGER_ACCUMULATOR}, {{x}}", f"st32 {{h}}, {ACCUMULATOR_HIGH}", x=pair.low, h=pair.high
    )


def accumulated(code: VirtualCode, dtype: str) -> Word:
    """Add the move of the accumulator into a value."""
    text = f"mov {{d}}, {accumulator(dtype)}"
    if is_float_type(dtype):
        return code.a(text)
    value = code.m(text)
    return Pair(value, code.m(f"ld32 {{d}}, {ACCUMULATOR_HIGH}")) if dtype in WIDE_DTYPES else value


def set_neutral(code: VirtualCode, combine: Combine, dtype: str) -> None:
    """Add the neutral element's move into the accumulator."""
    text = neutral_text(combine, dtype)
    value = wide_constant(code, int(text)) if dtype in WIDE_DTYPES else constant(code, text, dtype)
    set_accumulator(code, value, dtype)


def accumulate(code: VirtualCode, combine: Combine, x: Word, dtype: str) -> None:
    """Add one contribution to the accumulator. Sums of f16 are kept in f32, other combinations round each time."""
    set_accumulator(code, combined(code, combine, x, dtype), dtype)


def combined(code: VirtualCode, combine: Combine, x: Word, dtype: str) -> Word:
    """Add the combination of the accumulator with a value; NaNs stay NaNs in maxima and minima."""
    if dtype in WIDE_DTYPES:
        return emit_wide(
            code, ScalarOp(WIDE[combine], (), dtype), (accumulated(code, dtype), x), (dtype, dtype)
        )
    x = low(x)
    if not is_float_type(dtype):
        return _combined_integers(code, combine, x, dtype)
    register = FLOAT_ACCUMULATOR
    if combine not in ("max", "min"):
        value = code.a(f"{FLOATS[combine]} {{d}}, {register}, {{x}}", x=x)
        return rounded(code, value, dtype) if combine == "prod" else value
    spread = (line.replace("{y}", register) for line in SPREAD_NAN)
    return code.a(f"{FLOATS[combine]} {{d}}, {register}, {{x}}", *spread, x=x)


def _combined_integers(code: VirtualCode, combine: Combine, x: Value, dtype: str) -> Value:
    register = INTEGER_ACCUMULATOR
    if dtype == "ui32" and combine in ("max", "min"):
        less = f"cmpult {{t0}}, {register}, {{x}}"
        move = "movnz" if combine == "max" else "movz"
        return code.m(less, f"mov {{d}}, {register}", f"{move} {{d}}, {{t0}}, {{x}}", x=x)
    table = TRUTHS if dtype == "i1" else INTEGERS
    value = code.m(f"{table[combine]} {{d}}, {register}, {{x}}", x=x)
    return wrapped(code, value, dtype) if combine in ("sum", "prod") else value
