"""`Formula`: a straight-line program over columns of numbers, the form in which native code evaluates a cost function.

```
cycles = 40 + 6 * ceil(m * n / 24)       Formula(n_inputs=2, constants=(40.0, 6.0, 24.0), instructions=(
  v0 = input 0  (m)                        (Opcode.MUL, 0, 1, 0),        v5
  v1 = input 1  (n)                        (Opcode.CEIL_DIV, 5, 4, 0),   v6
  v2, v3, v4 = 40, 6, 24                   (Opcode.MUL, 3, 6, 0),        v7
                                           (Opcode.ADD, 2, 7, 0)), result=8)
```

Every value is a double that holds an integer or a fraction; integers are exact below 2^52. The native interpreter
(`t10.plan`, `batch_function.cpp`) numbers operations like `Opcode` and gives the same bits as `Formula.evaluate`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, floor, sqrt, trunc

import numpy as np
from numpy.typing import NDArray

from t10.errors import T10Error

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Instruction = tuple[int, int, int, int]
"""Opcode and three operands (0 where unused)."""


class Opcode(IntEnum):
    """Operations of a formula; comparisons and logic give 0 or 1. `batch_function.cpp` has the same numbers."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    """The quotient, with its fraction."""
    FLOOR_DIV = 4
    """Of integers; 0 where the divisor is 0, as numpy's integers have it."""
    CEIL_DIV = 5
    MOD = 6
    """Of integers, with the divisor's sign; 0 where the divisor is 0."""
    MIN = 7
    MAX = 8
    NEG = 9
    ABS = 10
    FLOOR = 11
    CEIL = 12
    TRUNC = 13
    SQRT = 14
    LT = 15
    LE = 16
    EQ = 17
    NE = 18
    AND = 19
    OR = 20
    NOT = 21
    SELECT = 22
    """Operands: condition, value where it holds, value elsewhere."""


N_OPERANDS = {
    **dict.fromkeys(Opcode, 2),
    **dict.fromkeys((Opcode.NEG, Opcode.ABS, Opcode.FLOOR, Opcode.CEIL, Opcode.TRUNC, Opcode.SQRT), 1),
    Opcode.NOT: 1,
    Opcode.SELECT: 3,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A program of `n_inputs` columns. Values are numbered: inputs, then constants, then instructions in order."""

    n_inputs: int
    constants: tuple[float, ...]
    instructions: tuple[Instruction, ...]
    result: int

    def __post_init__(self) -> None:
        """Refuse operands that are not defined before their use."""
        known = self.n_inputs + len(self.constants)
        for number, (opcode, *operands) in enumerate(self.instructions):
            used = operands[: N_OPERANDS[Opcode(opcode)]]
            if any(not 0 <= v < known + number for v in used):
                raise T10Error(f"instruction {number} of a formula uses a value that is not defined: {used}")
        if not 0 <= self.result < known + len(self.instructions):
            raise T10Error(f"a formula returns value {self.result}, which is not defined")

    def evaluate(self, inputs: Ints) -> Floats:
        """Return the result for every row of `inputs`, shape (n, n_inputs) -> (n,)."""
        n_rows = len(inputs)
        values = [inputs[:, i].astype(np.float64) for i in range(self.n_inputs)]
        values += [np.full(n_rows, constant) for constant in self.constants]
        for opcode, *operands in self.instructions:
            used = operands[: N_OPERANDS[Opcode(opcode)]]
            values.append(apply(Opcode(opcode), *(values[v] for v in used)))
        return values[self.result]

    def evaluate_one(self, inputs: Sequence[int]) -> float:
        """Return the result for one row: the same bits without arrays, many times faster for a single row."""
        values: list[float] = [*map(float, inputs), *self.constants]
        for opcode, a, b, c in self.instructions:
            if opcode == Opcode.SELECT:
                values.append(values[b] if values[a] else values[c])
            else:
                values.append(_SCALAR[opcode](values[a], values[b]))
        return values[self.result]


def apply(opcode: Opcode, *operands: Floats) -> Floats:
    """Return what an operation gives on columns of doubles."""
    a, b, c = (*operands, operands[0], operands[0])[:3]
    with np.errstate(divide="ignore", invalid="ignore"):
        if opcode in (Opcode.FLOOR_DIV, Opcode.CEIL_DIV, Opcode.MOD):
            return _divided(opcode, a, b)
        if opcode is Opcode.SELECT:
            return np.where(a != 0, b, c)
        if opcode is Opcode.NOT:
            return np.asarray(a == 0, np.float64)
        if opcode in _LOGIC:
            return np.asarray(_LOGIC[opcode](a, b), np.float64)
        return np.asarray(_ARITHMETIC[opcode](*operands), np.float64)


def _divided(opcode: Opcode, a: Floats, b: Floats) -> Floats:
    """Return the quotient or remainder of integers; the double quotient of exact integers rounds the right way."""
    quotient = np.ceil(a / b) if opcode is Opcode.CEIL_DIV else np.floor(a / b)
    if opcode is Opcode.MOD:
        quotient = a - b * quotient
    return np.where(b != 0, quotient, 0.0)


_ARITHMETIC = {
    Opcode.ADD: np.add,
    Opcode.SUB: np.subtract,
    Opcode.MUL: np.multiply,
    Opcode.DIV: np.true_divide,
    Opcode.MIN: np.minimum,
    Opcode.MAX: np.maximum,
    Opcode.NEG: np.negative,
    Opcode.ABS: np.absolute,
    Opcode.FLOOR: np.floor,
    Opcode.CEIL: np.ceil,
    Opcode.TRUNC: np.trunc,
    Opcode.SQRT: np.sqrt,
}
_LOGIC = {
    Opcode.LT: np.less,
    Opcode.LE: np.less_equal,
    Opcode.EQ: np.equal,
    Opcode.NE: np.not_equal,
    Opcode.AND: np.logical_and,
    Opcode.OR: np.logical_or,
}


def _quotient(rounded: Callable[[float], int]) -> Callable[[float, float], float]:
    return lambda a, b: float(rounded(a / b)) if b else 0.0


_SCALAR: dict[int, Callable[[float, float], float]] = {
    Opcode.ADD: operator.add,
    Opcode.SUB: operator.sub,
    Opcode.MUL: operator.mul,
    Opcode.DIV: lambda a, b: a / b,
    Opcode.FLOOR_DIV: _quotient(floor),
    Opcode.CEIL_DIV: _quotient(ceil),
    Opcode.MOD: lambda a, b: a - b * floor(a / b) if b else 0.0,
    Opcode.MIN: min,
    Opcode.MAX: max,
    Opcode.NEG: lambda a, _: -a,
    Opcode.ABS: lambda a, _: abs(a),
    Opcode.FLOOR: lambda a, _: float(floor(a)),
    Opcode.CEIL: lambda a, _: float(ceil(a)),
    Opcode.TRUNC: lambda a, _: float(trunc(a)),
    Opcode.SQRT: lambda a, _: sqrt(a),
    Opcode.LT: lambda a, b: float(a < b),
    Opcode.LE: lambda a, b: float(a <= b),
    Opcode.EQ: lambda a, b: float(a == b),
    Opcode.NE: lambda a, b: float(a != b),
    Opcode.AND: lambda a, b: float(a != 0 and b != 0),
    Opcode.OR: lambda a, b: float(a != 0 or b != 0),
    Opcode.NOT: lambda a, _: float(a == 0),
}
