"""A cast to the layout that its source has is its source.

```mlir
%y = "rtensor.cast"(%x) : (tensor<8xf16, #a>) -> tensor<8xf16, #a>
"t.read"(%y)
```
becomes
```mlir
"t.read"(%x)
```
"""

from __future__ import annotations

from typing import Any

from t10.passes.patterns.driver import Pattern


def _rewrite(op: Any, rewriter: Any) -> bool:
    source = op.operands[0]
    if source.type != op.results[0].type:
        return False
    rewriter.replace_op(op, [source])
    return True


SAME_CAST = Pattern("rtensor.cast", _rewrite)
