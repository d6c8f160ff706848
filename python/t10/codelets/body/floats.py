"""Operations on lanes of floats, and masks made from them."""

from __future__ import annotations

import math

import numpy as np

from t10.codelets.body.far import FAR, FAR_MARK, is_near
from t10.codelets.body.rewrite import CLAMP, CLAMP_NUMBER, RECIPROCAL
from t10.codelets.body.select import FORM_BY_DTYPE, Form, Handler, Selector
from t10.codelets.body.sigmoid import SIGMOID
from t10.codelets.body.virtual import Operand, Slice
from t10.core.scalar import ScalarOp, parse_constant

SIGN_BITS: dict[Form, int] = {"h": 0x80008000, "w": 0x80000000}
ONE_BITS: dict[Form, int] = {"h": 0x3C003C00, "w": 0x3F800000}
MINUS_ONE_BITS: dict[Form, int] = {"h": 0xBC00BC00, "w": 0xBF800000}
ROUND_DOWN, ROUND_TO_ZERO = 2, 3
"""Modes of `f32int` that are public."""

ARITHMETIC = {"arith.addf": "add", "arith.subf": "sub", "arith.mulf": "mul"}
COMMUTES = frozenset({"arith.addf", "arith.mulf", "eq", "ne"})
SWAPPED = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
OPPOSITE_ORDERED = {"ugt": "le", "uge": "lt", "ult": "ge", "ule": "gt", "ueq": "", "une": ""}
FUNCTIONS = {
    SIGMOID: "sigm",
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.log": "ln",
    "math.log2": "log2",
    "math.tanh": "tanh",
}
WIDE_FUNCTIONS = {"math.sqrt": "f32sqrt", "math.rsqrt": "f32oorx", RECIPROCAL: "f32oox"}


def family(s: Selector, form: Form) -> str:
    """Return the first part of the mnemonics that compute on a part."""
    if form == "h":
        return "f16v4" if s.width(form) == 2 else "f16v2"
    return "f32v2" if s.width(form) == 2 else "f32"


def sized(s: Selector, form: Form, mnemonic: str) -> str:
    """Return a logic mnemonic for a part."""
    return f"{mnemonic}64" if s.width(form) == 2 else mnemonic


def first_source(s: Selector, value: int, form: Form, part: int) -> tuple[Operand, str]:
    """Return the first source of add, sub, mul or a comparison, and how it is read: uniform values are broadcast."""
    if not s.is_uniform(value) or s.width(form) == 1 or s.is_zero(value):
        return s.operand(value, form, part), ""
    return s.scalar(value, form), ":BL" if form == "h" else ":B"


