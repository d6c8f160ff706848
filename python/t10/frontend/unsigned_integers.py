"""Unsigned integers as what is lowered: words as integers with a sign and the same bits, uint8 in int32.

    words    x + y, x * y, bits     the same of int16, int32 and int64
             x < y, max, min        of x and y with their first bit flipped, which orders them alike
             x / y                  ((x >> 1) / y) << 1, and one more where the rest is not below y
    uint8    max, min, x < y        as they are: torch-mlir reads them without sign
             x / y, ReduceMax       in int32, which holds every uint8

Words are uint16, uint32 and uint64. The lowering has no casts to them, and reads some operands with a sign where their
type has none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.frontend.rewrites.apply import rewrite_by
from t10.frontend.rewrites.site import KIND, Rule, Site
from t10.frontend.unsupported import STANDARD_DOMAINS, UnsupportedNode, unsupported

_DECLARED = {KIND.UINT8: "ui8", KIND.UINT16: "ui16", KIND.UINT32: "ui32", KIND.UINT64: "ui64"}

_SIGNED_OF: dict[int, int] = {KIND.UINT16: KIND.INT16, KIND.UINT32: KIND.INT32, KIND.UINT64: KIND.INT64}
"""The words, and what holds their bits."""
_N_BITS: dict[int, int] = {KIND.UINT16: 16, KIND.UINT32: 32, KIND.UINT64: 64}
_BYTES_OF: dict[int, int] = {KIND.INT8: 1, KIND.UINT8: 1, KIND.INT16: 2, KIND.INT32: 4, KIND.INT64: 8}
_ADDS_SHORTS = 14
"""The first opset whose Add takes int16."""
_FLOATS = frozenset({KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE})

_MOVING = frozenset(
    {
        *("Compress", "Concat", "DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND"),
        *("Identity", "Pad", "Reshape", "ReverseSequence", "ScatterElements", "ScatterND", "Shape", "Size", "Slice"),
        *("SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where"),
    }
)  # fmt: skip
"""Operators that hand elements on as they are (and may add them up)."""

_SAME_OF_WORDS = _MOVING | {
    *("Add", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CumSum", "Einsum", "Equal", "Gemm", "MatMul"),
    *("Mul", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Sub", "Sum"),
}  # fmt: skip
"""Operators whose bits do not depend on the sign."""

_SAME_OF_BYTES = _SAME_OF_WORDS | {
    *("ArgMax", "ArgMin", "BitShift", "Cast", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"),
    *("Sign", "TopK"),
}  # fmt: skip
"""Operators that torch-mlir, or what is done before it, computes without sign where their type has none."""


def beyond_unsigned(model: Any, source: str, unknown: Collection[str] = ()) -> list[UnsupportedNode]:
    """Return the nodes that compute with unsigned integers and have no way to. Called with inferred types.

    Left out are those that read `unknown` values: they may be written otherwise once their types are known.
    """
    kinds = _kinds(model.graph)
    found: list[UnsupportedNode] = []
    words = _SAME_OF_WORDS | {*_WORDS}
    for node in model.graph.node:
        if any(name in unknown for name in node.input):
            continue
        touched = {kinds.get(name) for name in (*node.input, *node.output)}
        for kind, known in (
            (KIND.UINT8, _SAME_OF_BYTES | {*_BYTES}),
            *((word, words) for word in _SIGNED_OF),
        ):
            is_known = node.op_type in known and not _picks(node) and not _has_no_way(node, kind, kinds)
            if kind in touched and node.domain in STANDARD_DOMAINS and not is_known:
                reason = f"is not computed with elements of type {KIND.DataType.Name(kind).lower()}"
                found.append(
                    unsupported(node, source, reason, "cast them to int32 before it, and the result back")
                )
                break
    return found


def _has_no_way(node: Any, kind: int, kinds: dict[str, int]) -> bool:
    """Return whether an operator of words is computed for other kinds of them only.

    Quotients of int64 are as exact as those of doubles.
    """
    first = kinds.get(node.input[0])
    if node.op_type == "Pow" and kind != KIND.UINT8:
        return first not in _FLOATS or kind == KIND.UINT64
    if kind == KIND.UINT16:
        return node.op_type == "TopK"
    to_float = node.op_type == "Cast" and first == kind and kinds.get(node.output[0]) in _FLOATS
    return kind == KIND.UINT64 and (node.op_type in ("BitShift", "Div", "Mod") or to_float)


def expand_unsigned(model: Any) -> None:
    """Rewrite, in place, what computes with unsigned integers; words have a sign from here on.

    Called on a model with inferred types and shapes, of nodes that are not `beyond_unsigned`.
    """
    graph = model.graph
    words = {name: _SIGNED_OF[kind] for name, kind in _kinds(graph).items() if kind in _SIGNED_OF}
    for entry in model.opset_import:
        if entry.domain in STANDARD_DOMAINS and KIND.INT16 in words.values():
            entry.version = max(entry.version, _ADDS_SHORTS)
    rewrite_by(model, {operator: _by_type(operator) for operator in {*_WORDS, *_BYTES}})
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.name in words:
            value.type.tensor_type.elem_type = words[value.name]
    for tensor in graph.initializer:
        if tensor.data_type in _SIGNED_OF:
            tensor.CopyFrom(numpy_helper.from_array(without_sign(numpy_helper.to_array(tensor)), tensor.name))


def declared_unsigned(model: Any) -> dict[str, str]:
    """Return what inputs and outputs that are integers without a sign are declared as."""
    values = (*model.graph.input, *model.graph.output)
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    return {name: _DECLARED[kind] for name, kind in kinds.items() if kind in _DECLARED}


def without_sign(values: NDArray[Any]) -> NDArray[Any]:
    """Return the same bits as the lowered model holds them: integers have a sign there."""
    return values.view(np.dtype(f"i{values.dtype.itemsize}")) if values.dtype.kind == "u" else values


def _kinds(graph: Any) -> dict[str, int]:
    values = (*graph.input, *graph.value_info, *graph.output)
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    return kinds | {tensor.name: tensor.data_type for tensor in graph.initializer}


def _picks(node: Any) -> bool:
    """Return whether a scatter keeps the larger or smaller of two elements."""
    return any(
        attribute.name == "reduction" and attribute.s in (b"max", b"min") for attribute in node.attribute
    )


def _by_type(operator: str) -> Rule:
    """Return the rule of an operator for the unsigned type that it computes with."""

    def rule(site: Site) -> bool:
        names = (*site.node.input, *site.node.output)
        kinds = {site.facts.kinds.get(name) for name in names if name}
        table = _WORDS if not kinds.isdisjoint(_SIGNED_OF) else _BYTES if KIND.UINT8 in kinds else _SIGNED
        return operator in table and table[operator](site)

    return rule


# --- words ---------------------------------------------------------------------------------------------------------


def _kind(site: Site) -> int:
    """Return the kind of word that an operator computes with."""
    names = (*site.node.input, *site.node.output)
    return next(kind for kind in (site.facts.kinds.get(name, 0) for name in names) if kind in _SIGNED_OF)


def _word(site: Site, value: int, kind: int = 0) -> str:
    """Write a number of a kind of word, that of the operator's own by default."""
    kind = kind or _kind(site)
    n_bits = _N_BITS[kind]
    return site.scalar(value if value < 2 ** (n_bits - 1) else value - 2**n_bits, _SIGNED_OF[kind])


