"""One operation on floats as instructions on f32 registers.

A value of type f16 is kept as the f32 of the same number; operations that can leave f16 round to it afterwards.
"""

from __future__ import annotations

import struct

import numpy as np

from t10.codelets.body.far import FAR, far_lines, is_near
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.core.scalar import ScalarOp, parse_constant

TRANSFER, TRANSFER_TRUE = "$m11, $mzero, 0", "$m11, $mzero, 1"
"""Where words go from one register file to the other: the first words of a worker's frame."""

TRANSFER_WORDS = 2

SIGN = "0x80000000"
MINUS_ONE = "0xbf800000"

ROUNDED: dict[str, tuple[str, ...]] = {
    "arith.addf": ("f32add {d}, {x}, {y}",),
    "arith.subf": ("f32sub {d}, {x}, {y}",),
    "arith.mulf": ("f32mul {d}, {x}, {y}",),
    "arith.divf": ("f32div {d}, {x}, {y}",),
    "math.exp": ("f32exp {d}, {x}",),
    "math.exp2": ("f32exp2 {d}, {x}",),
    "math.log": ("f32ln {d}, {x}",),
    "math.log2": ("f32log2 {d}, {x}",),
    "math.tanh": ("f32tanh {d}, {x}",),
    "math.sqrt": ("f32sqrt {d}, {x}",),
    "math.rsqrt": ("f32oorx {d}, {x}",),
    "arith.truncf": ("mov {d}, {x}",),
}
"""Operations whose result is rounded to their type."""

# Magnitudes have a NaN for a sum where one is a NaN; its comparison with itself is all ones, which is a NaN again.
SPREAD_NAN = ("f32absadd {f0}, {x}, {y}", "f32cmpne {f0}, {f0}, {f0}", "or {d}, {d}, {f0}")
# Where x is a NaN both become y, where y is one both become x.
AVOID_NAN = ("f32cmpeq {f0}, {x}, {x}", "and {f1}, {x}, {f0}", "andc {f0}, {y}, {f0}", "or {f1}, {f1}, {f0}",
             "f32cmpeq {f0}, {y}, {y}", "and {d}, {y}, {f0}", "andc {f0}, {x}, {f0}", "or {f0}, {d}, {f0}")  # fmt: skip

OF_HALF = {"math.exp": "f16v2exp", "math.exp2": "f16v2exp2"}

EXACT: dict[str, tuple[str, ...]] = {
    "arith.extf": ("mov {d}, {x}",),
    "arith.negf": (f"ldconst {{f0}}, {MINUS_ONE}", "f32mul {d}, {x}, {f0}"),
    "math.absf": ("f32absadd {d}, {x}, $azero",),
    "math.floor": ("f32int {d}, {x}, 2",),
    "math.trunc": ("f32int {d}, {x}, 3",),
    "math.copysign": (
        f"ldconst {{f0}}, {SIGN}", "and {f1}, {y}, {f0}", "andc {d}, {x}, {f0}", "or {d}, {d}, {f1}",
    ),
    "arith.maximumf": ("f32max {d}, {x}, {y}", *SPREAD_NAN),
    "arith.minimumf": ("f32min {d}, {x}, {y}", *SPREAD_NAN),
    "arith.maxnumf": (*AVOID_NAN, "f32max {d}, {f0}, {f1}"),
    "arith.minnumf": (*AVOID_NAN, "f32min {d}, {f0}, {f1}"),
}  # fmt: skip
"""Operations whose result is one of f16 if their operands are."""

COMPARISONS = {
    "eq": "f32cmpeq",
    "ne": "f32cmpne",
    "gt": "f32cmpgt",
    "ge": "f32cmpge",
    "lt": "f32cmplt",
    "le": "f32cmple",
}
OPPOSITE = {"eq": "one", "gt": "ole", "ge": "olt", "lt": "oge", "le": "ogt", "ne": "oeq"}


def is_float_type(dtype: str) -> bool:
    """Return whether values of a type live in the ARF."""
    return dtype in ("f16", "f32")


def emit_float(code: VirtualCode, op: ScalarOp, operands: tuple[Value, ...]) -> Value | None:
    """Add an operation on floats; None where it is not one."""
    uses = dict(zip("xyz", operands, strict=False))
    if op.opcode in EXACT:
        return code.a(*EXACT[op.opcode], **uses)
    if op.opcode == FAR:
        return _far(code, op.attribute, operands)
    if op.dtype == "f16" and op.opcode in OF_HALF:
        # Instructions of f16 keep what is finite finite; behind those of f32 it may be infinite.
        return code.a(
            "f32tof16 {d}, {x}", f"{OF_HALF[op.opcode]} {{d}}, {{d}}", "f16tof32 {d}, {d}", x=operands[0]
        )
    if op.opcode in ROUNDED:
        return rounded(code, code.a(*ROUNDED[op.opcode], **uses), op.dtype)
    return None


