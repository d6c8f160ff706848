"""A move of a value whose reshapes undo each other moves the value itself.

```mlir
%s = tensor.expand_shape %x [[0, 1]] output_shape [2, 4] : tensor<8xf16, #a> into tensor<2x4xf16>
%t = tensor.collapse_shape %s [[0, 1]] : tensor<2x4xf16> into tensor<8xf16>
%y = "rtensor.relayout"(%t) : (tensor<8xf16>) -> tensor<8xf16, #b>
```
becomes
```mlir
%y = "rtensor.relayout"(%x) : (tensor<8xf16, #a>) -> tensor<8xf16, #b>
```

So do `rtensor.setup` and `rtensor.cast`. MLIR's own patterns need equal types: a layout ends at a reshape.
"""

from __future__ import annotations

from typing import Any

from t10.passes.patterns.driver import Pattern, maker, replace


def _rewrite(op: Any, rewriter: Any) -> bool:
    source = op.operands[0]
    shape = list(source.type.shape)
    reshape = maker(source, "tensor.expand_shape", "tensor.collapse_shape")
    while reshape is not None:
        source = reshape.operands[0]
        if list(source.type.shape) == shape:
            replace(rewriter, op, [source])
            return True
        reshape = maker(source, "tensor.expand_shape", "tensor.collapse_shape")
    return False


UNDONE_RESHAPES = tuple(
    Pattern(name, _rewrite) for name in ("rtensor.relayout", "rtensor.setup", "rtensor.cast")
)
