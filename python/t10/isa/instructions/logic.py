"""Bitwise logic and moves on the ARF: the auxiliary pipe's spellings of what the MRF has, and 64-bit forms."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_WORD: Final = "d:a, x:a, y:a | d:a, x:a, y:z12 | d:a, x:a, y:hi12"
_PAIR: Final = "d:aP, x:aP, y:aP"

_a = partial(forms, group="logic", pipe="aux", mode="worker")

LOGIC: tuple[Instruction, ...] = (
    *_a("and", _WORD, "d = x & y", "d = x & y;"),
    *_a("andc", _WORD, "d = x & ~y", "d = x & ~y;"),
    *_a("or", _WORD, "d = x | y", "d = x | y;"),
    *_a("not", "d:a, x:a", "d = ~x", "d = ~x;"),
    *_a("and64", _PAIR, "d = x & y, 64 bits", "d = Pair{{x.w[0] & y.w[0], x.w[1] & y.w[1]}};"),
    *_a("andc64", _PAIR, "d = x & ~y, 64 bits", "d = Pair{{x.w[0] & ~y.w[0], x.w[1] & ~y.w[1]}};"),
    *_a("or64", _PAIR, "d = x | y, 64 bits", "d = Pair{{x.w[0] | y.w[0], x.w[1] | y.w[1]}};"),
    *_a("not64", "d:aP, x:aP", "d = ~x, 64 bits", "d = Pair{{~x.w[0], ~x.w[1]}};"),
    *_a("setzi", "d:a, imm:z20", "d = imm; also written as an f16 such as 1.0h", "d = imm;"),
    *_a("mov", "d:a, s:a | d:aP, s:aP", "d = s", "d = s;"),
    *_a("zero", "d:a | d:aP", "d = 0", "d = {};"),
    *_a("fnop", "", "nothing", " "),
    *_a(
        "ldconst",
        "d:a, imm:i32",
        "d = imm; two words, and not in a bundle, unless imm is below 2^20",
        "d = imm;",
    ),
)