def _far(code: VirtualCode, name: str, operands: tuple[Value, ...]) -> Value:
    """Add a function whose far arguments take a slow path."""
    registers = {"x": "{t0}", "y": "{t1}", "n": "{t2}", "e": "{t3}"}
    *sources, near = operands
    uses = {**dict(zip("xy", sources, strict=False)), "near": near}
    lines = ["mov {d}, {near}", *(f"mov {registers[x]}, {{{x}}}" for x in "xy"[: len(sources)])]
    for mnemonic, *names in is_near(name):
        lines.append(f"{mnemonic} {', '.join(registers.get(x, x) for x in names)}")
    lines += ["brnz {t2}, {L}_done", *(line.replace("{word}", TRANSFER) for line in far_lines(name))]
    return code.a(*lines, **uses)


def rounded(code: VirtualCode, x: Value, dtype: str) -> Value:
    """Add rounding to f16 where the type asks for it."""
    if dtype != "f16":
        return x
    return code.a("f32tof16 {d}, {x}", "f16tof32 {d}, {d}", x=x)


def constant_bits(attribute: str, dtype: str) -> int:
    """Return the f32 bits of a float constant, rounded to its type first."""
    with np.errstate(over="ignore"):
        value = np.float32(parse_constant(attribute))
        value = np.float32(np.float16(value)) if dtype == "f16" else value
    return struct.unpack("<I", struct.pack("<f", float(value)))[0]


def compare(code: VirtualCode, predicate: str, x: Value, y: Value) -> Value:
    """Add `arith.cmpf`: a mask of the ARF, all ones or zeros; what compares nothing is 0 or 1 in the MRF."""
    if predicate in ("true", "false"):
        return code.m(f"setzi {{d}}, {int(predicate == 'true')}")
    if predicate == "uno":
        return negated(code, compare(code, "ord", x, y))
    if predicate == "une" or (predicate[0] == "o" and predicate[1:] in COMPARISONS and predicate != "one"):
        return code.a(f"{COMPARISONS[predicate[1:]]} {{d}}, {{x}}, {{y}}", x=x, y=y)
    if predicate == "ord":
        lines = ("f32cmpeq {d}, {x}, {x}", "f32cmpeq {f0}, {y}, {y}", "and {d}, {d}, {f0}")
        return code.a(*lines, x=x, y=y)
    if predicate == "one":
        lines = ("f32cmplt {d}, {x}, {y}", "f32cmpgt {f0}, {x}, {y}", "or {d}, {d}, {f0}")
        return code.a(*lines, x=x, y=y)
    return negated(code, compare(code, OPPOSITE[predicate[1:]], x, y))


def negated(code: VirtualCode, x: Value) -> Value:
    """Add the negation of a truth value, a bit of the MRF or a mask of the ARF."""
    return code.a("not {d}, {x}", x=x) if x.bank == "a" else code.m("cmpeq {d}, {x}, 0", x=x)


def as_bit(code: VirtualCode, truth: Value) -> Value:
    """Return a truth value as 0 or 1 of the MRF; adds the transfer of a mask."""
    return code.m("mov {d}, {x}", "and {d}, {d}, 1", x=truth) if truth.bank == "a" else truth


def select(code: VirtualCode, condition: Value, x: Value, y: Value) -> Value:
    """Add `condition ? x : y` of two values of the ARF; no branch, so that cycles do not depend on data."""
    if condition.bank == "a":
        return code.a("and {d}, {x}, {c}", "andc {f0}, {y}, {c}", "or {d}, {d}, {f0}", c=condition, x=x, y=y)
    code.has_transfers = True
    lines = (f"st32 {{y}}, {TRANSFER}", f"st32 {{x}}, {TRANSFER_TRUE}", "ld32 {d}, $m11, $mzero, {c}")
    return code.a(*lines, c=condition, x=x, y=y)


def to_arf(code: VirtualCode, x: Value) -> Value:
    """Add the transfer of a word from the MRF, bit for bit."""
    code.has_transfers = True
    return code.a(f"st32 {{x}}, {TRANSFER}", f"ld32 {{d}}, {TRANSFER}", x=x)


def to_mrf(code: VirtualCode, x: Value) -> Value:
    """Add the transfer of a word from the ARF, bit for bit."""
    return code.m("mov {d}, {x}", x=x)
