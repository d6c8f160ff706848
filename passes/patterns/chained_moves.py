"""Of two moves of one kind, the second reads what the first reads: only the layout at the end counts.

```mlir
%y = "rtensor.relayout"(%x) : (tensor<8xf16, #a>) -> tensor<8xf16, #b>
%z = "rtensor.relayout"(%y) : (tensor<8xf16, #b>) -> tensor<8xf16, #c>
```
becomes
```mlir
%z = "rtensor.relayout"(%x) : (tensor<8xf16, #a>) -> tensor<8xf16, #c>
```

So do `rtensor.setup` and `rtensor.cast`. The first stays where others read it; a place stays that of the second.
"""

from __future__ import annotations

from typing import Any

from t10.passes.patterns.driver import Pattern, maker, replace


def _rewrite(op: Any, rewriter: Any) -> bool:
    before = maker(op.operands[0], op.name)
    if before is None:
        return False
    replace(rewriter, op, [before.operands[0]])
    if not any(True for _ in before.results[0].uses):
        rewriter.erase_op(before)
    return True


CHAINED_MOVES = tuple(
    Pattern(name, _rewrite) for name in ("rtensor.relayout", "rtensor.setup", "rtensor.cast")
)
