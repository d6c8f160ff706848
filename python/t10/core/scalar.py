"""Scalar functions: what is computed for one point of an iteration space, as a short SSA list.

```
f(%0: f16, %1: f16):                      ScalarFunction(n_inputs=2, ops=(
  %2 = arith.extf %0 : f32                  ScalarOp("arith.extf", (0,), "f32"),
  %3 = arith.extf %1 : f32                  ScalarOp("arith.extf", (1,), "f32"),
  %4 = arith.mulf %2, %3 : f32              ScalarOp("arith.mulf", (2, 3), "f32")), result=4)
  return %4
```

Opcodes are MLIR's own operation names; two more are ours: `const` (its value in `attribute`, written as Python
writes it: `"0.5"`, `"-inf"`, `"7"`, `"True"`) and `index` (`attribute` is the axis number whose global index it is).
Comparisons carry their MLIR predicate name in `attribute` (`"ugt"`, `"slt"`).
"""

from __future__ import annotations

from dataclasses import dataclass

from t10.errors import T10Error


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One scalar operation; `operands` number the inputs first, then the operations before this one."""

    opcode: str
    operands: tuple[int, ...]
    dtype: str
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A straight-line scalar function of `n_inputs` values that returns value number `result`."""

    n_inputs: int
    ops: tuple[ScalarOp, ...]
    result: int

    def __post_init__(self) -> None:
        """Refuse operands that are not defined before their use."""
        for i, op in enumerate(self.ops):
            bad = [v for v in op.operands if not 0 <= v < self.n_inputs + i]
            if bad:
                raise T10Error(f"scalar operation {i} ({op.opcode}) uses value {bad[0]} before it is defined")
        if not 0 <= self.result < self.n_inputs + len(self.ops):
            raise T10Error(f"scalar function returns value {self.result}, which is not defined")

    @property
    def is_identity(self) -> bool:
        """Return whether the function hands its first input through."""
        return self.result == 0 and self.n_inputs > 0


def identity() -> ScalarFunction:
    """Return the function of one input that returns it."""
    return ScalarFunction(n_inputs=1, ops=(), result=0)


def constant_text(value: float | int | bool) -> str:
    """Return the spelling of a constant in `ScalarOp.attribute`; `parse_constant` reads it back."""
    return repr(value)


def parse_constant(text: str) -> float | int | bool:
    """Return the value of a constant's spelling."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return int(text)
    except ValueError:
        return float(text)
