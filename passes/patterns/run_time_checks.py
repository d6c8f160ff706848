"""The run-time checks of torch-mlir (index in range, divisor not zero) go, and with them loops that hold only them.

```mlir
linalg.generic {...} ins(%x : tensor<4xi64>) {
^bb0(%i: i64):
  %ok = arith.cmpi slt, %i, %n : i64
  cf.assert %ok, "index out of range"
  linalg.yield
}
```
becomes nothing.
"""

from __future__ import annotations

from typing import Any

from t10.passes.patterns.driver import Pattern


def _rewrite(op: Any, rewriter: Any) -> bool:
    rewriter.erase_op(op)
    return True


RUN_TIME_CHECKS = Pattern("cf.assert", _rewrite)
