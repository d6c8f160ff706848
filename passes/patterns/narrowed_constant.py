"""A constant that is narrowed is a narrow constant: MLIR keeps those that a float cannot hold, as -inf of maxima.

```mlir
%wide = arith.constant -1.7976931348623157E+308 : f64
%x = arith.truncf %wide : f64 to f32
```
becomes
```mlir
%x = arith.constant 0xFF800000 : f32
```
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.dialect.mlir import ir
from t10.passes.patterns.driver import Pattern, maker

NARROW = {"f32": np.float32, "f16": np.float16}
"""numpy's types of what is narrowed to."""


def _rewrite(op: Any, rewriter: Any) -> bool:
    constant = maker(op.operands[0], "arith.constant")
    kind = op.results[0].type
    if constant is None or str(kind) not in NARROW:
        return False
    with np.errstate(over="ignore"):
        value = float(NARROW[str(kind)](ir.FloatAttr(constant.attributes["value"]).value))
    with op.location, rewriter.ip:
        made = float_constant(value, kind)
    rewriter.replace_op(op, made)
    return True


def float_constant(value: float, kind: Any) -> Any:
    """Return a new `arith.constant` at the current insertion point."""
    return ir.Operation.create(
        "arith.constant", results=[kind], attributes={"value": ir.FloatAttr.get(kind, value)}
    )


NARROWED_CONSTANT = Pattern("arith.truncf", _rewrite)
