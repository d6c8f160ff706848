"""Operations on integers and truth values, one register of the main pipe per point.

Integers of 8 and 16 bits lie extended to 32 bits as their type says; of 64-bit ones the low word is computed, where
`t10.codelets.body.words` proves that it tells the value.
"""

from __future__ import annotations

from t10.codelets.body.select import Handler, Selector
from t10.codelets.body.virtual import Operand, Slice
from t10.core.scalar import ScalarOp

NARROW_BITS = {"i8": 8, "i16": 16, "ui8": 8, "ui16": 16}
PLAIN = {"arith.addi": "add", "arith.subi": "sub", "arith.muli": "mul", "arith.andi": "and", "arith.ori": "or",
         "arith.xori": "xor", "arith.shli": "shl", "arith.maxsi": "max", "arith.minsi": "min"}  # fmt: skip
OF_TRUTHS = {"arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and"}
OVERFLOWS = frozenset({"arith.addi", "arith.subi", "arith.muli", "arith.shli"})
LIMITS = {"i8": (-128, 127), "ui8": (0, 255), "i16": (-32768, 32767), "ui16": (0, 65535)}


def narrowed(s: Selector, value: Slice, dtype: str) -> Slice:
    """Return a register cut to a type's bits and extended again."""
    bits = NARROW_BITS.get(dtype)
    if bits is None:
        return value
    if dtype == "ui8":
        return s.code.main("and", s.new("m"), value, "255")
    shifted = s.code.main("shl", s.new("m"), value, str(32 - bits))
    return s.code.main("shr" if dtype.startswith("u") else "shrs", s.new("m"), shifted, str(32 - bits))


def plain(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select an operation that has an instruction."""
    x, y = (s.operand(v, "m", part) for v in op.operands)
    mnemonic = OF_TRUTHS.get(op.opcode) if op.dtype == "i1" else None
    result = s.code.main(mnemonic or PLAIN[op.opcode], s.new("m"), x, y)
    return narrowed(s, result, op.dtype) if op.opcode in OVERFLOWS else result


def shift_right(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a shift to the right; without sign, the bits above a narrow type are zero."""
    x, y = (s.operand(v, "m", part) for v in op.operands)
    if op.opcode == "arith.shrsi":
        return s.code.main("shrs", s.new("m"), x, y)
    if op.dtype in ("i8", "i16"):
        x = narrowed(s, s.get(op.operands[0], "m", part), "u" + op.dtype)
    return narrowed(s, s.code.main("shr", s.new("m"), x, y), op.dtype)


def unsigned_extreme(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select the larger or smaller without sign."""
    x, y = (s.operand(v, "m", part) for v in op.operands)
    below = s.code.main("cmpult", s.new("m"), x, y)
    return choose(s, below, *((y, x) if op.opcode == "arith.maxui" else (x, y)))


def choose(s: Selector, condition: Operand, a: Operand, b: Operand) -> Slice:
    """Return `condition ? a : b` of registers."""
    target = s.code.main("mov", s.new("m"), b)
    s.code.add("movnz {}, {}, {}", "bii", target, condition, a, is_main=True)
    return target


def compare(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a comparison of integers; truth values are negative where set and signed."""
    x, y = (s.operand(v, "m", part) for v in op.operands)
    predicate = op.attribute
    if predicate in ("eq", "ne"):
        return s.code.main(f"cmp{predicate}", s.new("m"), x, y)
    kind, relation = predicate[0], predicate[1:]
    if s.dtypes[op.operands[0]] == "i1" and kind == "s":
        x, y = y, x
    is_unsigned = kind == "u" or s.dtypes[op.operands[0]].startswith("u")
    if relation in ("gt", "le"):
        x, y = y, x
    below = s.code.main("cmpult" if is_unsigned else "cmpslt", s.new("m"), x, y)
    if relation in ("lt", "gt"):
        return below
    return s.code.main("cmpeq", s.new("m"), below, "0")


def select(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select one of two integers."""
    condition, a, b = (s.operand(v, "m", part) for v in op.operands)
    return choose(s, condition, a, b)


def absolute(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select |x|."""
    return narrowed(s, s.code.main("abs", s.new("m"), s.get(op.operands[0], "m", part)), op.dtype)


def cast(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select an integer of another size."""
    value = op.operands[0]
    source, dtype = s.get(value, "m", part), s.dtypes[value]
    if op.opcode == "arith.trunci" and op.dtype == "i1":
        return s.code.main("and", s.new("m"), source, "1")
    if dtype == "i1" and op.opcode == "arith.extsi":
        return s.code.main("sub", s.new("m"), "$mzero", source)
    if op.opcode in ("arith.extui", "arith.index_castui") and dtype in ("i8", "i16"):
        return narrowed(s, source, "u" + dtype)
    return narrowed(s, source, op.dtype)


def from_float(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a float cut to an integer that saturates."""
    result = s.code.main("mov", s.new("m"), lane(s.get(s.number(op), "w", word(s, part)), s, part))
    is_unsigned = op.opcode == "arith.fptoui" and not op.dtype.startswith("u")
    limits = LIMITS.get("u" + op.dtype if is_unsigned else op.dtype)
    if limits is None:
        return result
    result = s.code.main("max", s.new("m"), result, str(limits[0]))
    return narrowed(s, s.code.main("min", s.new("m"), result, str(limits[1])), op.dtype)


def word(s: Selector, point: int) -> int:
    """Return the part of a `w` value in which a point lies."""
    return point // 2


def lane(value: Slice, s: Selector, point: int) -> Slice:
    """Return the register of a `w` part in which a point lies."""
    return value.part(point % 2 if s.lanes > 1 else 0)


def index(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select the global index of an axis."""
    return s.sources.index(s.code, int(op.attribute), part)


def bits_of_float(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select the bits of a float as an integer."""
    source = op.operands[0]
    if s.dtypes[source] == "f32":
        return s.code.main("mov", s.new("m"), lane(s.get(source, "w", word(s, part)), s, part))
    if s.dtypes[source] != "f16":
        return s.get(source, "m", part)
    both = s.code.main("mov", s.new("m"), s.get(source, "h", 0).part(part // 2))
    if part % 2 == 0:
        both = s.code.main("shl", s.new("m"), both, "16")
    return s.code.main("shr" if op.dtype.startswith("u") else "shrs", s.new("m"), both, "16")


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(PLAIN, plain),
    **dict.fromkeys(("arith.shrsi", "arith.shrui"), shift_right),
    **dict.fromkeys(("arith.maxui", "arith.minui"), unsigned_extreme),
    **dict.fromkeys(
        ("arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast", "arith.index_castui"), cast
    ),
    **dict.fromkeys(("arith.fptosi", "arith.fptoui"), from_float),
    "arith.cmpi": compare, "arith.select": select, "math.absi": absolute, "index": index,
    "arith.bitcast": bits_of_float,
}  # fmt: skip
