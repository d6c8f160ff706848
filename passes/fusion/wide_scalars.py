"""Scalars of 16-bit floats computed in f32: what is summed, and what depends on a total that is there in f32.

```
sqrt(truncf(total) / 64)     becomes     truncf(sqrt(total / 64))
```
"""

from __future__ import annotations

from collections.abc import Callable, Collection
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


class WideScalars:
    """The scalars of one nest in f32; what several scalars share stays shared.

    `totals` are the ids of conversions of f32 scalars to the type `narrow`. `fits` says which operations that depend on
    one are computed in f32; the others stay in 16 bits.
    """

    def __init__(
        self,
        graph: FusionGraph,
        nest: Nest,
        narrow: str,
        totals: Collection[int],
        fits: Callable[[Apply], bool],
    ) -> None:
        self.graph = graph
        self.nest = nest
        self.narrow = narrow
        self.totals = totals
        self.fits = fits
        self.is_product = kind_of(nest) in ("contraction", "convolution")
        self.n_summed = prod(n for n, kind in zip(nest.extents, nest.kinds, strict=True) if kind != PARALLEL)
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
        if not isinstance(scalar, Apply) or not self.depends(scalar):
            return scalar
        if scalar.opcode == "arith.extf" and self._is_narrow(scalar.operands[0]):
            wide = self._wide(scalar.operands[0])
            return wide if scalar.dtype == WIDE else replace(scalar, operands=(wide,))
        if self._is_widened(scalar):
            return Apply("arith.truncf", (self._wide(scalar),), scalar.dtype)
        made = self._operand if scalar.opcode in OF_FLOATS and self.fits(scalar) else self.rounded
        return replace(scalar, operands=tuple(made(operand) for operand in scalar.operands))

    def _wide(self, scalar: Scalar) -> Scalar:
        """Return a 16-bit scalar of the epilogue in f32."""
        return self._once("wide", scalar, self._made_wide)

    def _made_wide(self, scalar: Scalar) -> Scalar:
        if isinstance(scalar, Apply) and id(scalar) in self.totals:
            return scalar.operands[0]
        if not isinstance(scalar, Apply) or not self.depends(scalar) or not self._is_widened(scalar):
            return Apply("arith.extf", (self.rounded(scalar),), WIDE)
        operands = tuple(self._operand(operand) for operand in scalar.operands)
        if scalar.opcode == "arith.divf" and not self.is_product and self._is_count(scalar):
            operands = (operands[0], Constant(f"{self.n_summed}.0", WIDE))
        return replace(scalar, operands=operands, dtype=WIDE)

    def _operand(self, scalar: Scalar) -> Scalar:
        return self._wide(scalar) if self._is_narrow(scalar) else self.rounded(scalar)

    def _is_count(self, quotient: Apply) -> bool:
        """Return whether the total is divided by the number of its terms, which 16 bits may not hold."""
        total, divisor = quotient.operands
        is_own = isinstance(total, Apply) and isinstance(total.operands[0], Accumulated)
        if not is_own or id(total) not in self.totals or not isinstance(divisor, Constant):
            return False
        with np.errstate(over="ignore"):
            return float(np.float16(self.n_summed)) == parse_constant(divisor.text)

    def _is_widened(self, scalar: Apply) -> bool:
        if id(scalar) in self.totals:
            return True
        return self._is_narrow(scalar) and scalar.opcode not in OF_BITS and self.fits(scalar)

    def _is_narrow(self, scalar: Scalar) -> bool:
        if isinstance(scalar, Read):
            return self.graph.types[scalar.value] == self.narrow
        if isinstance(scalar, Accumulated):
            return self.nest.acc_type == self.narrow
        return isinstance(scalar, Apply | Constant) and scalar.dtype == self.narrow

    def depends(self, scalar: Scalar) -> bool:
        """Return whether a scalar depends on a total."""
        return any(id(node) in self.totals for node in visit(scalar))

    def _once(self, form: str, scalar: Scalar, make: Callable[[Scalar], Scalar]) -> Scalar:
        key = (form, id(scalar))
        if key not in self.memo:
            self.memo[key] = make(scalar)
        return self.memo[key]
