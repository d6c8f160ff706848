"""A shift to the position at which a tensor stands moves nothing.

```mlir
%y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #a>, index) -> tensor<4xf16, #a>
%z = "rtensor.shift"(%y, %p) {axis = 1} : (tensor<4xf16, #a>, index) -> tensor<4xf16, #a>
"t.read"(%z)
```
becomes
```mlir
%y = "rtensor.shift"(%x, %p) {axis = 1} : (tensor<4xf16, #a>, index) -> tensor<4xf16, #a>
"t.read"(%y)
```
"""

from __future__ import annotations

from typing import Any

from t10.dialect.compute_shift import constant_index
from t10.passes.patterns.driver import Pattern, maker


def _rewrite(op: Any, rewriter: Any) -> bool:
    before = maker(op.operands[0], op.name)
    if before is None or before.attributes["axis"] != op.attributes["axis"]:
        return False
    first, second = before.operands[1], op.operands[1]
    if first != second and (constant_index(first) is None or constant_index(first) != constant_index(second)):
        return False
    rewriter.replace_op(op, [op.operands[0]])
    return True


REPEATED_SHIFT = Pattern("rtensor.shift", _rewrite)
