"""Operations on 64-bit integers as instructions on two words.

A value that is proved to fit in one word is that word; `widened` gives it its high word where an operation needs both.
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.codelets.loops import floats, integers
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.core.intervals import WIDE_DTYPES
from t10.core.scalar import ScalarOp, parse_constant
from t10.errors import UnsupportedOpError

TRANSFER = "$m11, $mzero, 1"
"""Where a step leaves its second word: the second word of a worker's frame."""

FRAME_WORDS = 9
"""First words of a frame with wide values: transfers between files, `TRANSFER`, the high word of the accumulator, and
six for divisions."""

ACCUMULATOR_HIGH = "$m11, $mzero, 2"


@dataclass(frozen=True, slots=True)
class Pair:
    """A 64-bit value in two registers."""

    low: Value
    high: Value


Word = Value | Pair
"""A value of any type."""

DIVISIONS = frozenset(
    {"arith.divsi", "arith.remsi", "arith.floordivsi", "arith.ceildivsi", "arith.divui", "arith.remui"}
)
CASTS = frozenset(
    {"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui", "arith.bitcast"}
)
BITWISE = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
EXTREMES = {"arith.maxsi": "sgt", "arith.minsi": "slt", "arith.maxui": "ugt", "arith.minui": "ult"}
SHIFTS = {"arith.shli": ("shl", "shr"), "arith.shrsi": ("shrs", "shl"), "arith.shrui": ("shr", "shl")}

# Restoring division of the words 3, 4 (low, high) by 5, 6 of the frame, in 64 steps: the quotient replaces the dividend
# and {d}, {t0} are the remainder. By zero, both are zero.
DIVISION = (
    "setzi {d}, 0", "setzi {t0}, 0", "setzi {t1}, 63", "st32 {t1}, $m11, $mzero, 7",
    "ld32 {t1}, $m11, $mzero, 5", "ld32 {t2}, $m11, $mzero, 6", "or {t1}, {t1}, {t2}", "brnz {t1}, {L}_next",
    "st32 {d}, $m11, $mzero, 3", "st32 {d}, $m11, $mzero, 4", "bri {L}_end",
    "{L}_next:",
    "ld32 {t1}, $m11, $mzero, 3", "ld32 {t2}, $m11, $mzero, 4",
    "shr {t3}, {t0}, 31", "st32 {t3}, $m11, $mzero, 8", "shl {t0}, {t0}, 1", "shr {t3}, {d}, 31", "or {t0}, {t0}, {t3}",
    "shl {d}, {d}, 1", "shr {t3}, {t2}, 31", "or {d}, {d}, {t3}",
    "shl {t2}, {t2}, 1", "shr {t3}, {t1}, 31", "or {t2}, {t2}, {t3}", "st32 {t2}, $m11, $mzero, 4",
    "shl {t1}, {t1}, 1", "st32 {t1}, $m11, $mzero, 3",
    "ld32 {t1}, $m11, $mzero, 5", "ld32 {t2}, $m11, $mzero, 6",
    "ld32 {t3}, $m11, $mzero, 8", "brnz {t3}, {L}_subtract", "cmpult {t3}, {t0}, {t2}", "brnz {t3}, {L}_less",
    "cmpult {t3}, {d}, {t1}", "brz {t3}, {L}_subtract",
    "cmpeq {t3}, {t0}, {t2}", "brnz {t3}, {L}_less",
    "{L}_subtract:",
    "cmpult {t3}, {d}, {t1}", "sub {d}, {d}, {t1}", "sub {t0}, {t0}, {t2}", "sub {t0}, {t0}, {t3}",
    "ld32 {t1}, $m11, $mzero, 3", "or {t1}, {t1}, 1", "st32 {t1}, $m11, $mzero, 3",
    "{L}_less:",
    "ld32 {t1}, $m11, $mzero, 7", "add {t2}, {t1}, -1", "st32 {t2}, $m11, $mzero, 7", "brnz {t1}, {L}_next",
    "{L}_end:",
)  # fmt: skip


def widened(code: VirtualCode, x: Word) -> Pair:
    """Return a value as two words."""
    return x if isinstance(x, Pair) else Pair(x, code.m("shrs {d}, {x}, 31", x=x))


def low(x: Word) -> Value:
    """Return the low word of a value."""
    return x.low if isinstance(x, Pair) else x


