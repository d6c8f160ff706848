"""One operation on integers as instructions on the MRF.

A value is kept sign- or zero-extended to 32 bits as its type says; i1 is 0 or 1. Of values of 64 bits that are proved
to fit in a word only that is kept; others see `t10.codelets.loops.wide`.
"""

from __future__ import annotations

from t10.codelets.loops.floats import negated
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.core.scalar import ScalarOp

NARROW_BITS = {"i8": 8, "i16": 16, "ui8": 8, "ui16": 16}
INTEGER_TYPES = frozenset({"i1", "i32", "i64", "ui32", "ui64", "index", *NARROW_BITS})

PLAIN = {
    "arith.addi": "add {d}, {x}, {y}", "arith.subi": "sub {d}, {x}, {y}", "arith.muli": "mul {d}, {x}, {y}",
    "arith.andi": "and {d}, {x}, {y}", "arith.ori": "or {d}, {x}, {y}", "arith.xori": "xor {d}, {x}, {y}",
    "arith.shli": "shl {d}, {x}, {y}", "arith.shrsi": "shrs {d}, {x}, {y}", "arith.maxsi": "max {d}, {x}, {y}",
    "arith.minsi": "min {d}, {x}, {y}", "math.absi": "abs {d}, {x}",
}  # fmt: skip
UNSIGNED = {"arith.shrui", "arith.maxui", "arith.minui", "arith.divui", "arith.remui"}

# Restoring division: a bit of the dividend after the other; {d} turns from dividend to quotient, {t0} is the remainder.
DIVISION = (
    "setzi {d}, 0", "setzi {t0}, 0", "brz {y}, {L}_end", "brpos {y}, {L}_bits",
    "mov {t0}, {x}", "cmpult {t2}, {x}, {y}", "brnz {t2}, {L}_end", "sub {t0}, {x}, {y}", "setzi {d}, 1",
    "bri {L}_end",
    "{L}_bits:", "mov {d}, {x}", "setzi {t1}, 31",
    "{L}_next:", "shr {t2}, {d}, 31", "shl {d}, {d}, 1", "shl {t0}, {t0}, 1", "or {t0}, {t0}, {t2}",
    "cmpult {t2}, {t0}, {y}", "brnz {t2}, {L}_less", "sub {t0}, {t0}, {y}", "or {d}, {d}, 1",
    "{L}_less:", "brnzdec {t1}, {L}_next",
    "{L}_end:",
)  # fmt: skip


def emit_integer(code: VirtualCode, op: ScalarOp, operands: tuple[Value, ...]) -> Value | None:
    """Add an operation on integers; None where it is not one."""
    uses = dict(zip("xy", operands, strict=False))
    if op.opcode in PLAIN:
        return wrapped(code, code.m(PLAIN[op.opcode], **uses), op.dtype)
    if op.opcode in UNSIGNED:
        x, y = (unsigned(code, v, op.dtype) for v in operands)
        return wrapped(code, _unsigned(code, op.opcode, x, y), op.dtype)
    if op.opcode in ("arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi"):
        divide = _divide_unsigned if op.dtype.startswith("u") else _divide_signed
        return wrapped(code, divide(code, op.opcode, operands[0], operands[1]), op.dtype)
    return None


def wrapped(code: VirtualCode, x: Value, dtype: str) -> Value:
    """Add the extension of a result's low bits to 32 bits."""
    if dtype == "i1":
        return code.m("and {d}, {x}, 1", x=x)
    if dtype not in NARROW_BITS:
        return x
    right = "shr" if dtype.startswith("u") else "shrs"
    shift = 32 - NARROW_BITS[dtype]
    return code.m(f"shl {{d}}, {{x}}, {shift}", f"{right} {{d}}, {{d}}, {shift}", x=x)


def unsigned(code: VirtualCode, x: Value, dtype: str) -> Value:
    """Add the reading of a value without sign."""
    return wrapped(code, x, f"u{dtype}") if dtype in ("i8", "i16") else x


