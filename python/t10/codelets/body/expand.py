"""Bodies in primitive operations: mathematical functions become polynomials and the like.

`expand` leaves what one or a few instructions compute:

- any type: `const`, `index`, `arith.*` but `remf`, casts, `arith.select`, `math.absi`
- floats: `math.absf exp exp2 log log2 tanh sqrt rsqrt floor trunc copysign`, `t10.far`
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from t10.codelets.body import mathematics
from t10.codelets.body.builder import FunctionBuilder
from t10.codelets.body.far import FAR
from t10.codelets.body.quanta import Quanta
from t10.core.scalar import ScalarFunction, ScalarOp

CONSTANT_POWERS = (-1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
"""Exponents whose power is a product, a root or a quotient."""

TESTS = frozenset({"math.isnan", "math.isinf", "math.isfinite"})


@lru_cache(maxsize=4096)
def expand(function: ScalarFunction, input_dtypes: tuple[str, ...]) -> ScalarFunction:
    """Return the same function in primitive operations, without operations that nothing uses."""
    b = FunctionBuilder(input_dtypes)
    values = list(range(function.n_inputs))
    quanta = Quanta(function)
    for op in function.ops:
        made = quanta.make(b, op, values)
        values.append(_expanded(b, op, tuple(values[i] for i in op.operands)) if made is None else made)
    return without_dead(b.function(values[function.result]))


def value_dtypes(function: ScalarFunction, input_dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the element type of every value: inputs first, then operations."""
    return (*input_dtypes, *(op.dtype for op in function.ops))


def without_dead(function: ScalarFunction) -> ScalarFunction:
    """Return the function without the operations that its result does not need."""
    n_inputs = function.n_inputs
    needed = {function.result}
    for i in reversed(range(len(function.ops))):
        if n_inputs + i in needed:
            needed.update(function.ops[i].operands)
    number = {i: i for i in range(n_inputs)}
    ops: list[ScalarOp] = []
    for i, op in enumerate(function.ops):
        if n_inputs + i in needed:
            number[n_inputs + i] = n_inputs + len(ops)
            ops.append(ScalarOp(op.opcode, tuple(number[v] for v in op.operands), op.dtype, op.attribute))
    return ScalarFunction(n_inputs, tuple(ops), number[function.result])


def branches_on_data(function: ScalarFunction, input_dtypes: tuple[str, ...]) -> bool:
    """Return whether code of a function takes another way where an argument is far (`t10.codelets.body.far`)."""
    return any(op.opcode == FAR for op in expand(function, input_dtypes).ops)


def _expanded(b: FunctionBuilder, op: ScalarOp, operands: tuple[int, ...]) -> int:
    """Add one operation in primitive ones."""
    if op.opcode in TESTS:
        return _test(b, op.opcode, operands[0])
    if op.opcode == "math.ipowi":
        return _whole_power(b, *operands)
    if op.opcode == "arith.uitofp" and b.dtypes[operands[0]] in ("i8", "i16"):
        # In registers narrow integers lie extended by their sign; without it they fit 32 bits with one.
        wide = b.op("arith.extui", *operands, dtype="i32")
        return b.op("arith.sitofp", wide, dtype=op.dtype)
    if op.opcode == "math.fma":
        return _in_f32(b, op.dtype, operands, mathematics.fma)
    if op.opcode in ("math.powf", "math.fpowi"):
        exponent = b.constant_at(operands[1])
        plain = _constant_power(b, operands[0], exponent)
        if plain is not None:
            return plain
        if exponent is not None and mathematics.is_plain_exponent(exponent):
            is_half = op.dtype == "f16"
            emit = mathematics.constant_power_for_half if is_half else mathematics.constant_power
            rounded = float((np.float16 if b.dtypes[operands[1]] == "f16" else np.float32)(exponent))
            return _in_f32(b, op.dtype, operands[:1], partial(emit, exponent=rounded))
    if op.opcode == "math.fpowi":
        exponent = b.op("arith.sitofp", operands[1], dtype="f32")
        return _in_f32(b, op.dtype, (operands[0], exponent), mathematics.powf)
    if op.opcode == "math.erf" and op.dtype == "f32":
        return mathematics.erf_of_scaled(b, *_scaled(b, operands[0], mathematics.FACTORS))
    if op.opcode == "math.erf" and op.dtype == "f16":
        return mathematics.erf_of_scaled_in_half(b, *_scaled(b, operands[0], mathematics.FACTORS_IN_HALF))
    emit = mathematics.FOR_HALF.get(op.opcode) if op.dtype == "f16" else None
    emit = emit or mathematics.UNARY.get(op.opcode) or mathematics.BINARY.get(op.opcode)
    if emit is not None:
        return _in_f32(b, op.dtype, operands, emit)
    return b.op(op.opcode, *operands, dtype=op.dtype, attribute=op.attribute)


