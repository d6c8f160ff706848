"""Which 64-bit integers fit in one 32-bit word: interval analysis of scalar functions.

An interval is the least and the greatest signed value that a value can have. Inputs can have every value of their type.
A result that can leave its type wraps: its interval is the whole type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from t10.core.dtypes import numpy_dtype
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant

Interval = tuple[int, int]

WORD: Interval = (-(1 << 31), (1 << 31) - 1)
WIDE_DTYPES = frozenset({"i64", "ui64", "index"})
"""Integers of two words."""
INDEX_BITS = (16, 20, 24, 31)
"""Sizes to which the largest index of a loop nest is rounded up, so that nests of similar size share code."""

LOW_WORD_OPS = frozenset(
    {"arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori", "arith.xori", "arith.select", "arith.trunci"}
    | {"arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "const", "index"}
)  # fmt: skip
"""Operations whose low word depends on the low words of their operands only."""


def index_limit(origin: Sequence[int], extents: Sequence[int]) -> int:
    """Return a bound that no index of a loop nest exceeds: 2^k for a k of `INDEX_BITS`."""
    last = max((first + n for first, n in zip(origin or [0] * len(extents), extents, strict=True)), default=0)
    return next((1 << bits for bits in INDEX_BITS if last <= 1 << bits), 1 << 62)


def is_wide(dtype: str, interval: Interval) -> bool:
    """Return whether a value takes two words."""
    return dtype in WIDE_DTYPES and not _contains(WORD, interval)


def type_interval(dtype: str) -> Interval:
    """Return all values of an integer type; of other types that of the widest."""
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return 0, 1
    if kind.kind == "f":
        return type_interval("i64")
    bits = 8 * kind.itemsize
    return (0, (1 << bits) - 1) if kind.kind == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)


def intervals(function: ScalarFunction, dtypes: Sequence[str], limit: int) -> tuple[Interval, ...]:
    """Return the interval of every value: inputs, whose types are the first of `dtypes`, then operations.

    Indices lie in [0, `limit`).
    """
    kinds = [*dtypes[: function.n_inputs], *(op.dtype for op in function.ops)]
    found = [type_interval(kind) for kind in kinds[: function.n_inputs]]
    for op in function.ops:
        whole = type_interval(op.dtype)
        operands = [found[v] for v in op.operands]
        result = _of(op, operands, [kinds[v] for v in op.operands], limit)
        found.append(result if result is not None and _contains(whole, result) else whole)
    return tuple(found)


def wide_values(function: ScalarFunction, dtypes: Sequence[str], limit: int) -> frozenset[int]:
    """Return the values that take two words."""
    kinds = [*dtypes[: function.n_inputs], *(op.dtype for op in function.ops)]
    found = enumerate(zip(kinds, intervals(function, dtypes, limit), strict=True))
    return frozenset(number for number, (kind, interval) in found if is_wide(kind, interval))


def fits_words(function: ScalarFunction, dtypes: Sequence[str], limit: int) -> bool:
    """Return whether a function is exact on low words alone.

    Every operation that reads more than low words, and the result if it is wide, must be proved to fit in one word.
    """
    wide = wide_values(function, dtypes, limit)
    return function.result not in wide and not any(
        op.opcode not in LOW_WORD_OPS and not wide.isdisjoint((number, *op.operands))
        for number, op in enumerate(function.ops, function.n_inputs)
    )


def _contains(outer: Interval, inner: Interval) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def _of(op: ScalarOp, x: Sequence[Interval], kinds: Sequence[str], limit: int) -> Interval | None:
    """Return the interval of a result before it wraps; None where nothing is known."""
    if op.opcode == "const":
        value = parse_constant(op.attribute)
        return None if isinstance(value, float) else (int(value), int(value))
    if op.opcode == "index":
        return 0, limit - 1
    if op.opcode in ("arith.cmpi", "arith.cmpf"):
        return 0, 1
    if op.opcode == "arith.select":
        return _hull(x[1:])
    if op.opcode in ("arith.extui", "arith.index_castui"):
        bits = 8 * numpy_dtype(kinds[0]).itemsize
        return x[0] if x[0][0] >= 0 else (0, (1 << bits) - 1)
    if op.opcode in ("arith.extsi", "arith.index_cast", "arith.trunci"):
        return (-1, 0) if kinds[0] == "i1" else x[0]
    if op.opcode == "math.absi":
        return 0, _size(x[0])
    rule = _RULES.get(op.opcode)
    if rule is None and op.opcode in _SIGNED and all(low >= 0 for low, _ in x):
        rule = _RULES[_SIGNED[op.opcode]]
    return None if rule is None else rule(x[0], x[1])


def _hull(intervals: Sequence[Interval]) -> Interval:
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _size(a: Interval) -> int:
    return max(abs(a[0]), abs(a[1]))


def _quotient(a: Interval, b: Interval) -> Interval:
    return (0, a[1]) if a[0] >= 0 and b[0] >= 0 else (-_size(a), _size(a))


def _remainder(a: Interval, b: Interval) -> Interval:
    most = max(min(_size(a), _size(b) - 1), 0)
    return 0 if a[0] >= 0 else -most, 0 if a[1] <= 0 else most


def _shifted_right(a: Interval, _: Interval) -> Interval:
    return min(a[0], 0), max(a[1], 0)


def _shifted_left(a: Interval, b: Interval) -> Interval | None:
    return _product(a, (1 << b[0], 1 << b[1])) if 0 <= b[0] <= b[1] < 64 else None


def _both(a: Interval, b: Interval) -> Interval:
    tops = [high for low, high in (a, b) if low >= 0]
    return (0, min(tops)) if tops else _either(a, b)


def _either(a: Interval, b: Interval) -> Interval:
    """Return the values of as many bits as the operands have."""
    power = 1 << max((~value if value < 0 else value).bit_length() for value in (*a, *b))
    return 0 if a[0] >= 0 and b[0] >= 0 else -power, power - 1


def _sum(a: Interval, b: Interval) -> Interval:
    return a[0] + b[0], a[1] + b[1]


def _difference(a: Interval, b: Interval) -> Interval:
    return a[0] - b[1], a[1] - b[0]


def _greater(a: Interval, b: Interval) -> Interval:
    return max(a[0], b[0]), max(a[1], b[1])


def _less(a: Interval, b: Interval) -> Interval:
    return min(a[0], b[0]), min(a[1], b[1])


_RULES: dict[str, Callable[[Interval, Interval], Interval | None]] = {
    "arith.addi": _sum, "arith.subi": _difference, "arith.muli": _product,
    "arith.divsi": _quotient, "arith.floordivsi": _quotient, "arith.ceildivsi": _quotient,
    "arith.remsi": _remainder, "arith.maxsi": _greater, "arith.minsi": _less,
    "arith.andi": _both, "arith.ori": _either, "arith.xori": _either,
    "arith.shrsi": _shifted_right, "arith.shli": _shifted_left,
}  # fmt: skip
_SIGNED = {"arith.divui": "arith.divsi", "arith.remui": "arith.remsi", "arith.shrui": "arith.shrsi",
           "arith.maxui": "arith.maxsi", "arith.minui": "arith.minsi"}  # fmt: skip
"""Operations that read operands without sign, and those that agree with them where no operand is negative."""
