"""A relayout to the layout that its source has is its source, unless it is a copy that rotates.

```mlir
%y = "rtensor.relayout"(%x) : (tensor<8xf16, #a>) -> tensor<8xf16, #a>
"t.read"(%y)
```
becomes
```mlir
"t.read"(%x)
```

A tensor of a rotating layout moves in place, so that its copy keeps the source where it is.
"""

from __future__ import annotations

from typing import Any

from t10.dialect.layout import RotatingLayout
from t10.dialect.layout_attr import layout_of
from t10.passes.patterns.driver import Pattern


def _rewrite(op: Any, rewriter: Any) -> bool:
    source = op.operands[0]
    layout = layout_of(source.type)
    if source.type != op.results[0].type or (isinstance(layout, RotatingLayout) and layout.rotates):
        return False
    rewriter.replace_op(op, [source])
    return True


SAME_RELAYOUT = Pattern("rtensor.relayout", _rewrite)
