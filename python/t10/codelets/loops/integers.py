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

# Restoring division: a bit of the dividend after the other, all 32 whatever they are, so that cycles do not depend on
# data. {d} turns from dividend to the quotient's complement, {t0} is the remainder. By zero, both are zero. A divisor
# of 2^31 and more is subtracted at the last bit only, so that no remainder outgrows a word.
DIVISION = (
    "setzi {t0}, 0", "mov {d}, {x}", "setzi {t1}, 31",
    "{L}_next:", "shr {t2}, {d}, 31", "shl {d}, {d}, 1", "shl {t0}, {t0}, 1", "or {t0}, {t0}, {t2}",
    "cmpult {t2}, {t0}, {y}", "or {d}, {d}, {t2}", "add {t2}, {t2}, -1", "and {t2}, {t2}, {y}",
    "sub {t0}, {t0}, {t2}", "brnzdec {t1}, {L}_next",
    "xnor {d}, {d}, $mzero", "movz {d}, {y}, $mzero", "movz {t0}, {y}, $mzero",
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
    """Add `condition ? x : y` of two values of the MRF."""
    return code.m("mov {d}, {y}", "movnz {d}, {c}, {x}", c=condition, x=x, y=y)


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
        return _with_sign(code, _division(code, size, step, is_remainder=True), x)
    signs = code.m("xor {d}, {x}, {y}", x=x, y=y)
    quotient = _with_sign(code, _division(code, size, step, is_remainder=False), signs)
    if opcode == "arith.divsi":
        return quotient
    product = code.m("mul {d}, {x}, {y}", x=quotient, y=y)
    rest = code.m("sub {d}, {x}, {y}", x=x, y=product)
    is_floor = opcode == "arith.floordivsi"
    # 1 where the exact quotient is below the truncated one (floor) or above it (ceiling).
    lines = ("cmpne {d}, {r}, $mzero", "movz {d}, {y}, $mzero", "shr {t0}, {s}, 31",
             f"{'and' if is_floor else 'andc'} {{d}}, {{d}}, {{t0}}")  # fmt: skip
    mend = code.m(*lines, r=rest, y=y, s=signs)
    return code.m(f"{'sub' if is_floor else 'add'} {{d}}, {{q}}, {{m}}", q=quotient, m=mend)


def _with_sign(code: VirtualCode, size: Value, sign: Value) -> Value:
    """Add the negation of a value where `sign` is negative."""
    return code.m("shrs {t0}, {s}, 31", "xor {d}, {x}, {t0}", "sub {d}, {d}, {t0}", x=size, s=sign)