def compare(code: VirtualCode, predicate: str, x: Value, y: Value, dtype: str) -> Value:
    """Add `arith.cmpi`: 0 or 1."""
    if predicate in ("eq", "ne"):
        return code.m(f"cmp{predicate} {{d}}, {{x}}, {{y}}", x=x, y=y)
    is_unsigned = predicate[0] == "u" or dtype.startswith("u")
    if is_unsigned:
        x, y = unsigned(code, x, dtype), unsigned(code, y, dtype)
    elif dtype == "i1":
        # Set and signed, one bit is -1.
        x, y = y, x
    less = "cmpult" if is_unsigned else "cmpslt"
    if predicate[1:] in ("gt", "le"):
        x, y = y, x
    result = code.m(f"{less} {{d}}, {{x}}, {{y}}", x=x, y=y)
    return result if predicate[1:] in ("lt", "gt") else negated(code, result)


def select(code: VirtualCode, condition: Value, x: Value, y: Value) -> Value:
    """Add `condition ? x : y` of values of one register file."""
    if x.bank == "m":
        return code.m("mov {d}, {y}", "movnz {d}, {c}, {x}", c=condition, x=x, y=y)
    return code.a("mov {d}, {x}", "brnz {c}, {L}", "mov {d}, {y}", "{L}:", c=condition, x=x, y=y)


def _unsigned(code: VirtualCode, opcode: str, x: Value, y: Value) -> Value:
    if opcode == "arith.shrui":
        return code.m("shr {d}, {x}, {y}", x=x, y=y)
    if opcode in ("arith.divui", "arith.remui"):
        return _division(code, x, y, is_remainder=opcode == "arith.remui")
    less = code.m("cmpult {d}, {x}, {y}", x=x, y=y)
    return select(code, less, y, x) if opcode == "arith.maxui" else select(code, less, x, y)


def _division(code: VirtualCode, x: Value, y: Value, *, is_remainder: bool) -> Value:
    tail = ("mov {d}, {t0}",) if is_remainder else ()
    return code.m(*DIVISION, *tail, x=x, y=y)


def _divide_unsigned(code: VirtualCode, opcode: str, x: Value, y: Value) -> Value:
    quotient = _division(code, x, y, is_remainder=opcode == "arith.remsi")
    if opcode != "arith.ceildivsi":
        return quotient
    rest = _division(code, x, y, is_remainder=True)
    return code.m("cmpne {d}, {x}, $mzero", "add {d}, {d}, {y}", x=rest, y=quotient)


def _divide_signed(code: VirtualCode, opcode: str, x: Value, y: Value) -> Value:
    """Add a division by absolute values and signs; floors and ceilings mend the truncated quotient."""
    size, step = (code.m("abs {d}, {x}", x=v) for v in (x, y))
    if opcode == "arith.remsi":
        rest = _division(code, size, step, is_remainder=True)
        return code.m("mov {d}, {r}", "brpos {x}, {L}", "sub {d}, $mzero, {d}", "{L}:", r=rest, x=x)
    size = _division(code, size, step, is_remainder=False)
    signs = code.m("xor {d}, {x}, {y}", x=x, y=y)
    quotient = code.m("mov {d}, {q}", "brpos {s}, {L}", "sub {d}, $mzero, {d}", "{L}:", q=size, s=signs)
    if opcode == "arith.divsi":
        return quotient
    product = code.m("mul {d}, {x}, {y}", x=quotient, y=y)
    rest = code.m("sub {d}, {x}, {y}", x=x, y=product)
    is_floor = opcode == "arith.floordivsi"
    lines = ("mov {d}, {q}", "brz {y}, {L}", "brz {r}, {L}", f"{'brpos' if is_floor else 'brneg'} {{s}}, {{L}}",
             f"add {{d}}, {{d}}, {-1 if is_floor else 1}", "{L}:")  # fmt: skip
    return code.m(*lines, q=quotient, y=y, r=rest, s=signs)