def arithmetic(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select an addition, subtraction or multiplication."""
    form = FORM_BY_DTYPE[op.dtype]
    x, y = op.operands
    if op.opcode in COMMUTES and s.is_uniform(y) and not s.is_uniform(x):
        x, y = y, x
    second = s.operand(y, form, part)
    first, mark = first_source(s, x, form, part)
    return s.code.aux(family(s, form) + ARITHMETIC[op.opcode], s.new(form), first, second, first=mark)


def divide(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a division of f32, lane by lane."""
    x, y = (s.operand(v, "w", part) for v in op.operands)
    target = s.new("w")
    for i in range(target.width):
        s.code.aux("f32div", target.part(i), _lane(x, i), _lane(y, i))
    return target


def _lane(operand: Operand, i: int) -> Operand:
    return operand.part(i) if isinstance(operand, Slice) else "$azero"


def lanewise(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a function that has an instruction per register."""
    form = FORM_BY_DTYPE[op.dtype]
    mnemonic = WIDE_FUNCTIONS.get(op.opcode)
    if mnemonic is None:
        mnemonic = ("f16v2" if form == "h" else "f32") + FUNCTIONS[op.opcode]
    source, target = s.get(op.operands[0], form, part), s.new(form)
    for i in range(target.width):
        s.code.aux(mnemonic, target.part(i), source.part(i))
    return target


def integral(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select rounding of f32 downwards or towards zero."""
    return _rounded(
        s, s.get(op.operands[0], "w", part), ROUND_DOWN if op.opcode == "math.floor" else ROUND_TO_ZERO
    )


def _rounded(s: Selector, source: Slice, mode: int) -> Slice:
    target = s.new("w")
    for i in range(target.width):
        s.code.aux("f32int", target.part(i), source.part(i), str(mode))
    return target


def absolute(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select |x|."""
    form = FORM_BY_DTYPE[op.dtype]
    return _absolute(s, s.get(op.operands[0], form, part), form)


def _absolute(s: Selector, source: Slice, form: Form) -> Slice:
    zero = "$azeros" if source.width == 2 else "$azero"
    return s.code.aux(family(s, form) + "absadd", s.new(form), source, zero)


def with_sign(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select |x| with the sign of another value."""
    form = FORM_BY_DTYPE[op.dtype]
    size = _absolute(s, s.get(op.operands[0], form, part), form)
    signs = s.word(SIGN_BITS[form], form, s.width(form))
    sign = s.code.aux(sized(s, form, "and"), s.new(form), s.get(op.operands[1], form, part), signs)
    return s.code.aux(sized(s, form, "or"), s.new(form), size, sign)


def extreme(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a maximum or minimum in which a number wins over a NaN."""
    form = FORM_BY_DTYPE[op.dtype]
    x, y = (s.operand(v, form, part) for v in op.operands)
    return s.code.aux(family(s, form) + op.opcode[6:9], s.new(form), x, y)


def strict_extreme(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a maximum or minimum in which a NaN wins: a mask of all ones is one."""
    form = FORM_BY_DTYPE[op.dtype]
    if op.opcode == "arith.maximumf" and s.is_zero(op.operands[1]):
        # What is not above zero becomes zero: as short as the maximum itself, and a NaN is not below anything.
        below = _holds(s, "le", op.operands[0], op.operands[1], form, part)
        return s.code.aux(sized(s, form, "andc"), s.new(form), s.get(op.operands[0], form, part), below)
    result = extreme(s, op, part)
    sources = [s.get(value, form, part) for value in op.operands if not _is_number(s, value)]
    if not sources:
        return result
    watched = sources[0]
    if len(sources) == 2:
        # Magnitudes have a NaN for a sum where one is a NaN; infinities make none.
        watched = s.code.aux(family(s, form) + "absadd", s.new(form), *sources)
    is_nan = s.code.aux(family(s, form) + "cmpne", s.new(form), watched, watched)
    return s.code.aux(sized(s, form, "or"), s.new(form), result, is_nan)


def _is_number(s: Selector, value: int) -> bool:
    """Return whether a value is a constant that is not a NaN."""
    op = s.op(value)
    return op is not None and op.opcode == "const" and not math.isnan(parse_constant(op.attribute))


def clamp(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a value kept between two limits, which lie in one register (f16) or a pair."""
    form = FORM_BY_DTYPE[op.dtype]
    low, high = (limit_bits(text, op.dtype) for text in op.attribute.split())
    limits = s.word_group((low | high << 16,)) if form == "h" else s.word_group((low, high))
    source = s.get(op.operands[0], form, part)
    result = s.code.aux(family(s, form) + "clamp", s.new(form), source, limits)
    if op.opcode == CLAMP_NUMBER:
        return result
    is_nan = s.code.aux(family(s, form) + "cmpne", s.new(form), source, source)
    return s.code.aux(sized(s, form, "or"), s.new(form), result, is_nan)


def limit_bits(text: str, dtype: str) -> int:
    """Return the bits of a float."""
    value = float(text)
    return int(np.float16(value).view(np.uint16) if dtype == "f16" else np.float32(value).view(np.uint32))


# --- masks ---------------------------------------------------------------------------------------------------------


def mask(s: Selector, value: int, form: Form, part: int) -> tuple[Slice, bool]:
    """Return a mask and whether it is the opposite of a truth value."""
    op = s.op(value)
    if op is None or op.opcode != "arith.cmpf" or s.levels[value] < s.level or s.form(value) != form:
        return s.get(value, form, part), False
    key = (value, form, part)
    if key in s.known:
        return s.known[key], False
    if key not in s.masks:
        s.masks[key] = _compared(s, op, form, part)
    return s.masks[key]


def compare(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a comparison of floats."""
    form = s.form(op.operands[0])
    found, is_opposite = _compared(s, op, form, part)
    return s.code.aux(sized(s, form, "not"), s.new(form), found) if is_opposite else found


def _compared(s: Selector, op: ScalarOp, form: Form, part: int) -> tuple[Slice, bool]:
    predicate = op.attribute
    x, y = op.operands
    if predicate in ("true", "false"):
        return s.word(0, form, s.width(form)), predicate == "true"
    if predicate in ("uno", "ord"):
        unordered = _holds(s, "ne", x, x, form, part)
        if y != x:
            other = _holds(s, "ne", y, y, form, part)
            unordered = s.code.aux(sized(s, form, "or"), s.new(form), unordered, other)
        return unordered, predicate == "ord"
    if predicate in ("one", "ueq"):
        below, above = (_holds(s, p, x, y, form, part) for p in ("lt", "gt"))
        return s.code.aux(sized(s, form, "or"), s.new(form), below, above), predicate == "ueq"
    if predicate in ("oeq", "une") or predicate[0] == "o":
        return _holds(s, predicate[1:], x, y, form, part), False
    return _holds(s, OPPOSITE_ORDERED[predicate], x, y, form, part), True


def _holds(s: Selector, relation: str, x: int, y: int, form: Form, part: int) -> Slice:
    """Return the mask of an ordered comparison (`ne` holds for a NaN)."""
    if s.is_uniform(y) and not s.is_uniform(x):
        x, y, relation = y, x, SWAPPED[relation]
    second = s.operand(y, form, part)
    first, mark = first_source(s, x, form, part)
    return s.code.aux(f"{family(s, form)}cmp{relation}", s.new(form), first, second, first=mark)


def select(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select one of two values by a mask."""
    form = s.form(op.operands[0]) if op.dtype == "i1" else FORM_BY_DTYPE.get(op.dtype, "w")
    return select_as(s, op, form, part)


def select_as(s: Selector, op: ScalarOp, form: Form, part: int) -> Slice:
    """Select one of two values by a mask, in a form."""
    chosen, is_opposite = mask(s, op.operands[0], form, part)
    a, b = op.operands[1:]
    if is_opposite:
        a, b = b, a
    if s.is_zero(b):
        return s.code.aux(sized(s, form, "and"), s.new(form), s.get(a, form, part), chosen)
    if s.is_zero(a):
        return s.code.aux(sized(s, form, "andc"), s.new(form), s.get(b, form, part), chosen)
    first = s.code.aux(sized(s, form, "and"), s.new(form), s.get(a, form, part), chosen)
    second = s.code.aux(sized(s, form, "andc"), s.new(form), s.get(b, form, part), chosen)
    return s.code.aux(sized(s, form, "or"), s.new(form), first, second)


def combine_masks(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select and, or, exclusive or of truth values in masks."""
    form = s.form(op.operands[0])
    x, y = (s.get(v, form, part) for v in op.operands)
    return masks_combined(s, op.opcode, form, x, y)


def masks_combined(s: Selector, opcode: str, form: Form, x: Slice, y: Slice) -> Slice:
    """Return and, or, exclusive or of two masks."""
    if opcode in ("arith.andi", "arith.muli", "arith.ori"):
        return s.code.aux(sized(s, form, "or" if opcode == "arith.ori" else "and"), s.new(form), x, y)
    first = s.code.aux(sized(s, form, "andc"), s.new(form), x, y)
    second = s.code.aux(sized(s, form, "andc"), s.new(form), y, x)
    return s.code.aux(sized(s, form, "or"), s.new(form), first, second)


# --- casts ---------------------------------------------------------------------------------------------------------


def extend(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select f16 to f32."""
    source = s.get(op.operands[0], "h", 0).part(part)
    return s.code.aux("f16tof32" if s.lanes == 1 else "f16v2tof32", s.new("w"), source)


def truncate(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select f32 to f16."""
    target = s.new("h")
    for i in range(target.width):
        source = s.get(op.operands[0], "w", i)
        s.code.aux("f32tof16" if s.lanes == 1 else "f32v2tof16", target.part(i), source)
    return target


def from_integer(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select an integer or truth value to a float."""
    form = FORM_BY_DTYPE[op.dtype]
    value = op.operands[0]
    is_signed = op.opcode == "arith.sitofp"
    if s.dtypes[value] == "i1":
        bits = (MINUS_ONE_BITS if is_signed else ONE_BITS)[form]
        number = s.word(bits, form, s.width(form))
        return s.code.aux(sized(s, form, "and"), s.new(form), s.get(value, form, part), number)
    source, target = s.get(value, "w", part), s.new("w")
    for i in range(target.width):
        is_unsigned = not is_signed and s.dtypes[value] in ("i32", "i64", "index")
        mnemonic = "f32fromui32" if is_unsigned or s.dtypes[value] in ("ui32", "ui64") else "f32fromi32"
        s.code.aux(mnemonic, target.part(i), source.part(i))
    return target


def to_integer(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select f32 to a 32-bit integer's bits: towards zero, saturating."""
    whole = _rounded(s, s.get(op.operands[0], "w", part), ROUND_TO_ZERO)
    target = s.new("w")
    is_unsigned = op.opcode == "arith.fptoui" or op.dtype.startswith("u")
    for i in range(target.width):
        s.code.aux("f32toui32" if is_unsigned else "f32toi32", target.part(i), whole.part(i))
    return target


def to_truth(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select whether a float is not zero once cut to a whole number."""
    if s.form(op.operands[0]) == "h":
        # Below 1 in magnitude, and not a NaN, is what is cut to 0.
        size = _absolute(s, s.get(op.operands[0], "h", part), "h")
        one = s.word(ONE_BITS["h"], "h")
        mark = ":BL" if size.width == 2 else ""
        below = s.code.aux(family(s, "h") + "cmpgt", s.new("h"), one, size, first=mark)
        return s.code.aux(sized(s, "h", "not"), s.new("h"), below)
    whole = _rounded(s, s.get(op.operands[0], "w", part), ROUND_TO_ZERO)
    zero = "$azeros" if whole.width == 2 else "$azero"
    return s.code.aux(family(s, "w") + "cmpne", s.new("w"), whole, zero)


def far(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a branch per lane to where a far argument's value takes the place of the near one's."""
    s.sources.scratch(0)
    *sources, last = op.operands
    parts = [s.get(value, "w", part) for value in sources]
    lanes = [[s.code.main("mov", s.new("m"), x.part(i)) for x in parts] for i in range(parts[0].width)]
    result = s.get(last, "w", part)
    for i, words in enumerate(lanes):
        names: dict[str, Operand] = dict(zip("xy", words, strict=False))
        for mnemonic, target, *operands in is_near(op.attribute):
            names[target] = s.code.main(mnemonic, s.new("m"), *(names.get(name, name) for name in operands))
        text = f"{FAR_MARK}{op.attribute} {', '.join(['{}'] * (len(words) + 2))}"
        s.code.add(text, f"i{'i' * len(words)}b", names["n"], *words, result.part(i), is_main=True)
    return result


def same_bits(s: Selector, op: ScalarOp, part: int) -> Slice:
    """Select a bitcast between types of 32 or of 16 bits."""
    form = FORM_BY_DTYPE.get(op.dtype, "w")
    return s.get(op.operands[0], form, part)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(ARITHMETIC, arithmetic),
    **dict.fromkeys((*FUNCTIONS, *WIDE_FUNCTIONS), lanewise),
    "arith.divf": divide, "math.floor": integral, "math.trunc": integral, "math.absf": absolute,
    "math.copysign": with_sign, "arith.maxnumf": extreme, "arith.minnumf": extreme,
    CLAMP: clamp, CLAMP_NUMBER: clamp, "arith.maximumf": strict_extreme, "arith.minimumf": strict_extreme,
    "arith.cmpf": compare,
    "arith.select": select, "arith.extf": extend, "arith.truncf": truncate, "arith.sitofp": from_integer,
    "arith.uitofp": from_integer, "arith.bitcast": same_bits, "arith.fptosi": to_truth, "arith.fptoui": to_truth,
    FAR: far,
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori", "arith.addi", "arith.subi", "arith.muli"), combine_masks),
}  # fmt: skip