def _in_f32(b: FunctionBuilder, dtype: str, operands: tuple[int, ...], emit: mathematics.Emit) -> int:
    """Add a function of floats: computed in f32, rounded once to `dtype`."""
    wide = [x if b.dtypes[x] == "f32" else b.op("arith.extf", x, dtype="f32") for x in operands]
    result = emit(b, *wide)
    return result if dtype == "f32" else b.op("arith.truncf", result, dtype=dtype)


def _test(b: FunctionBuilder, opcode: str, x: int) -> int:
    if opcode == "math.isnan":
        return b.compare("uno", x, x)
    return b.compare_with("oeq" if opcode == "math.isinf" else "olt", b.absolute(x), math.inf)


def _scaled(b: FunctionBuilder, x: int, factors: mathematics.Factors) -> tuple[int, float]:
    """Return a value and a factor whose product is x: a value of which x is a multiple by one of `factors`, or x."""
    op = b.made(x, "arith.mulf", "arith.divf")
    if op is None:
        return x, 1.0
    constant = b.constant_at(op.operands[1])
    factor = constant if not constant or op.opcode == "arith.mulf" else 1.0 / constant
    if factor is None or not any(least <= factor <= most for least, most in factors):
        return x, 1.0
    return op.operands[0], factor


def _constant_power(b: FunctionBuilder, x: int, exponent: float | None) -> int | None:
    """Add x to the power of a constant, None where it is not one of `CONSTANT_POWERS`."""
    if exponent not in CONSTANT_POWERS:
        return None
    one = b.constant(1.0, b.dtypes[x])
    if abs(exponent) == 0.5:
        # Other than roots, powers know neither -0 nor -inf.
        root = b.op("math.sqrt" if exponent > 0.0 else "math.rsqrt", b.shift(x, 0.0))
        limit = b.constant(math.inf if exponent > 0.0 else 0.0, b.dtypes[x])
        return b.select(b.compare_with("oeq", x, -math.inf), limit, root)
    if exponent < 2.0:
        return one if exponent == 0.0 else x if exponent == 1.0 else b.divide(one, x)
    square = b.multiply(x, x)
    return square if exponent == 2.0 else b.multiply(square, x if exponent == 3.0 else square)


def _whole_power(b: FunctionBuilder, x: int, exponent: int) -> int:
    """Add an integer to the power of a non-negative integer: squarings, one per bit of the exponent."""
    dtype = b.dtypes[x]
    one, zero = b.constant(1, dtype), b.constant(0, dtype)
    result, square = one, x
    for bit in range(mathematics.WHOLE_EXPONENT_BITS):
        is_set = b.op("arith.andi", exponent, b.constant(1 << bit, dtype))
        factor = b.select(b.op("arith.cmpi", is_set, zero, dtype="i1", attribute="ne"), square, one)
        result = b.op("arith.muli", result, factor)
        square = b.op("arith.muli", square, square)
    return result
