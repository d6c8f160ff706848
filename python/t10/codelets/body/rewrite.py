"""Rewriting of primitive operations into what has instructions, for a body of which some values are uniform.

Everything here keeps results bit by bit, but for two: a quotient that is rounded to f16 afterwards, and whose divisor
does not change in the inner loop, becomes a product with the reciprocal (within one unit of the last place of f16);
and what is a [sigmoid](sigmoid.py) becomes one, which rounds less often, to f16 too where all of it is of f16.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from t10.codelets.body.builder import FunctionBuilder
from t10.codelets.body.expand import without_dead
from t10.codelets.body.sigmoid import SIGMOID, argument_of_sigmoid, gated, narrow_argument
from t10.core.scalar import ScalarFunction, ScalarOp

CLAMP, CLAMP_NUMBER, RECIPROCAL = "t10.clamp", "t10.clamp_number", "t10.reciprocal"
"""Operations of our own: min(max(x, low), high), `attribute` "low high", a NaN staying one or not; 1 / x."""

LIMITS = {"arith.maximumf": "arith.minimumf", "arith.minimumf": "arith.maximumf", "arith.maxnumf": "arith.minnumf",
          "arith.minnumf": "arith.maxnumf"}  # fmt: skip
CASTS = frozenset(
    {"arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"}
)
WIDENED = frozenset({"arith.divf", "math.sqrt", "math.rsqrt", "math.floor", "math.trunc"})
"""Operations that have no instruction for f16: computed in f32 and rounded, which rounds as the operation itself."""


def rewritten(
    function: ScalarFunction,
    input_dtypes: Sequence[str],
    input_levels: Sequence[int],
    index_levels: Sequence[int],
) -> tuple[ScalarFunction, tuple[int, ...]]:
    """Return the function as it is selected, and the level of every value.

    A level says in which loop a value changes: 0 never; inputs have theirs from `input_levels`, indices of axis a from
    `index_levels`.
    """
    work = _Rewriter(function, input_dtypes, input_levels, index_levels)
    values = list(range(function.n_inputs))
    for number, op in enumerate(function.ops):
        values.append(work.operation(op, tuple(values[v] for v in op.operands), function.n_inputs + number))
    result = without_dead(work.b.function(values[function.result]))
    return result, levels(result, input_levels, index_levels)


def levels(
    function: ScalarFunction, input_levels: Sequence[int], index_levels: Sequence[int]
) -> tuple[int, ...]:
    """Return in which loop every value changes."""
    found = list(input_levels)
    for op in function.ops:
        own = index_levels[int(op.attribute)] if op.opcode == "index" else 0
        found.append(max((found[v] for v in op.operands), default=own))
    return tuple(found)


class _Rewriter:
    """One function on its way; `b` holds what has been made."""

    def __init__(
        self,
        function: ScalarFunction,
        input_dtypes: Sequence[str],
        input_levels: Sequence[int],
        index_levels: Sequence[int],
    ) -> None:
        self.function = function
        self.b = FunctionBuilder(input_dtypes)
        self.input_levels = input_levels
        self.index_levels = index_levels

    def level(self, value: int) -> int:
        return levels(self.b.function(value), self.input_levels, self.index_levels)[value]

    def operation(self, op: ScalarOp, operands: tuple[int, ...], number: int) -> int:
        b = self.b
        found: int | None = None
        if op.opcode == "arith.negf":
            found = self.negated(operands[0])
        elif op.opcode == "arith.subf" and self.level(operands[1]) < self.level(operands[0]):
            found = b.add(operands[0], self.negated(operands[1]))
        elif op.opcode in LIMITS:
            found = self.clamped(op, operands)
        elif op.opcode == "arith.mulf":
            found = self.product(*operands)
        elif op.opcode == "arith.divf":
            found = self.quotient(op, operands[0], operands[1], number)
        elif op.opcode in CASTS:
            found = self.cast(op, operands[0])
        if found is not None:
            return found
        if op.opcode in WIDENED and op.dtype == "f16":
            wide = [self.widened(v) for v in operands]
            return b.op("arith.truncf", b.op(op.opcode, *wide, dtype="f32"), dtype="f16")
        return b.op(op.opcode, *operands, dtype=op.dtype, attribute=op.attribute)

    def cast(self, op: ScalarOp, value: int) -> int | None:
        """Return a conversion by way of f32, or of a constant; None where it is done as it stands."""
        b = self.b
        if op.opcode in ("arith.extf", "arith.truncf"):
            narrow = narrow_argument(b, value) if op.dtype == "f16" else None
            return self.float_cast(op, value) if narrow is None else b.op(SIGMOID, narrow, dtype="f16")
        if op.opcode in ("arith.sitofp", "arith.uitofp") and op.dtype == "f16" and b.dtypes[value] != "i1":
            return b.op("arith.truncf", b.op(op.opcode, value, dtype="f32"), dtype="f16")
        if op.opcode in ("arith.fptosi", "arith.fptoui") and op.dtype != "i1":
            return b.op(op.opcode, self.widened(value), dtype=op.dtype)
        return None

    def clamped(self, op: ScalarOp, operands: tuple[int, ...]) -> int | None:
        """Return a maximum of a minimum, or the other way round, as one operation where both limits are constants."""
        inner = self.b.made(operands[0], LIMITS[op.opcode])
        outer_limit = self.b.constant_at(operands[1])
        inner_limit = self.b.constant_at(inner.operands[1]) if inner else None
        if inner is None or outer_limit is None or inner_limit is None:
            return None
        low, high = (outer_limit, inner_limit) if op.opcode[6:9] == "max" else (inner_limit, outer_limit)
        if not low <= high:
            return None
        opcode = CLAMP if op.opcode in ("arith.maximumf", "arith.minimumf") else CLAMP_NUMBER
        return self.b.op(opcode, inner.operands[0], dtype=op.dtype, attribute=f"{low!r} {high!r}")

    def negated(self, value: int) -> int:
        known = self.b.constant_at(value)
        dtype = self.b.dtypes[value]
        return self.b.constant(-known, dtype) if known is not None else self.b.scale(value, -1.0)

    def widened(self, value: int) -> int:
        return (
            value
            if self.b.dtypes[value] == "f32"
            else self.float_cast(ScalarOp("arith.extf", (), "f32"), value)
        )

    def float_cast(self, op: ScalarOp, value: int) -> int:
        known = self.b.constant_at(value)
        if known is None:
            return self.b.op(op.opcode, value, dtype=op.dtype)
        with np.errstate(over="ignore"):
            narrow = np.dtype(np.float16 if "f16" in (op.dtype, self.b.dtypes[value]) else np.float32)
            return self.b.constant(float(np.array(known).astype(narrow)), op.dtype)

    def quotient(self, op: ScalarOp, x: int, y: int, number: int) -> int | None:
        """Return a quotient as something that takes less; None where it is none of that."""
        b = self.b
        argument = argument_of_sigmoid(b, x, y)
        if argument is not None:
            return b.op(SIGMOID, argument, dtype=op.dtype)
        if self.b.constant_at(x) == 1.0:
            return self.rounded(b.op(RECIPROCAL, self.widened(y)), op.dtype)
        divisor = self.b.constant_at(y)
        if divisor is not None and has_exact_reciprocal(divisor, op.dtype):
            return self.product(x, b.constant(1.0 / divisor, op.dtype))
        if divisor is not None and op.dtype == "f16" and is_product_as_good(divisor):
            reciprocal = float(np.float32(1.0) / np.float32(divisor))
            return self.rounded(b.scale(self.widened(x), reciprocal), op.dtype)
        is_uniform = self.level(y) < self.level(x)
        if not is_uniform or (op.dtype == "f32" and not self.is_rounded_only(number)):
            return None
        return self.rounded(b.multiply(self.widened(x), b.op(RECIPROCAL, self.widened(y))), op.dtype)

    def product(self, x: int, y: int) -> int:
        gate = gated(self.b, x, y)
        return self.b.multiply(x, y) if gate is None else gate

    def rounded(self, value: int, dtype: str) -> int:
        return value if dtype == "f32" else self.b.op("arith.truncf", value, dtype=dtype)

    def is_rounded_only(self, number: int) -> bool:
        """Return whether a value is used for nothing but its rounding to f16."""
        users = [op for op in self.function.ops if number in op.operands]
        return number != self.function.result and all(
            op.opcode == "arith.truncf" and op.dtype == "f16" for op in users
        )


def has_exact_reciprocal(divisor: float, dtype: str) -> bool:
    """Return whether dividing by a number is multiplying with its reciprocal, which is a number of the type."""
    mantissa, exponent = np.frexp(divisor)
    return abs(float(mantissa)) == 0.5 and abs(int(exponent)) <= (13 if dtype == "f16" else 120)


@lru_cache(maxsize=256)
def is_product_as_good(divisor: float) -> bool:
    """Return whether for every f16 the product with the reciprocal in f32 rounds to the quotient; all are tried."""
    every = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        quotients = (every.astype(np.float32) / np.float32(divisor)).astype(np.float16)
        products = (every.astype(np.float32) * (np.float32(1.0) / np.float32(divisor))).astype(np.float16)
    return bool(np.array_equal(quotients, products, equal_nan=True))