def _flipped(site: Site, x: str, output: str = "", kind: int = 0) -> str:
    """Write a word with its first bit flipped: words without sign in the order of those with one."""
    kind = kind or _kind(site)
    tensor = site.facts.constants.get(x)
    if tensor is not None:
        first = np.array(1 << (_N_BITS[kind] - 1), f"u{_N_BITS[kind] // 8}")
        return site.constant(without_sign(numpy_helper.to_array(tensor).view(first.dtype) ^ first))
    return site.op("Add", x, _word(site, 2 ** (_N_BITS[kind] - 1), kind), output=output)


def _ordered(site: Site) -> bool:
    """Write an operator that depends on the order alone on flipped words; flip what it picks of them back."""
    node, kinds = site.node, site.facts.kinds
    inputs = [_flipped(site, name) if kinds.get(name) in _SIGNED_OF else name for name in node.input]
    names = [site.fresh("picked") if kinds.get(name) in _SIGNED_OF else name for name in node.output]
    site.several(node.op_type, inputs, names, **site.options)
    for name, output in zip(names, node.output, strict=True):
        if name != output:
            _flipped(site, name, output=output)
    return True


def _clip(site: Site) -> bool:
    """Write `Min(Max(x, low), high)`, on flipped words where they are words."""
    is_word = site.kind(0) in _SIGNED_OF
    x, low, high = (_flipped(site, name) if name and is_word else name for name in map(site.input, range(3)))
    x = site.op("Max", x, low) if low else x
    x = site.op("Min", x, high) if high else x
    if is_word:
        _flipped(site, x, output=site.node.output[0])
    else:
        site.give(x)
    return True


