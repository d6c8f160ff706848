"""Arithmetic and comparison on 32-bit integers of the MRF; moves, selections and bit counts (ISA reference §8)."""

from __future__ import annotations

from functools import partial
from typing import Final

from t10.isa.instructions.define import forms
from t10.isa.record import Instruction

_THREE: Final = "d:m, x:m, y:m"
_Z16: Final = f"{_THREE} | d:m, x:m, y:z16"
_ZS16: Final = f"{_Z16} | d:m, x:m, y:s16"
_Z12: Final = f"{_THREE} | d:m, x:m, y:z12"
_SHIFT: Final = "Shift amounts above 31: the low five bits count."

_i = partial(forms, group="integer")

INTEGER: tuple[Instruction, ...] = (
    *_i(
        "abs",
        "d:m, x:m",
        "d = |x|, x signed",
        "d = int32_t(x) < 0 ? 0u - x : x;",
        "The magnitude of the least integer is itself.",
    ),
    *_i("add", _ZS16, "d = x + y (mod 2^32)", "d = x + y;"),
    *_i("sub", f"{_THREE} | d:m, x:z16, y:m | d:m, x:s16, y:m", "d = x - y (mod 2^32)", "d = x - y;"),
    *_i("sub", "d:m, x:m, y:s16", "d = x - y; another spelling of add d, x, -y", "d = x - y;"),
    *_i("mul", f"{_THREE} | d:m, x:m, y:s16", "d = low 32 bits of x * y", "d = x * y;"),
    *_i("and", _Z12, "d = x & y", "d = x & y;"),
    *_i("andc", _Z12, "d = x & ~y", "d = x & ~y;"),
    *_i("or", f"{_Z12} | d:m, x:m, y:hi12", "d = x | y", "d = x | y;"),
    *_i("xor", _THREE, "d = x ^ y", "d = x ^ y;"),
    *_i("xnor", _THREE, "d = ~(x ^ y)", "d = ~(x ^ y);"),
    *_i("shl", _Z12, "d = x << y", "d = x << (y & 31);", _SHIFT),
    *_i("shr", _Z12, "d = x >> y, zeros shifted in", "d = x >> (y & 31);", _SHIFT),
    *_i("shrs", _Z12, "d = x >> y, sign shifted in", "d = uint32_t(int32_t(x) >> (y & 31));", _SHIFT),
    *_i("cmpeq", _ZS16, "d = x == y ? 1 : 0", "d = x == y;"),
    *_i("cmpne", _THREE, "d = x != y ? 1 : 0", "d = x != y;"),
    *_i("cmpslt", f"{_THREE} | d:m, x:m, y:s16", "d = x < y ? 1 : 0, signed", "d = int32_t(x) < int32_t(y);"),
    *_i("cmpult", _Z16, "d = x < y ? 1 : 0, unsigned", "d = x < y;"),
    *_i("max", _ZS16, "d = the larger, signed", "d = int32_t(x) > int32_t(y) ? x : y;"),
    *_i("min", _ZS16, "d = the smaller, signed", "d = int32_t(x) < int32_t(y) ? x : y;"),
    *_i("movz", "!d:m, q:m, s:m", "if q == 0: d = s", "if (q == 0) d = s;"),
    *_i("movnz", "!d:m, q:m, s:m", "if q != 0: d = s", "if (q != 0) d = s;"),
    *_i("clz", "d:m, x:m", "d = leading zero bits of x; 32 for zero", "d = leading_zeros(x);"),
    *_i("popc", "d:m, x:m", "d = bits of x that are set", "d = population(x);"),
    *_i(
        "cms",
        "d:m, x:m",
        "d = bits from bit 30 downwards that equal bit 31, up to the first that does not: 0..31",
        "d = leading_zeros(int32_t(x) < 0 ? ~x : x) - 1;",
    ),
    *_i("bitrev8", "d:m, x:m", "d = x with the bits of every byte reversed", "d = reversed_bytes(x);"),
    *_i("setzi", "d:m, imm:z20", "d = imm", "d = imm;"),
    *_i("mov", "d:m, s:m", "d = s", "d = s;"),
    *_i("zero", "d:m", "d = 0", "d = 0;"),
    *_i("nop", "", "nothing", " "),
    *_i(
        "ldconst",
        "d:m, imm:i32",
        "d = imm; two words, and not in a bundle, unless imm is below 2^20",
        "d = imm;",
    ),
    *_i("atom", "d:m, s:a", "d = s, bit for bit", "d = s;", mode="worker"),
    *_i("mov", "d:m, s:a", "d = s, bit for bit (atom)", "d = s;", mode="worker"),
)
