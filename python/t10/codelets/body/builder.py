"""Growing a scalar function operation by operation; operands are numbers of values."""

from __future__ import annotations

from collections.abc import Sequence

from t10.core.scalar import ScalarFunction, ScalarOp, constant_text, parse_constant

I1 = "i1"


class FunctionBuilder:
    """A scalar function under construction. Methods return the number of the value they define.

    Operations that need no type take that of `dtypes[first operand]`; `constant` takes it as given.
    """

    def __init__(self, input_dtypes: Sequence[str]) -> None:
        """Begin with inputs only."""
        self.n_inputs = len(input_dtypes)
        self.ops: list[ScalarOp] = []
        self.dtypes: list[str] = list(input_dtypes)
        self._known: dict[ScalarOp, int] = {}

    def op(self, opcode: str, *operands: int, dtype: str = "", attribute: str = "") -> int:
        """Add an operation, or find the same one among those there are."""
        op = ScalarOp(opcode, operands, dtype or self.dtypes[operands[0]], attribute)
        if op not in self._known:
            self._known[op] = len(self.dtypes)
            self.ops.append(op)
            self.dtypes.append(op.dtype)
        return self._known[op]

    def constant(self, value: float | int | bool, dtype: str = "f32") -> int:
        """Add a constant."""
        return self.op("const", dtype=dtype, attribute=constant_text(value))

    def add(self, x: int, y: int) -> int:
        """Add x + y."""
        return self.op("arith.addf", x, y)

    def subtract(self, x: int, y: int) -> int:
        """Add x - y."""
        return self.op("arith.subf", x, y)

    def multiply(self, x: int, y: int) -> int:
        """Add x * y."""
        return self.op("arith.mulf", x, y)

    def divide(self, x: int, y: int) -> int:
        """Add x / y."""
        return self.op("arith.divf", x, y)

    def absolute(self, x: int) -> int:
        """Add |x|."""
        return self.op("math.absf", x)

    def floor(self, x: int) -> int:
        """Add the largest whole number that is not above x."""
        return self.op("math.floor", x)

    def with_sign_of(self, x: int, sign: int) -> int:
        """Add |x| with the sign of the other value."""
        return self.op("math.copysign", x, sign)

    def scale(self, x: int, factor: float) -> int:
        """Add x times a constant."""
        return self.multiply(x, self.constant(factor, self.dtypes[x]))

    def shift(self, x: int, summand: float) -> int:
        """Add x plus a constant."""
        return self.add(x, self.constant(summand, self.dtypes[x]))

    def compare(self, predicate: str, x: int, y: int) -> int:
        """Add a comparison of floats, an i1."""
        return self.op("arith.cmpf", x, y, dtype=I1, attribute=predicate)

    def compare_with(self, predicate: str, x: int, value: float) -> int:
        """Add a comparison with a constant, an i1."""
        return self.compare(predicate, x, self.constant(value, self.dtypes[x]))

    def select(self, condition: int, x: int, y: int) -> int:
        """Add `condition ? x : y`."""
        return self.op("arith.select", condition, x, y, dtype=self.dtypes[x])

    def polynomial(self, x: int, coefficients: Sequence[float]) -> int:
        """Add the polynomial in x with coefficients from the constant one on, by Horner's rule."""
        value = self.constant(coefficients[-1], self.dtypes[x])
        for coefficient in reversed(coefficients[:-1]):
            value = self.shift(self.multiply(value, x), coefficient)
        return value

    def made(self, value: int, *opcodes: str) -> ScalarOp | None:
        """Return the operation that makes a value if it is one of some."""
        op = self.ops[value - self.n_inputs] if value >= self.n_inputs else None
        return op if op is not None and op.opcode in opcodes else None

    def constant_at(self, value: int) -> float | None:
        """Return the number that a value is, None where it is no constant."""
        op = self.made(value, "const")
        return None if op is None else float(parse_constant(op.attribute))

    def function(self, result: int) -> ScalarFunction:
        """Return the function that hands out `result`."""
        return ScalarFunction(self.n_inputs, tuple(self.ops), result)
