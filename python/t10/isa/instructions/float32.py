"""Arithmetic on f32, one lane in a register or two in a pair; every result is rounded to f32 (ISA reference §9)."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.instructions.float16 import ARITHMETIC, COMPARED, COMPARISONS, LIBRARY, NUMBER_WINS
from t10.isa.record import Instruction

_ROUNDED: Final = "Nearest even, denormals kept, NaN results are 0x7fc00000."
_TWO: Final = {1: "d:a, x:a, y:a", 2: "d:aP, x:aP, y:aP"}
_ONE: Final = {1: "d:a, x:a", 2: "d:aP, x:aP"}
_BROADCAST: Final = {1: _TWO[1], 2: f"{_TWO[2]} | d:aP, x:a:B, y:aP"}

_f = partial(forms, group="float32", pipe="aux", mode="worker")


def _lanes(n: int) -> tuple[Instruction, ...]:
    """Return what exists for one lane and for two."""
    name = "f32" if n == 1 else "f32v2"
    records: list[Instruction] = []
    for op, sign, functor in ARITHMETIC:
        code = f"d = words(x, y, {functor}());"
        records += _f(name + op, _BROADCAST[n], f"each lane: x {sign} y, rounded to f32", code, _ROUNDED)
    for op, sign, functor in COMPARISONS:
        code = f"d = word_masks(x, y, {functor}());"
        records += _f(
            f"{name}cmp{op}", _BROADCAST[n], f"each lane: x {sign} y ? 0xffffffff : 0", code, COMPARED
        )
    for op, functor in (("max", "Max"), ("min", "Min")):
        records += _f(
            name + op, _TWO[n], f"each lane: {op}(x, y)", f"d = words(x, y, {functor}());", NUMBER_WINS
        )
    records += _f(f"{name}absadd", _TWO[n], "each lane: |x| + |y|", "d = words(x, y, AbsAdd());", _ROUNDED)
    records += _f(
        f"{name}absmax", _TWO[n], "each lane: max(|x|, |y|)", "d = words(x, y, AbsMax());", NUMBER_WINS
    )
    limit = f"{_ONE[n]}, lim:aP"
    code = "d = clamp_words(x, lim);"
    records += _f(f"{name}clamp", limit, "each lane: min(max(x, lim.w[0]), lim.w[1])", code, NUMBER_WINS)
    code = "d = centred_words(x);"
    records += _f(f"{name}sufromui", _ONE[n], "each lane: (x as u32 + 0.5) / 2^32 - 0.5", code)
    return tuple(records)


def _function(op: str, what: str, functor: str, slots: int) -> tuple[Instruction, ...]:
    return _f(f"f32{op}", _ONE[1], f"d = {what}", f"d = word_function(x, {functor}());", LIBRARY, slots)


FLOAT32: tuple[Instruction, ...] = (
    *_lanes(1),
    *_lanes(2),
    *_f("f32div", "d:a, x:a, y:a", "d = x / y, rounded to f32", "d = words(x, y, Div());", _ROUNDED, 4),
    *_function("oox", "1 / x", "OneOver", 3),
    *_function("oorx", "1 / sqrt(x)", "OneOverRoot", 4),
    *_function("sqrt", "sqrt(x)", "Root", 5),
    *_function("exp", "e^x", "Exp", 3),
    *_function("exp2", "2^x", "Exp2", 3),
    *_function("ln", "natural logarithm of x", "Ln", 6),
    *_function("log2", "logarithm of x to base 2", "Log2", 6),
    *_function("tanh", "hyperbolic tangent of x", "Tanh", 5),
    *_function("sigm", "1 / (1 + e^-x)", "Sigmoid", 5),
    *_f(
        "f32int",
        "d:a, x:a, rnd:z3",
        "d = x rounded to an integer: rnd 2 downwards, rnd 3 towards zero; other values are not public",
        "d = c.integral(x, rnd);",
    ),
    *_f("f32class", "d:a, x:a", "class of the number; the codes are not public"),
    *_f("f32v2class", "d:a, x:aP", "classes of the lanes; the codes are not public"),
)
