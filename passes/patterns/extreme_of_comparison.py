"""A float that is selected because it is the larger or smaller one is a maximum or minimum, which keeps a NaN.

```mlir
%is_larger = arith.cmpf ogt, %x, %y : f32
%z = arith.select %is_larger, %x, %y : f32
```
becomes
```mlir
%z = arith.maximumf %x, %y : f32
```

torch-mlir writes maxima, minima, clamps and rectifiers so, and drops the NaN of one operand or the other, which
PyTorch, ONNX Runtime and IEEE 754-2019 keep. It compares and selects in one body for nothing else.
"""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir
from t10.passes.patterns.driver import Pattern, maker

_PREDICATES = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une",
               "uno", "true")  # fmt: skip
"""The spellings of `arith.cmpf`'s predicates, by the number they are stored as."""

_OPERATIONS = {"gt": "arith.maximumf", "ge": "arith.maximumf", "lt": "arith.minimumf", "le": "arith.minimumf"}
_OPPOSITE = {"arith.maximumf": "arith.minimumf", "arith.minimumf": "arith.maximumf"}


def _rewrite(op: Any, rewriter: Any) -> bool:
    comparison = maker(op.operands[0], "arith.cmpf")
    if comparison is None:
        return False
    predicate = _PREDICATES[int(ir.IntegerAttr(comparison.attributes["predicate"]).value)]
    operation = _OPERATIONS.get(predicate[1:])
    x, y = comparison.operands
    chosen = list(op.operands)[1:]
    if operation is None or x == y or chosen not in ([x, y], [y, x]):
        return False
    if chosen == [y, x]:
        operation = _OPPOSITE[operation]
    with op.location, rewriter.ip:
        made = ir.Operation.create(operation, results=[op.results[0].type], operands=[x, y])
    rewriter.replace_op(op, made)
    return True


EXTREME_OF_COMPARISON = Pattern("arith.select", _rewrite)
