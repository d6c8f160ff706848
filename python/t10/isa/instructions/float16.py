"""Arithmetic on f16, two lanes in a register or four in a pair; every result is rounded to f16 (ISA reference §9)."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

NUMBER_WINS: Final = "Where one operand is NaN, the other is the result; -0 is less than +0."
LIBRARY: Final = "Computed in double precision and rounded once; the accuracy of the hardware is not public."
_ROUNDED: Final = (
    "Nearest even, denormals kept, NaN results are 0x7e00; "
    "overflow gives the largest number, or NaN where FP_CTL.NANOO is set."
)
COMPARED: Final = "Comparisons with NaN are false, != is true."

ARITHMETIC: Final = (("add", "+", "Add"), ("sub", "-", "Sub"), ("mul", "*", "Mul"))
COMPARISONS: Final = (
    ("eq", "==", "Equal"),
    ("ge", ">=", "GreaterEqual"),
    ("gt", ">", "Greater"),
    ("le", "<=", "LessEqual"),
    ("lt", "<", "Less"),
    ("ne", "!=", "NotEqual"),
)

_TWO: Final = {2: "d:a, x:a, y:a", 4: "d:aP, x:aP, y:aP"}
_ONE: Final = {2: "d:a, x:a", 4: "d:aP, x:aP"}
_BROADCAST: Final = {
    2: f"{_TWO[2]} | d:a, x:a:BL, y:a | d:a, x:a:BU, y:a",
    4: f"{_TWO[4]} | d:aP, x:a:BL, y:aP | d:aP, x:a:BU, y:aP",
}

_f = partial(forms, group="float16", pipe="aux", mode="worker")


def _lanes(n: int) -> tuple[Instruction, ...]:
    """Return what exists for two lanes and for four."""
    name = f"f16v{n}"
    records: list[Instruction] = []
    for op, sign, functor in ARITHMETIC:
        code = f"d = c.halves(x, y, {functor}());"
        records += _f(name + op, _BROADCAST[n], f"each lane: x {sign} y, rounded to f16", code, _ROUNDED)
    for op, sign, functor in COMPARISONS:
        code = f"d = half_masks(x, y, {functor}());"
        records += _f(f"{name}cmp{op}", _BROADCAST[n], f"each lane: x {sign} y ? 0xffff : 0", code, COMPARED)
    for op, functor in (("max", "Max"), ("min", "Min")):
        code = f"d = c.halves(x, y, {functor}());"
        records += _f(name + op, _TWO[n], f"each lane: {op}(x, y)", code, NUMBER_WINS)
    records += _f(f"{name}absadd", _TWO[n], "each lane: |x| + |y|", "d = c.halves(x, y, AbsAdd());", _ROUNDED)
    records += _f(
        f"{name}absmax", _TWO[n], "each lane: max(|x|, |y|)", "d = c.halves(x, y, AbsMax());", NUMBER_WINS
    )
    limit = f"{_ONE[n]}, lim:a"
    code = "d = c.clamp_halves(x, lim);"
    records += _f(f"{name}clamp", limit, "each lane: min(max(x, lim.h[0]), lim.h[1])", code, NUMBER_WINS)
    records += _f(
        f"{name}sufromui",
        _ONE[n],
        "each lane: (x as u16 + 0.5) / 65536 - 0.5",
        "d = c.centred_halves(x);",
    )
    return tuple(records)


def _function(op: str, what: str, functor: str) -> tuple[Instruction, ...]:
    return _f(
        f"f16v2{op}",
        _ONE[2],
        f"each lane: {what}",
        f"d = c.half_functions(x, {functor}());",
        LIBRARY,
        slots=2,
    )


FLOAT16: tuple[Instruction, ...] = (
    *_lanes(2),
    *_lanes(4),
    *_f("f16v2sum", "d:a, x:a", "d = x.h[0] + x.h[1] as f32", "d = bits(half(x, 0) + half(x, 1));"),
    *_f(
        "f16v4sum",
        "d:aP, x:aP",
        "d.w = {x.h[0] + x.h[1], x.h[2] + x.h[3]} as f32",
        "d = Pair{{bits(half(x, 0) + half(x, 1)), bits(half(x, 2) + half(x, 3))}};",
        "Neighbouring lanes are added.",
    ),
    *_function("exp", "e^x", "Exp"),
    *_function("exp2", "2^x", "Exp2"),
    *_function("ln", "natural logarithm", "Ln"),
    *_function("log2", "logarithm to base 2", "Log2"),
    *_function("tanh", "hyperbolic tangent", "Tanh"),
    *_function("sigm", "1 / (1 + e^-x)", "Sigmoid"),
    *_f("f16v2maxc", "d:a, x:a", "largest lane; where it is placed is not public"),
    *_f("f16v4maxc", "d:a, x:aP", "larger of lanes; which are paired is not public"),
    *_f("f16v2class", "d:a, x:a", "classes of the lanes; the codes are not public"),
    *_f("f16v4class", "d:a, x:aP", "classes of the lanes; the codes are not public"),
)