def saturated(code: VirtualCode, x: Word) -> Value:
    """Add the word nearest to a value, so that an index out of range stays out of range."""
    if not isinstance(x, Pair):
        return x
    lines = ("mov {d}, {x}", "shrs {t0}, {x}, 31", "cmpeq {t0}, {t0}, {h}", "shrs {t1}, {h}, 31",
             "ldconst {t2}, 0x7fffffff", "xor {t1}, {t1}, {t2}", "movz {d}, {t0}, {t1}")  # fmt: skip
    return code.m(*lines, x=x.low, h=x.high)


def constant(code: VirtualCode, value: int) -> Pair:
    """Add a constant of two words."""
    words = (value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF)
    return Pair(*(code.m(f"ldconst {{d}}, {word:#x}") for word in words))


def emit_wide(code: VirtualCode, op: ScalarOp, operands: tuple[Word, ...], dtypes: tuple[str, ...]) -> Word:
    """Add an operation that reads or gives integers of 64 bits."""
    if op.opcode == "const":
        return constant(code, int(parse_constant(op.attribute)))
    if op.opcode == "arith.select":
        x, y = (widened(code, v) for v in operands[1:])
        return select(code, low(operands[0]), x, y)
    if op.opcode in ("arith.fptosi", "arith.fptoui"):
        return from_float(code, low(operands[0]), is_signed=op.opcode == "arith.fptosi")
    if op.opcode in CASTS and dtypes[0] not in WIDE_DTYPES:
        # What needs two words comes without sign.
        return Pair(integers.unsigned(code, low(operands[0]), dtypes[0]), code.m("setzi {d}, 0"))
    if op.opcode in CASTS:
        return operands[0] if op.dtype in WIDE_DTYPES else integers.wrapped(code, low(operands[0]), op.dtype)
    pairs = [widened(code, v) for v in operands]
    if op.opcode == "arith.cmpi":
        return compare(code, op.attribute, pairs[0], pairs[1])
    if op.opcode in ("arith.sitofp", "arith.uitofp"):
        value = to_float(code, pairs[0], is_signed=op.opcode == "arith.sitofp")
        return floats.rounded(code, value, op.dtype)
    return _arithmetic(code, op, pairs[0], pairs[-1])


def _arithmetic(code: VirtualCode, op: ScalarOp, x: Pair, y: Pair) -> Pair:
    """Add an operation on integers of 64 bits (`y` is `x` where there is one operand)."""
    if op.opcode == "arith.addi":
        return _add(code, x, y)
    if op.opcode == "arith.subi":
        return _subtract(code, x, y)
    if op.opcode == "arith.muli":
        return _multiply(code, x, y)
    if op.opcode in BITWISE:
        text = f"{BITWISE[op.opcode]} {{d}}, {{x}}, {{y}}"
        return Pair(code.m(text, x=x.low, y=y.low), code.m(text, x=x.high, y=y.high))
    if op.opcode in EXTREMES:
        return select(code, compare(code, EXTREMES[op.opcode], x, y), x, y)
    if op.opcode in SHIFTS:
        return _shift(code, op.opcode, x, y.low)
    if op.opcode == "math.absi":
        return _with_sign(code, x, x.high)
    if op.opcode in DIVISIONS:
        return _divide(code, op.opcode, x, y)
    raise UnsupportedOpError(f"codelets do not know the scalar operation {op.opcode} on integers of 64 bits")


def select(code: VirtualCode, condition: Value, x: Pair, y: Pair) -> Pair:
    """Add `condition ? x : y`."""
    return Pair(
        integers.select(code, condition, x.low, y.low), integers.select(code, condition, x.high, y.high)
    )


def compare(code: VirtualCode, predicate: str, x: Pair, y: Pair) -> Value:
    """Add `arith.cmpi`: 0 or 1."""
    equal = code.m("cmpeq {d}, {x}, {y}", x=x.high, y=y.high)
    if predicate in ("eq", "ne"):
        both = code.m("cmpeq {d}, {x}, {y}", "and {d}, {d}, {e}", x=x.low, y=y.low, e=equal)
        return both if predicate == "eq" else floats.negated(code, both)
    if predicate[1:] in ("gt", "le"):
        x, y = y, x
    above = code.m(f"cmp{predicate[0]}lt {{d}}, {{x}}, {{y}}", x=x.high, y=y.high)
    below = code.m(
        "cmpult {d}, {x}, {y}", "and {d}, {d}, {e}", "or {d}, {d}, {a}", x=x.low, y=y.low, e=equal, a=above
    )
    return below if predicate[1:] in ("lt", "gt") else floats.negated(code, below)


