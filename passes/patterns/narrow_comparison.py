"""Comparisons that torch-mlir makes in f64 are made in the type of what is compared: the chip has no f64.

```mlir
%wide = arith.extf %x : f32 to f64
%half = arith.constant 5.000000e-01 : f64
%y = arith.cmpf olt, %wide, %half : f64
```
becomes
```mlir
%half = arith.constant 5.000000e-01 : f32
%y = arith.cmpf olt, %x, %half : f32
```

Widening keeps order and equality, so this is exact wherever the constant is one of the narrow type, as infinities are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.dialect.mlir import ir
from t10.passes.patterns.driver import Pattern, maker, replace
from t10.passes.patterns.narrowed_constant import NARROW, float_constant


def _rewrite(op: Any, rewriter: Any) -> bool:
    if str(op.operands[0].type) != "f64":
        return False
    sources = [_source(value) for value in op.operands]
    kind = next((source.type for source in sources if source is not None), None)
    if kind is None or any(source is not None and source.type != kind for source in sources):
        return False
    constants = [
        None if source is not None else _narrow(value, str(kind))
        for value, source in zip(op.operands, sources, strict=True)
    ]
    if any(source is None and constant is None for source, constant in zip(sources, constants, strict=True)):
        return False
    with op.location, rewriter.ip:
        operands = [
            float_constant(constant, kind).results[0] if constant is not None else source
            for source, constant in zip(sources, constants, strict=True)
        ]
    replace(rewriter, op, operands)
    return True


def _source(value: Any) -> Any:
    """Return what a value was widened from, None if it was not."""
    widened = maker(value, "arith.extf")
    if widened is None or str(widened.operands[0].type) not in NARROW:
        return None
    return widened.operands[0]


def _narrow(value: Any, kind: str) -> float | None:
    """Return a constant of f64 that a narrow type holds, None for any other value."""
    constant = maker(value, "arith.constant")
    if constant is None:
        return None
    wide = np.float64(ir.FloatAttr(constant.attributes["value"]).value)
    with np.errstate(over="ignore"):
        narrow = NARROW[kind](wide)
    return float(narrow) if np.float64(narrow) == wide or np.isnan(wide) else None


NARROW_COMPARISON = Pattern("arith.cmpf", _rewrite)
