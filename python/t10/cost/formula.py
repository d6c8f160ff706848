"""`Formula`: a straight-line program over columns of numbers, the form in which native code evaluates a cost function.

```
cycles = 40 + 6 * ceil(m * n / 24)       Formula(n_inputs=2, constants=(40.0, 6.0, 24.0), instructions=(
  v0 = input 0  (m)                        (Opcode.MUL, 0, 1, 0),        v5
  v1 = input 1  (n)                        (Opcode.CEIL_DIV, 5, 4, 0),   v6
  v2, v3, v4 = 40, 6, 24                   (Opcode.MUL, 3, 6, 0),        v7
                                           (Opcode.ADD, 2, 7, 0)), result=8)
```

Every value is a double that holds an integer or a fraction; integers are exact below 2^52. The native interpreter
(`batch_function.cpp`) numbers operations like `Opcode` and gives the same bits as `Formula.evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from t10.core.arrays import Bools, Floats, Ints
from t10.core.geometry import window_chunk_many
from t10.errors import T10Error

BLOCK_ROWS = 256
"""Rows whose values of all instructions are held at once."""
Instruction = tuple[int, int, int, int]
"""Opcode and three operands (0 where unused)."""


class Opcode(IntEnum):
    """Operations of a formula; comparisons and logic give 0 or 1. `formula_code.h` has the same numbers."""

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
    CHUNK = 9
    """Of integers: `core.chunks.window_chunk`; 0 where there are no parts."""
    NEG = 10
    ABS = 11
    FLOOR = 12
    CEIL = 13
    TRUNC = 14
    SQRT = 15
    LT = 16
    LE = 17
    EQ = 18
    NE = 19
    AND = 20
    OR = 21
    NOT = 22
    SELECT = 23
    """Operands: condition, value where it holds, value elsewhere."""


_UNARY = frozenset({Opcode.NEG, Opcode.ABS, Opcode.FLOOR, Opcode.CEIL, Opcode.TRUNC, Opcode.SQRT, Opcode.NOT})
N_OPERANDS = tuple(3 if op is Opcode.SELECT else 1 if op in _UNARY else 2 for op in Opcode)
"""By opcode."""


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
        for number, one in enumerate(self.instructions):
            used = one[1 : 1 + N_OPERANDS[one[0]]]
            if min(used) < 0 or max(used) >= known + number:
                raise T10Error(f"instruction {number} of a formula uses a value that is not defined: {used}")
        if not 0 <= self.result < known + len(self.instructions):
            raise T10Error(f"a formula returns value {self.result}, which is not defined")

    def bound_to(self, numbers: Sequence[float]) -> Formula:
        """Return the formula of the first inputs where the last ones are `numbers`."""
        constants = (*map(float, numbers), *self.constants)
        return Formula(self.n_inputs - len(numbers), constants, self.instructions, self.result)

    def plus(self, number: float) -> Formula:
        """Return the formula of what is `number` more."""
        known = self.n_inputs + len(self.constants)

        def moved(value: int) -> int:
            return value + (value >= known)

        instructions = [(code, moved(a), moved(b), moved(c)) for code, a, b, c in self.instructions]
        instructions.append((int(Opcode.ADD), moved(self.result), known, 0))
        constants = (*self.constants, float(number))
        return Formula(self.n_inputs, constants, tuple(instructions), known + len(instructions))

    def evaluate(self, inputs: Ints) -> Floats:
        """Return the result for every row of `inputs`, shape (n, n_inputs) -> (n,)."""
        if len(inputs) <= BLOCK_ROWS:
            return self._evaluated(inputs)
        starts = range(0, len(inputs), BLOCK_ROWS)
        return np.concatenate([self._evaluated(inputs[start : start + BLOCK_ROWS]) for start in starts])

    def _evaluated(self, inputs: Ints) -> Floats:
        n_rows = len(inputs)
        values = [inputs[:, i].astype(np.float64) for i in range(self.n_inputs)]
        values += [np.full(n_rows, constant) for constant in self.constants]
        with np.errstate(divide="ignore", invalid="ignore"):
            for opcode, a, b, c in self.instructions:
                values.append(_COLUMNS[opcode](values[a], values[b], values[c]))
        return values[self.result]


def folded(opcode: Opcode, *operands: float) -> float:
    """Return what an operation gives on single numbers, with the bits it has on columns."""
    a, b, c = (np.array([number]) for number in (*operands, 0.0, 0.0)[:3])
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(_COLUMNS[opcode](a, b, c)[0])


def _divided(opcode: Opcode, a: Floats, b: Floats) -> Floats:
    """Return the quotient or remainder of integers; the double quotient of exact integers rounds the right way."""
    quotient = np.ceil(a / b) if opcode is Opcode.CEIL_DIV else np.floor(a / b)
    if opcode is Opcode.MOD:
        quotient = a - b * quotient
    return np.where(b != 0, quotient, 0.0)


OnColumns = Callable[[Floats, Floats, Floats], Floats]


def _binary(function: Callable[[Floats, Floats], Floats]) -> OnColumns:
    return lambda a, b, _: function(a, b)


def _chunks(a: Floats, b: Floats) -> Floats:
    chunks = window_chunk_many(a.astype(np.int64), np.maximum(b, 1).astype(np.int64))
    return np.where(b >= 1, chunks, 0.0)


def _unary(function: Callable[[Floats], Floats]) -> OnColumns:
    return lambda a, _, __: function(a)


def _logical(function: Callable[[Floats, Floats], Bools]) -> OnColumns:
    return lambda a, b, _: function(a, b).astype(np.float64)


_BY_OPCODE: dict[Opcode, OnColumns] = {
    Opcode.ADD: _binary(np.add),
    Opcode.SUB: _binary(np.subtract),
    Opcode.MUL: _binary(np.multiply),
    Opcode.DIV: _binary(np.true_divide),
    Opcode.FLOOR_DIV: lambda a, b, _: _divided(Opcode.FLOOR_DIV, a, b),
    Opcode.CEIL_DIV: lambda a, b, _: _divided(Opcode.CEIL_DIV, a, b),
    Opcode.MOD: lambda a, b, _: _divided(Opcode.MOD, a, b),
    Opcode.MIN: _binary(np.minimum),
    Opcode.MAX: _binary(np.maximum),
    Opcode.CHUNK: lambda a, b, _: _chunks(a, b),
    Opcode.NEG: _unary(np.negative),
    Opcode.ABS: _unary(np.absolute),
    Opcode.FLOOR: _unary(np.floor),
    Opcode.CEIL: _unary(np.ceil),
    Opcode.TRUNC: _unary(np.trunc),
    Opcode.SQRT: _unary(np.sqrt),
    Opcode.LT: _logical(np.less),
    Opcode.LE: _logical(np.less_equal),
    Opcode.EQ: _logical(np.equal),
    Opcode.NE: _logical(np.not_equal),
    Opcode.AND: _logical(np.logical_and),
    Opcode.OR: _logical(np.logical_or),
    Opcode.NOT: lambda a, _, __: (a == 0).astype(np.float64),
    Opcode.SELECT: lambda a, b, c: np.where(a != 0, b, c),
}
_COLUMNS = tuple(_BY_OPCODE[opcode] for opcode in Opcode)