def to_float(code: VirtualCode, x: Pair, *, is_signed: bool) -> Value:
    """Add the nearest f32: the leading 32 bits, the last of them set where others follow, times a power of two."""
    size = _with_sign(code, x, x.high) if is_signed else x
    # Shifted left until the first bit is set; a zero stays.
    lines = ("clz {d}, {h}", "clz {t0}, {x}", "add {t0}, {t0}, 32", "movz {d}, {h}, {t0}")
    n = code.m(*lines, h=size.high, x=size.low)
    first = _shift(code, "arith.shli", size, n)
    top = code.m("cmpne {d}, {x}, $mzero", "or {d}, {d}, {h}", x=first.low, h=first.high)
    result = code.a("f32fromui32 {d}, {x}", x=floats.to_arf(code, top))
    # 2^(32 - n) by its exponent.
    power = code.m("setzi {d}, 159", "sub {d}, {d}, {n}", "shl {d}, {d}, 23", n=n)
    result = code.a("f32mul {d}, {x}, {p}", x=result, p=floats.to_arf(code, power))
    if not is_signed:
        return result
    sign = code.m("shr {d}, {h}, 31", "shl {d}, {d}, 31", h=x.high)
    return code.a("or {d}, {x}, {s}", x=result, s=floats.to_arf(code, sign))


def from_float(code: VirtualCode, x: Value, *, is_signed: bool) -> Pair:
    """Add truncation that saturates; a NaN becomes 0."""
    bits = floats.to_mrf(code, x)
    exponent = code.m("shl {d}, {b}, 1", "shr {d}, {d}, 24", b=bits)
    zero = code.m("setzi {d}, 0")
    # The significand below a leading one, at the top of 64 bits, then moved down.
    top = code.m("shl {d}, {b}, 8", "ldconst {t0}, 0x80000000", "or {d}, {d}, {t0}", b=bits)
    down = code.m("setzi {d}, 190", "sub {d}, {d}, {e}", e=exponent)
    size = _shift(code, "arith.shrui", Pair(zero, top), code.m("and {d}, {x}, 63", x=down))
    small = code.m("cmpslt {d}, {e}, 127", e=exponent)
    size = select(code, small, Pair(zero, zero), size)
    limit = 190 if is_signed else 191
    large = code.m(f"cmpslt {{d}}, {{e}}, {limit}", "cmpeq {d}, {d}, 0", e=exponent)
    negative = code.m("shrs {d}, {b}, 31", b=bits)
    if is_signed:
        size = _with_sign(code, size, negative)
        high = code.m("ldconst {d}, 0x7fffffff", "xor {d}, {d}, {n}", n=negative)
        ends = code.m("cmpeq {d}, {n}, 0", "sub {d}, $mzero, {d}", n=negative)
        size = select(code, large, Pair(ends, high), size)
    else:
        ones = code.m("add {d}, $mzero, -1")
        size = select(code, large, Pair(ones, ones), size)
        size = select(code, negative, Pair(zero, zero), size)
    is_number = floats.as_bit(code, floats.compare(code, "ord", x, x))
    return select(code, is_number, size, Pair(zero, zero))


def _add(code: VirtualCode, x: Pair, y: Pair) -> Pair:
    total = code.m("add {d}, {x}, {y}", x=x.low, y=y.low)
    carry = code.m("cmpult {d}, {t}, {y}", t=total, y=y.low)
    high = code.m("add {d}, {x}, {y}", x=x.high, y=y.high)
    return Pair(total, code.m("add {d}, {h}, {c}", h=high, c=carry))


def _subtract(code: VirtualCode, x: Pair, y: Pair) -> Pair:
    borrow = code.m("cmpult {d}, {x}, {y}", x=x.low, y=y.low)
    high = code.m("sub {d}, {x}, {y}", x=x.high, y=y.high)
    return Pair(code.m("sub {d}, {x}, {y}", x=x.low, y=y.low), code.m("sub {d}, {h}, {b}", h=high, b=borrow))


