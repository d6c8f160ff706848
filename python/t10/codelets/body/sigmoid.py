"""What is a sigmoid: 1 / (1 + e^-x), and (1 + tanh u) / 2, which GELU multiplies with.

    x (1 + tanh u) / 2  =  x sigmoid(2u)

The error function has become a hyperbolic tangent here. Near -1 that has few digits left of what the sigmoid is.
"""

from __future__ import annotations

from collections.abc import Iterator

from t10.codelets.body.builder import FunctionBuilder

SIGMOID = "t10.sigmoid"
"""1 / (1 + e^-x): an instruction of f16, and of f32."""
MOST_DOUBLED = 128.0
"""Constants up to which doubling makes nothing overflow that is not far beyond where tanh is 1."""
Pair = tuple[int, int]


def argument_of_sigmoid(b: FunctionBuilder, one: int, divisor: int) -> int | None:
    """Return x where a quotient is 1 / (1 + e^-x), else None."""
    total = b.made(divisor, "arith.addf")
    if b.constant_at(one) != 1.0 or total is None:
        return None
    for summand, power in _orders(total.operands):
        exponential = b.made(power, "math.exp")
        minus = b.made(exponential.operands[0], "arith.mulf") if exponential else None
        if b.constant_at(summand) == 1.0 and minus and b.constant_at(minus.operands[1]) == -1.0:
            return minus.operands[0]
    return None


def narrow_argument(b: FunctionBuilder, value: int) -> int | None:
    """Return the f16 of whose f32 a value is the sigmoid: rounded to f16, it is one instruction."""
    wide = b.made(value, SIGMOID)
    source = b.made(wide.operands[0], "arith.extf") if wide else None
    return source.operands[0] if source and b.dtypes[source.operands[0]] == "f16" else None


def gated(b: FunctionBuilder, x: int, y: int) -> int | None:
    """Return a product by way of a sigmoid where it has the factors 1 + tanh u and 1/2, else None."""
    for factor, other in _orders((x, y)):
        gate = _gate(b, factor)
        if gate is not None and b.constant_at(other) == 0.5:
            return gate
        # The factors are those of two products.
        product = b.made(other if gate is not None else factor, "arith.mulf")
        for left, right in _orders(product.operands) if product else ():
            if gate is not None and b.constant_at(right) == 0.5:
                return b.multiply(left, gate)
            inner = _gate(b, right) if gate is None and b.constant_at(other) == 0.5 else None
            if inner is not None:
                return b.multiply(left, inner)
    return None


def _gate(b: FunctionBuilder, value: int) -> int | None:
    """Return half of a value that is 1 + tanh u, as sigmoid(2u)."""
    total = b.made(value, "arith.addf")
    for one, other in _orders(total.operands) if total else ():
        tangent = b.made(other, "math.tanh")
        if tangent is not None and b.constant_at(one) == 1.0:
            u = tangent.operands[0]
            twice = _twice(b, u, {})
            return b.op(SIGMOID, b.add(u, u) if twice is None else twice)
    return None


def _twice(b: FunctionBuilder, value: int, known: dict[int, int | None]) -> int | None:
    """Return two times a value by other constants alone, None where that takes another operation, or may overflow."""
    if value not in known:
        known[value] = _made_twice(b, value, known)
    return known[value]


def _made_twice(b: FunctionBuilder, value: int, known: dict[int, int | None]) -> int | None:
    constant = b.constant_at(value)
    if constant is not None:
        return b.constant(2.0 * constant, b.dtypes[value]) if abs(constant) <= MOST_DOUBLED else None
    product = b.made(value, "arith.mulf")
    for factor, other in _orders(product.operands) if product else ():
        twice = _twice(b, factor, known)
        if twice is not None:
            return b.multiply(twice, other)
    total = b.made(value, "arith.addf")
    for x, other in _orders(total.operands) if total else ():
        factored = _twice_factored(b, x, other, known)
        if factored is not None:
            return factored
        # Two large summands may cancel; beside a small constant none does.
        both = (
            (_twice(b, x, known), _twice(b, other, known))
            if b.constant_at(other) is not None
            else (None, None)
        )
        if both[0] is not None and both[1] is not None:
            return b.add(both[0], both[1])
    return None


def _twice_factored(b: FunctionBuilder, x: int, other: int, known: dict[int, int | None]) -> int | None:
    """Return 2 (x + x (p + c)) as x (2p + (2 + 2c)), `c` a constant; None where `other` is no such product."""
    product = b.made(other, "arith.mulf")
    for same, factor in _orders(product.operands) if product else ():
        total = b.made(factor, "arith.addf") if same == x else None
        constant = b.constant_at(total.operands[1]) if total else None
        twice = None if total is None or constant is None else _twice(b, total.operands[0], known)
        if twice is not None and constant is not None:
            return b.multiply(b.shift(twice, 2.0 + 2.0 * constant), x)
    return None


def _orders(operands: tuple[int, ...]) -> Iterator[Pair]:
    x, y = operands
    yield x, y
    yield y, x
