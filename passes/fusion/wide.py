"""What surrounds a sum of 16-bit floats is computed in f32, as the sum is: one rounding per operator.

```
acc: f32 += extf(x * x);  y = sqrt(truncf(acc) / 64)
acc: f32 += extf(x) * extf(x);  y = truncf(sqrt(acc / 64))     is what the first becomes
```

A sum, or a square that is summed, may leave the range of f16 where a mean, a norm or a deviation does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np

from t10.core.scalar import parse_constant
from t10.passes.bridge.tree import Accumulated, Apply, Constant, Read, Scalar, visit
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, kind_of

WIDE = "f32"
PRODUCTS = ("arith.mulf", "math.fpowi", "math.powf")
"""What may leave the range of f16 though its operands are far inside."""
OF_FLOATS = ("arith.cmpf", "arith.fptosi", "arith.fptoui", "math.isnan", "math.isinf", "math.isfinite")
"""Operations on floats whose result is none: they read what is not rounded."""
OF_BITS = ("arith.bitcast", "arith.truncf")
"""Operations that make 16-bit floats and whose operands are taken as they are."""


def stay_wide(graph: FusionGraph) -> None:
    """Compute what goes into a widened sum as a product, and what follows it inside its operator, in f32.

    What follows a contraction or convolution stays in 16 bits: it is computed for every element of a large result.
    """
    for nest in graph.nests():
        if not nest.sum_type:
            continue
        wide = _Wide(graph, nest)
        epilogue = nest.epilogue
        if kind_of(nest) in ("reduction", "pooling") and epilogue is not None:
            epilogue = wide.rounded(epilogue)
        graph.add(replace(nest, body=wide.summed(nest.body), epilogue=epilogue, sum_type=""))


class _Wide:
    """The scalars of one nest in f32; what several scalars share stays shared."""

    def __init__(self, graph: FusionGraph, nest: Nest) -> None:
        self.graph = graph
        self.nest = nest
        self.n_summed = prod(n for n, kind in zip(nest.extents, nest.kinds, strict=True) if kind != PARALLEL)
        self.total = {
            id(node)
            for node in (() if nest.epilogue is None else visit(nest.epilogue))
            if isinstance(node, Apply)
            and node.opcode == "arith.truncf"
            and isinstance(node.operands[0], Accumulated)
        }
        self.memo: dict[tuple[str, int], Scalar] = {}

    def summed(self, scalar: Scalar) -> Scalar:
        """Return what is summed with its products in f32."""
        if not isinstance(scalar, Apply):
            return scalar
        if scalar.opcode == "arith.extf" and scalar.dtype == WIDE:
            return self._product(scalar.operands[0])
        operands = tuple(self.summed(operand) for operand in scalar.operands)
        return replace(scalar, operands=operands) if scalar.opcode == "arith.mulf" else scalar

    def _product(self, scalar: Scalar) -> Scalar:
        """Return a 16-bit scalar in f32, computed there if it is a product."""
        return self._once("product", scalar, self._made_product)

    def _made_product(self, scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Apply) or scalar.opcode not in PRODUCTS:
            return Apply("arith.extf", (scalar,), WIDE)
        first, second = scalar.operands
        if scalar.opcode == "math.fpowi" and isinstance(second, Constant) and int(second.text) == 2:
            second, opcode = first, "arith.mulf"
        else:
            opcode = scalar.opcode
        operands = tuple(self._product(each) if self._is_narrow(each) else each for each in (first, second))
        return Apply(opcode, operands, WIDE)

    def rounded(self, scalar: Scalar) -> Scalar:
        """Return a scalar of the epilogue in its own type, with what depends on the total computed in f32."""
        return self._once("rounded", scalar, self._made_rounded)

    def _made_rounded(self, scalar: Scalar) -> Scalar:
        if not isinstance(scalar, Apply) or not self._depends(scalar):
            return scalar
        if scalar.opcode == "arith.extf" and self._is_narrow(scalar.operands[0]):
            wide = self._wide(scalar.operands[0])
            return wide if scalar.dtype == WIDE else replace(scalar, operands=(wide,))
        if self._is_widened(scalar):
            return Apply("arith.truncf", (self._wide(scalar),), scalar.dtype)
        made = self._operand if scalar.opcode in OF_FLOATS else self.rounded
        return replace(scalar, operands=tuple(made(operand) for operand in scalar.operands))

    def _wide(self, scalar: Scalar) -> Scalar:
        """Return a 16-bit scalar of the epilogue in f32."""
        return self._once("wide", scalar, self._made_wide)

    def _made_wide(self, scalar: Scalar) -> Scalar:
        if id(scalar) in self.total:
            return Accumulated()
        if not isinstance(scalar, Apply) or not self._depends(scalar) or not self._is_widened(scalar):
            return Apply("arith.extf", (self.rounded(scalar),), WIDE)
        operands = tuple(self._operand(operand) for operand in scalar.operands)
        if scalar.opcode == "arith.divf" and self._is_count(scalar):
            operands = (operands[0], Constant(f"{self.n_summed}.0", WIDE))
        return replace(scalar, operands=operands, dtype=WIDE)

    def _operand(self, scalar: Scalar) -> Scalar:
        return self._wide(scalar) if self._is_narrow(scalar) else self.rounded(scalar)

    def _is_count(self, quotient: Apply) -> bool:
        """Return whether the total is divided by the number of its terms, which 16 bits may not hold."""
        total, divisor = quotient.operands
        if id(total) not in self.total or not isinstance(divisor, Constant):
            return False
        with np.errstate(over="ignore"):
            return float(np.float16(self.n_summed)) == parse_constant(divisor.text)

    def _is_widened(self, scalar: Apply) -> bool:
        return self._is_narrow(scalar) and (scalar.opcode not in OF_BITS or id(scalar) in self.total)

    def _is_narrow(self, scalar: Scalar) -> bool:
        if isinstance(scalar, Read):
            return self.graph.types[scalar.value] == self.nest.sum_type
        return isinstance(scalar, Apply | Constant) and scalar.dtype == self.nest.sum_type

    def _depends(self, scalar: Scalar) -> bool:
        return any(isinstance(node, Accumulated) for node in visit(scalar))

    def _once(self, form: str, scalar: Scalar, make: Callable[[Scalar], Scalar]) -> Scalar:
        key = (form, id(scalar))
        if key not in self.memo:
            self.memo[key] = make(scalar)
        return self.memo[key]