def _shifted_right(site: Site, x: str, n_bits: int) -> str:
    """Write a word shifted to the right by 1 bit and more, but not to its last, zeros from the left.

    Of all but its first bit, and of that.
    """
    is_set = site.op("Less", x, _word(site, 0))
    rest = site.op("Div", site.op("Where", is_set, _flipped(site, x), x), _word(site, 1 << n_bits))
    first = site.op("Where", is_set, _word(site, 1 << (_N_BITS[_kind(site)] - 1 - n_bits)), _word(site, 0))
    return site.op("Add", rest, first)


def _shift(site: Site) -> bool:
    """Write a shift by as many steps as the count has bits; nothing is left by a count of a word's bits and more."""
    x, count, n_bits = site.input(0), site.input(1), _N_BITS[_kind(site)]
    is_left = site.option("direction", "") == "LEFT"
    for bit in (bit for bit in (32, 16, 8, 4, 2, 1) if bit < n_bits):
        bits = site.op("Mod", site.op("Div", count, _word(site, bit)), _word(site, 2))
        moved = site.op("Mul", x, _word(site, 1 << bit)) if is_left else _shifted_right(site, x, bit)
        x = site.op("Where", site.op("Equal", bits, _word(site, 0)), x, moved)
    is_left = site.op("Less", _flipped(site, count), _word(site, n_bits + 2 ** (n_bits - 1)))
    site.op("Where", is_left, x, _word(site, 0), output=site.node.output[0])
    return True


def _quotient(site: Site) -> str:
    """Write the quotient without sign."""
    x, y = site.input(0), site.input(1)
    is_large = site.op("Less", y, _word(site, 0))
    divisor = site.op("Where", is_large, _word(site, 1), y)
    half = site.op("Div", _shifted_right(site, x, 1), divisor)
    double = site.op("Add", half, half)
    rest = site.op("Sub", x, site.op("Mul", double, divisor))
    made = site.op("Add", double, _at_least(site, rest, y))
    return site.op("Where", is_large, _at_least(site, x, y), made)


def _at_least(site: Site, x: str, y: str) -> str:
    """Write 1 where x is not below y without sign, 0 elsewhere."""
    is_below = site.op("Less", _flipped(site, x), _flipped(site, y))
    return site.op("Where", is_below, _word(site, 0), _word(site, 1))


def _divide(site: Site) -> bool:
    site.give(_quotient(site))
    return True


def _remainder(site: Site) -> bool:
    product = site.op("Mul", _quotient(site), site.input(1))
    site.op("Sub", site.input(0), product, output=site.node.output[0])
    return True


def _sign(site: Site) -> bool:
    is_zero = site.op("Equal", site.input(0), _word(site, 0))
    site.op("Where", is_zero, _word(site, 0), _word(site, 1), output=site.node.output[0])
    return True


def _absolute(site: Site) -> bool:
    site.give(site.input(0))
    return True


def _absolute_sum(site: Site) -> bool:
    site.several("ReduceSum", list(site.node.input), list(site.node.output), **site.options)
    return True


def _as_float(site: Site, x: str, to: int, output: str = "") -> str:
    """Write a word of up to 32 bits as a float: both halves are exact, so that their sum alone rounds."""
    if _kind(site) == KIND.UINT16:
        return site.cast(_without_sign_in_words(site, x, KIND.UINT16, KIND.INT32), to, output=output)
    inner = KIND.FLOAT if to == KIND.FLOAT16 else to
    upper = _shifted_right(site, x, 16)
    lower = site.op("Sub", x, site.op("Mul", upper, _word(site, 1 << 16)))
    scaled = site.op("Mul", site.cast(upper, inner), site.scalar(65536, inner))
    return site.cast(site.op("Add", scaled, site.cast(lower, inner)), to, output=output)


def _power(site: Site) -> bool:
    """Write a float to the power of an integer as one to the power of a float; integers to one of bytes in int32.

    Single precision makes odd words even: the sign of the result is that of the word itself.
    """
    kind, exponent = site.kind(0), site.input(1)
    if kind not in _FLOATS:
        return _widened(site)
    if site.kind(1) not in _SIGNED_OF:
        site.op("Pow", site.input(0), site.cast(exponent, kind), output=site.node.output[0])
        return True
    inner = KIND.FLOAT if kind == KIND.FLOAT16 else kind
    x, zero, one = site.cast(site.input(0), inner), site.scalar(0, inner), _word(site, 1)
    power = site.op("Pow", site.op("Abs", x), _as_float(site, exponent, inner))
    even = site.op("Mul", _shifted_right(site, exponent, 1), _word(site, 2))
    is_odd = site.op("Equal", site.op("Sub", exponent, even), one)
    is_below = site.op("Or", site.op("Less", x, zero), site.op("Less", site.op("Reciprocal", x), zero))
    signed = site.op("Where", site.op("And", is_odd, is_below), site.op("Neg", power), power)
    site.cast(signed, kind, output=site.node.output[0])
    return True