def _multiply(code: VirtualCode, x: Pair, y: Pair) -> Pair:
    """Add the low 64 bits of a product: that of the low words by halves, and the two crossed ones."""

    def half(value: Value, *, is_upper: bool) -> Value:
        text = ("shr {d}, {x}, 16",) if is_upper else ("shl {d}, {x}, 16", "shr {d}, {d}, 16")
        return code.m(*text, x=value)

    def product(a: Value, b: Value) -> Value:
        return code.m("mul {d}, {x}, {y}", x=a, y=b)

    def plus(a: Value, b: Value) -> Value:
        return code.m("add {d}, {x}, {y}", x=a, y=b)

    x0, x1 = half(x.low, is_upper=False), half(x.low, is_upper=True)
    y0, y1 = half(y.low, is_upper=False), half(y.low, is_upper=True)
    first, second = product(x0, y1), product(x1, y0)
    middle = plus(half(product(x0, y0), is_upper=True), half(first, is_upper=False))
    middle = plus(middle, half(second, is_upper=False))
    high = plus(product(x1, y1), half(first, is_upper=True))
    high = plus(plus(high, half(second, is_upper=True)), half(middle, is_upper=True))
    high = plus(plus(high, product(x.high, y.low)), product(x.low, y.high))
    return Pair(product(x.low, y.low), high)


def _shift(code: VirtualCode, opcode: str, x: Pair, count: Value) -> Pair:
    """Add a shift by 0 to 63: the bits of one word that enter the other are shifted twice, as no shift is by 32."""
    along, against = SHIFTS[opcode]
    is_left = opcode == "arith.shli"
    source, target = (x.low, x.high) if is_left else (x.high, x.low)
    # Bits move from `source` to `target`.
    lines = (
        f"{against} {{d}}, {{s}}, 1",
        "setzi {t0}, 31",
        "sub {t0}, {t0}, {n}",
        f"{against} {{d}}, {{d}}, {{t0}}",
    )
    entering = code.m(*lines, s=source, n=count)
    near = code.m(
        f"{'shl' if is_left else 'shr'} {{d}}, {{t}}, {{n}}",
        "or {d}, {d}, {e}",
        t=target,
        n=count,
        e=entering,
    )
    moved = code.m("and {t0}, {n}, 31", f"{along} {{d}}, {{s}}, {{t0}}", s=source, n=count)
    is_far = code.m("shr {d}, {n}, 5", n=count)
    rest = code.m("shrs {d}, {s}, 31", s=source) if along == "shrs" else code.m("setzi {d}, 0")
    near, left = integers.select(code, is_far, moved, near), integers.select(code, is_far, rest, moved)
    return Pair(left, near) if is_left else Pair(near, left)


def _with_sign(code: VirtualCode, x: Pair, sign: Value) -> Pair:
    """Add the negation of a value where `sign` is negative."""
    mask = code.m("shrs {d}, {s}, 31", s=sign)
    flipped = Pair(
        code.m("xor {d}, {x}, {m}", x=x.low, m=mask), code.m("xor {d}, {x}, {m}", x=x.high, m=mask)
    )
    return _subtract(code, flipped, Pair(mask, mask))


def _divide(code: VirtualCode, opcode: str, x: Pair, y: Pair) -> Pair:
    """Add a division by absolute values and signs; floors and ceilings mend the truncated quotient."""
    is_signed = opcode not in ("arith.divui", "arith.remui")
    size, step = (_with_sign(code, v, v.high) if is_signed else v for v in (x, y))
    for i, value in enumerate((size.low, size.high, step.low, step.high), 3):
        code.effect(f"st32 {{x}}, $m11, $mzero, {i}", x=value)
    rest_low = code.m(*DIVISION, f"st32 {{t0}}, {TRANSFER}")
    rest = Pair(rest_low, code.m(f"ld32 {{d}}, {TRANSFER}"))
    if opcode in ("arith.remsi", "arith.remui"):
        return _with_sign(code, rest, x.high) if is_signed else rest
    size = Pair(code.m("ld32 {d}, $m11, $mzero, 3"), code.m("ld32 {d}, $m11, $mzero, 4"))
    if not is_signed:
        return size
    signs = code.m("xor {d}, {x}, {y}", x=x.high, y=y.high)
    quotient = _with_sign(code, size, signs)
    if opcode == "arith.divsi":
        return quotient
    has_rest = code.m("or {d}, {x}, {y}", "cmpne {d}, {d}, $mzero", x=rest.low, y=rest.high)
    # 1 where the exact quotient is below the truncated one (floor) or above it (ceiling).
    is_floor = opcode == "arith.floordivsi"
    lines = ("shr {t0}, {s}, 31", f"{'and' if is_floor else 'andc'} {{d}}, {{r}}, {{t0}}")
    mend = Pair(code.m(*lines, s=signs, r=has_rest), code.m("setzi {d}, 0"))
    return (_subtract if is_floor else _add)(code, quotient, mend)
