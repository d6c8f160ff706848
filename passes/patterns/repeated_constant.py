"""A loop that writes one constant everywhere is a fill.

```mlir
%y = linalg.generic {...} outs(%e : tensor<4xf32>) {
^bb0(%out: f32):
  linalg.yield %c : f32
} -> tensor<4xf32>
```
becomes
```mlir
%y = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
```
"""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import dialect, linalg_indexing_maps
from t10.passes.patterns.driver import Pattern, maker


def _rewrite(op: Any, rewriter: Any) -> bool:
    block = op.regions[0].blocks[0]
    if len(op.results) != 1 or len(block.operations) != 1:
        return False
    constant = block.operations[0].operation.operands[0]
    target = linalg_indexing_maps(op)[-1]
    if maker(constant, "arith.constant") is None or not target.is_permutation:
        return False
    with op.location, rewriter.ip:
        filled = dialect("linalg").fill(constant, outs=[op.operands[len(op.operands) - 1]])
    rewriter.replace_op(op, [filled])
    return True


REPEATED_CONSTANT = Pattern("linalg.generic", _rewrite)
