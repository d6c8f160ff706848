"""A scalar function as straight-line code: floats in the ARF, integers and truth values in the MRF."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from t10.codelets.loops import floats, integers
from t10.codelets.loops.virtual import Value, VirtualCode
from t10.codelets.loops.wide import Pair, Word, emit_wide, low
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant
from t10.errors import UnsupportedOpError

LARGEST = 2.0**31
LIMITS = {"i8": (-128.0, 127.0), "i16": (-32768.0, 32767.0), "ui8": (0.0, 255.0), "ui16": (0.0, 65535.0),
          "i32": (-LARGEST, LARGEST), "ui32": (0.0, 2 * LARGEST)}  # fmt: skip
"""Range of an integer type by its name; wider ones are computed as 32 bits."""

MASKS = {"arith.andi": "and", "arith.ori": "or"}


def is_supported(dtype: str) -> bool:
    """Return whether codelets compute with elements of a type."""
    return floats.is_float_type(dtype) or dtype in integers.INTEGER_TYPES


def emit_function(
    code: VirtualCode,
    function: ScalarFunction,
    dtypes: tuple[str, ...],
    load: Callable[[int], Word],
    index: Mapping[int, Callable[[], Value]],
    wide: frozenset[int] = frozenset(),
) -> Word:
    """Add an expanded function whose input types are the first of `dtypes`; `load` and `index` define its leaves.

    Values whose numbers are in `wide` take two words; other integers of 64 bits fit in their low word.
    Raises `UnsupportedOpError` for operations and types that codelets do not know.
    """
    types = [*dtypes, *(op.dtype for op in function.ops)]
    for dtype in types:
        if not is_supported(dtype):
            raise UnsupportedOpError(f"codelets do not compute with elements of type {dtype}")
    values = _Values(code, types, load)
    for number, op in enumerate(function.ops, function.n_inputs):
        if op.opcode == "index":
            values.found[number] = index[int(op.attribute)]()
            continue
        kinds = tuple(types[v] for v in op.operands)
        masks = _of_masks(code, op, tuple(values.get(v) for v in op.operands), kinds)
        if masks is not None:
            values.found[number] = masks
            continue
        operands = tuple(values.plain(v) for v in op.operands)
        words = tuple(v for v in operands if not isinstance(v, Pair))
        if number in wide:
            values.found[number] = emit_wide(code, op, operands, kinds)
        elif len(words) < len(operands):
            values.found[number] = low(emit_wide(code, op, operands, kinds))
        else:
            values.found[number] = emit_op(code, op, words, kinds)
    return values.plain(function.result)


@dataclass(slots=True)
class _Values:
    """The values of a function by number, inputs loaded when they are asked for first."""

    code: VirtualCode
    types: list[str]
    load: Callable[[int], Word]
    found: dict[int, Word] = field(default_factory=dict[int, Word])
    bits: dict[int, Value] = field(default_factory=dict[int, Value])

    def get(self, number: int) -> Word:
        """Return a value; a truth value may be a mask."""
        if number not in self.found:
            self.found[number] = self.load(number)
        return self.found[number]

    def plain(self, number: int) -> Word:
        """Return a value; a truth value as 0 or 1."""
        found = self.get(number)
        if self.types[number] != "i1" or isinstance(found, Pair):
            return found
        if number not in self.bits:
            self.bits[number] = floats.as_bit(self.code, found)
        return self.bits[number]


def _of_masks(
    code: VirtualCode, op: ScalarOp, operands: tuple[Word, ...], dtypes: tuple[str, ...]
) -> Value | None:
    """Add an operation on truth values that are masks, or a choice of floats by one; None for others."""
    words = [v for v in operands if not isinstance(v, Pair) and v.bank == "a"]
    if len(words) < len(operands) or "i1" not in dtypes:
        return None
    if op.opcode == "arith.select":
        return floats.select(code, *words)
    if op.opcode in MASKS:
        return code.a(f"{MASKS[op.opcode]} {{d}}, {{x}}, {{y}}", x=words[0], y=words[1])
    return None


def emit_op(code: VirtualCode, op: ScalarOp, operands: tuple[Value, ...], dtypes: tuple[str, ...]) -> Value:
    """Add one primitive operation on values of given types."""
    if op.opcode == "const":
        return constant(code, op.attribute, op.dtype)
    if op.opcode == "arith.select":
        choice = floats.select if operands[1].bank == "a" else integers.select
        return choice(code, operands[0], operands[1], operands[2])
    if op.opcode == "arith.cmpf":
        return floats.compare(code, op.attribute, operands[0], operands[1])
    if op.opcode == "arith.cmpi":
        return integers.compare(code, op.attribute, operands[0], operands[1], dtypes[0])
    found = floats.emit_float(code, op, operands) or integers.emit_integer(code, op, operands)
    found = found or _convert(code, op, operands[0], dtypes[0])
    if found is None:
        raise UnsupportedOpError(f"codelets do not know the scalar operation {op.opcode}")
    return found


def constant(code: VirtualCode, attribute: str, dtype: str) -> Value:
    """Add a constant of a type, the low word of 64 bits."""
    if floats.is_float_type(dtype):
        return code.a(f"ldconst {{d}}, {floats.constant_bits(attribute, dtype):#x}")
    return code.m(f"ldconst {{d}}, {int(parse_constant(attribute)) & 0xFFFFFFFF:#x}")


def _convert(code: VirtualCode, op: ScalarOp, x: Value, source: str) -> Value | None:
    """Add a conversion between types; None where the operation is not one."""
    match op.opcode:
        case "arith.sitofp" | "arith.uitofp":
            return _to_float(code, x, source, op.dtype, is_signed=op.opcode == "arith.sitofp")
        case "arith.fptosi" | "arith.fptoui":
            return _to_integer(code, x, op.dtype, is_signed=op.opcode == "arith.fptosi")
        case "arith.bitcast":
            return _bitcast(code, x, source, op.dtype)
        case "arith.extui" | "arith.index_castui":
            return integers.wrapped(code, integers.unsigned(code, x, source), op.dtype)
        case "arith.extsi" | "arith.trunci" | "arith.index_cast":
            x = code.m("sub {d}, $mzero, {x}", x=x) if (op.opcode, source) == ("arith.extsi", "i1") else x
            return integers.wrapped(code, x, op.dtype)
        case _:
            return None


def _to_float(code: VirtualCode, x: Value, source: str, target: str, *, is_signed: bool) -> Value:
    if not is_signed:
        x = integers.unsigned(code, x, source)
    elif source == "i1":
        x = code.m("sub {d}, $mzero, {x}", x=x)
    is_whole_word = source in ("ui32", "ui64") or (not is_signed and source == "i32")
    convert = "f32fromui32" if is_whole_word else "f32fromi32"
    return floats.rounded(code, code.a(f"{convert} {{d}}, {{x}}", x=floats.to_arf(code, x)), target)


def _to_integer(code: VirtualCode, x: Value, target: str, *, is_signed: bool) -> Value:
    """Add truncation that saturates; a NaN becomes 0."""
    if target == "i1":
        return floats.compare(code, "une", code.a("f32int {d}, {x}, 3", x=x), constant(code, "0.0", "f32"))
    kind = target if is_signed or target.startswith("u") else f"u{target}"
    low, high = LIMITS.get(kind, LIMITS["ui32" if kind.startswith("u") else "i32"])
    is_wide = high >= LARGEST
    # The largest float below a limit that is no 32-bit integer itself.
    inner = high * (1 - 2.0**-24) if is_wide else high
    top, bottom = constant(code, repr(inner), "f32"), constant(code, repr(low), "f32")
    convert = "f32toui32" if kind.startswith("u") else "f32toi32"
    inside = code.a(
        "f32int {d}, {x}, 3", "f32max {d}, {d}, {b}", "f32min {d}, {d}, {h}", x=x, b=bottom, h=top
    )
    whole = code.a(f"{convert} {{d}}, {{x}}", x=inside)
    if is_wide:
        limit = constant(code, repr(high), "f32")
        largest = code.a(f"ldconst {{d}}, {int(high) - 1:#x}")
        lines = ("f32cmpge {f0}, {x}, {h}", "andc {d}, {w}, {f0}", "and {f0}, {l}, {f0}", "or {d}, {d}, {f0}")
        whole = code.a(*lines, x=x, h=limit, w=whole, l=largest)
    whole = code.a("f32cmpeq {d}, {x}, {x}", "and {d}, {d}, {w}", x=x, w=whole)
    return integers.wrapped(code, floats.to_mrf(code, whole), target)


def _bitcast(code: VirtualCode, x: Value, source: str, target: str) -> Value:
    """Add the same bits read as another type of that size."""
    if source == "f16":
        x = code.a("f32tof16 {d}, {x}", x=x)
    if floats.is_float_type(source):
        x = floats.to_mrf(code, x)
    if not floats.is_float_type(target):
        return integers.wrapped(code, x, target)
    x = floats.to_arf(code, x)
    return code.a("f16tof32 {d}, {x}", x=x) if target == "f16" else x