def _without_sign_in_words(site: Site, x: str, kind: int, to: int, output: str = "") -> str:
    """Write a word in an integer of more bits, zeros before it."""
    wide = site.cast(x, to)
    moved = site.op("Add", wide, site.scalar(2 ** _N_BITS[kind], to))
    return site.op("Where", site.op("Less", x, _word(site, 0, kind)), moved, wide, output=output)


def _cast(site: Site) -> bool:
    """Write a conversion from or to words."""
    kind, to, output = site.kind(0), int(site.option("to", 0)), site.node.output[0]
    x = site.input(0)
    if kind in _SIGNED_OF and to in _FLOATS:
        _as_float(site, x, to, output)
    elif kind in _SIGNED_OF:
        into = _SIGNED_OF.get(to, to)
        if into == _SIGNED_OF[kind]:
            site.give(x)
        elif _BYTES_OF.get(into, 0) > _BYTES_OF[_SIGNED_OF[kind]]:
            _without_sign_in_words(site, x, kind, into, output)
        else:
            site.cast(x, into, output=output)
    elif kind in (KIND.FLOAT, KIND.DOUBLE):
        limit, into = site.scalar(2.0 ** (_N_BITS[to] - 1), kind), _SIGNED_OF[to]
        upper = _flipped(site, site.cast(site.op("Sub", x, limit), into), kind=to)
        site.op("Where", site.op("Less", x, limit), site.cast(x, into), upper, output=output)
    elif kind:
        whole = site.cast(x, KIND.INT32) if kind in _FLOATS else x
        site.cast(whole, _SIGNED_OF[to], output=output)
    return bool(kind)


_WORDS: dict[str, Rule] = {
    **dict.fromkeys(("ArgMax", "ArgMin", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"), _ordered),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "TopK"), _ordered),
    "Abs": _absolute, "BitShift": _shift, "Cast": _cast, "Clip": _clip, "Div": _divide, "Mod": _remainder,
    "Pow": _power, "ReduceL1": _absolute_sum, "Sign": _sign,
}  # fmt: skip


# --- uint8 ---------------------------------------------------------------------------------------------------------


def _widened(site: Site) -> bool:
    """Write the operator in int32, what it makes of it cut to bytes."""
    node, kinds = site.node, site.facts.kinds
    inputs = [site.cast(name, KIND.INT32) if kinds.get(name) == KIND.UINT8 else name for name in node.input]
    names = [site.fresh("wide") if kinds.get(name) == KIND.UINT8 else name for name in node.output]
    site.several(node.op_type, inputs, names, **site.options)
    for name, output in zip(names, node.output, strict=True):
        if name != output:
            site.cast(name, KIND.UINT8, output=output)
    return True


def _shift_within(site: Site) -> bool:
    """Shift by less than the width: by more, which engines do not agree on, 0 or the sign is left."""
    kind, n_bits = site.kind(0), 8 * site.dtype(0).itemsize
    x, count = site.input(0), site.input(1)
    is_within = site.op("Less", count, site.scalar(n_bits, kind))
    if site.dtype(0).kind == "i":
        is_within = site.op("And", is_within, site.op("Greater", count, site.scalar(-1, kind)))
    if site.dtype(0).kind == "i" and site.option("direction", "") == "RIGHT":
        count = site.op("Where", is_within, count, site.scalar(n_bits - 1, kind))
    else:
        x = site.op("Where", is_within, x, site.scalar(0, kind))
    site.op("BitShift", x, count, output=site.node.output[0], **site.options)
    return True


def _max_pool(site: Site) -> bool:
    """Write the maximum of bytes as one of f32: torch-mlir pads integers with 0, which may be the largest."""
    names = [site.fresh("picked"), *site.node.output[1:]]
    site.several("MaxPool", (site.cast(site.input(0), KIND.FLOAT),), names, **site.options)
    site.cast(site.cast(names[0], KIND.INT32), site.kind(0), output=site.node.output[0])
    return True


_BYTES: dict[str, Rule] = {
    **dict.fromkeys(("Div", "Mod", "ReduceMax", "ReduceMin"), _widened),
    "Abs": _absolute, "BitShift": _shift_within, "Clip": _clip, "MaxPool": _max_pool, "Pow": _power,
}  # fmt: skip

_SIGNED: dict[str, Rule] = {
    "BitShift": _shift_within,
    "MaxPool": lambda site: site.kind(0) == KIND.INT8 and _max_pool(site),
}
"""Rules of types that have a sign."""
