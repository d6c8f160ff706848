"""Scalar functions on numpy arrays: every operation rounds to its own type, as the hardware's does.

Floats of 16 bits round after each operation. Integers wrap. MLIR integers carry no sign; the operation says how to
read them (`divsi`, `divui`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t10.core.arrays import Array
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import ScalarFunction, ScalarOp, parse_constant
from t10.errors import UnsupportedOpError
from t10.sim.combine import larger, smaller
from t10.sim.narrow import clipped, narrowed
from t10.sim.special import erf, erfc

IndexOf = Callable[[int], Array]
Operation = Callable[..., Array]


def _as_unsigned(x: Array) -> Array:
    """Return the same bits read without sign."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}")) if x.dtype.kind == "i" else x


def _unsigned(operation: Operation) -> Operation:
    """Return an operation that reads its operands without sign and hands the bits back as they came."""

    def apply(*operands: Array) -> Array:
        result = operation(*(_as_unsigned(np.asarray(x)) for x in operands))
        return result.view(operands[0].dtype) if operands[0].dtype.kind == "i" else result

    return apply


def _divide_truncating(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


def _divide_rounding_up(a: Array, b: Array) -> Array:
    return a // b + (np.fmod(a, b) != 0)


def _round_half_away(x: Array) -> Array:
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _ones_complement_add(a: Array, b: Array) -> Array:
    """Add; one-bit integers add modulo 2."""
    return np.logical_xor(a, b) if a.dtype.kind == "b" else a + b


def _subtract(a: Array, b: Array) -> Array:
    return np.logical_xor(a, b) if a.dtype.kind == "b" else a - b


def _but_nan(extreme: Operation) -> Operation:
    """Return an operation that hands out the other operand where one is a NaN."""

    def apply(a: Array, b: Array) -> Array:
        return extreme(np.where(np.isnan(a), b, a), np.where(np.isnan(b), a, b))

    return apply


def _reciprocal_root(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def _power(a: Array, b: Array) -> Array:
    """Return powers; numpy takes the square root for the exponent 1/2, of -0 and -inf, too, which are not as powers."""
    return np.where(b == 0.5, np.where(a == -np.inf, -a, np.sqrt(a + 0)), np.power(a, b))


def _power_of_integer(a: Array, b: Array) -> Array:
    return _power(a, b.astype(a.dtype))


PLAIN: dict[str, Operation] = {
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
    "arith.remf": np.fmod, "arith.negf": np.negative,
    "arith.maximumf": larger, "arith.minimumf": smaller,
    "arith.maxnumf": _but_nan(larger), "arith.minnumf": _but_nan(smaller),
    "arith.addi": _ones_complement_add, "arith.subi": _subtract, "arith.muli": np.multiply,
    "arith.divsi": _divide_truncating, "arith.floordivsi": np.floor_divide, "arith.ceildivsi": _divide_rounding_up,
    "arith.remsi": np.fmod, "arith.divui": _unsigned(np.floor_divide), "arith.remui": _unsigned(np.fmod),
    "arith.maxsi": np.maximum, "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum), "arith.minui": _unsigned(np.minimum),
    "arith.andi": np.bitwise_and, "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift, "arith.shrsi": np.right_shift, "arith.shrui": _unsigned(np.right_shift),
    "arith.select": np.where,
    "math.absf": np.abs, "math.absi": np.abs, "math.exp": np.exp, "math.exp2": np.exp2, "math.expm1": np.expm1,
    "math.log": np.log, "math.log2": np.log2, "math.log10": np.log10, "math.log1p": np.log1p,
    "math.sqrt": np.sqrt, "math.rsqrt": _reciprocal_root, "math.cbrt": np.cbrt, "math.erf": erf, "math.erfc": erfc,
    "math.sin": np.sin, "math.cos": np.cos, "math.tan": np.tan, "math.asin": np.arcsin, "math.acos": np.arccos,
    "math.atan": np.arctan, "math.atan2": np.arctan2, "math.sinh": np.sinh, "math.cosh": np.cosh,
    "math.tanh": np.tanh, "math.asinh": np.arcsinh, "math.acosh": np.arccosh, "math.atanh": np.arctanh,
    "math.floor": np.floor, "math.ceil": np.ceil, "math.trunc": np.trunc, "math.round": _round_half_away,
    "math.roundeven": np.rint, "math.powf": _power, "math.fpowi": _power_of_integer, "math.ipowi": np.power,
    "math.copysign": np.copysign,
    "math.isnan": np.isnan, "math.isinf": np.isinf, "math.isfinite": np.isfinite,
}  # fmt: skip
"""Operations on arrays of one type; the result is rounded to the operation's type afterwards."""

ORDERED: dict[str, Operation] = {
    "eq": np.equal, "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal,
    "ne": np.not_equal,
}  # fmt: skip
CASTS = frozenset(
    {"arith.extf", "arith.truncf", "arith.sitofp", "arith.index_cast", "arith.extsi", "arith.trunci"}
)
UNSIGNED_CASTS = frozenset({"arith.uitofp", "arith.extui", "arith.index_castui"})
TO_INTEGER = frozenset({"arith.fptosi", "arith.fptoui"})


def evaluate(function: ScalarFunction, inputs: Sequence[Array], index: IndexOf) -> Array:
    """Return the function of arrays that broadcast against each other; `index(axis)` gives global indices of an axis.

    Raises `UnsupportedOpError` for an operation the simulator does not know.
    """
    values: list[Array] = list(inputs)
    with np.errstate(all="ignore"):
        for op in function.ops:
            values.append(_apply(op, [values[i] for i in op.operands], index))
    return values[function.result]


def _apply(op: ScalarOp, operands: list[Array], index: IndexOf) -> Array:
    """Return one operation's result, of the operation's type."""
    dtype = numpy_dtype(op.dtype)
    if op.opcode == "const":
        return np.array(parse_constant(op.attribute)).astype(dtype)
    if op.opcode == "index":
        return index(int(op.attribute)).astype(dtype)
    if op.opcode == "arith.cmpf":
        return _compare_floats(op.attribute, operands[0], operands[1])
    if op.opcode == "arith.cmpi":
        return _compare_integers(op.attribute, operands[0], operands[1])
    if op.opcode == "arith.bitcast":
        return np.ascontiguousarray(operands[0]).view(dtype)
    if op.opcode == "math.fma":
        wide = operands[0].astype(np.float64) * operands[1].astype(np.float64)
        return narrowed(wide + operands[2], dtype)
    if op.opcode in CASTS | UNSIGNED_CASTS | TO_INTEGER:
        return _cast(op.opcode, operands[0], dtype)
    operation = PLAIN.get(op.opcode)
    if operation is None:
        raise UnsupportedOpError(f"the simulator does not know the scalar operation {op.opcode}")
    result = operation(*operands)
    return narrowed(clipped(result, operation, operands), dtype)


def _cast(opcode: str, x: Array, dtype: np.dtype[Any]) -> Array:
    """Return a conversion's result; floats out of an integer's range saturate."""
    if opcode in UNSIGNED_CASTS:
        return narrowed(_as_unsigned(x), dtype)
    if opcode in TO_INTEGER:
        target = np.dtype(f"u{dtype.itemsize}") if opcode == "arith.fptoui" and dtype.kind == "i" else dtype
        if target.kind == "b":
            return np.trunc(x) != 0
        limits = np.iinfo(target)
        whole = np.nan_to_num(np.trunc(x.astype(np.float64)))
        # Limits of 64 bits are no doubles: what reaches the next power of two is the limit.
        inside = np.clip(whole, float(limits.min), np.nextafter(limits.max + 1.0, 0.0)).astype(target)
        return np.where(whole >= limits.max + 1.0, limits.max, inside).astype(target).view(dtype)
    if x.dtype.kind == "b" and opcode in ("arith.sitofp", "arith.extsi"):
        return -(x.astype(dtype))
    if opcode == "arith.trunci" and dtype.kind == "b":
        return (x & 1).astype(np.bool_)
    return narrowed(x, dtype)


def _compare_floats(predicate: str, a: Array, b: Array) -> Array:
    """Return `arith.cmpf`: predicates that begin with `o` are false, with `u` true, where an operand is a NaN."""
    if predicate in ("true", "false"):
        return np.full(np.broadcast_shapes(a.shape, b.shape), predicate == "true")
    unordered = np.isnan(a) | np.isnan(b)
    if predicate == "ord":
        return ~unordered
    if predicate == "uno":
        return unordered
    holds = ORDERED[predicate[1:]](a, b)
    return holds | unordered if predicate[0] == "u" else holds & ~unordered


def _compare_integers(predicate: str, a: Array, b: Array) -> Array:
    """Return `arith.cmpi`; one-bit integers are negative where set and signed."""
    if predicate in ("eq", "ne"):
        return ORDERED[predicate](a, b)
    if predicate[0] == "u":
        return ORDERED[predicate[1:]](_as_unsigned(a), _as_unsigned(b))
    if a.dtype.kind == "b":
        a, b = -(a.astype(np.int8)), -(b.astype(np.int8))
    return ORDERED[predicate[1:]](a, b)
