"""A loop that reads one constant everywhere uses the constant: it can be folded then.

```mlir
%f = linalg.fill ins(%c : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
%y = linalg.generic {...} ins(%x, %f : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
^bb0(%a: f32, %b: f32, %out: f32):
  %0 = arith.mulf %a, %b : f32
  linalg.yield %0 : f32
} -> tensor<4xf32>
```
becomes
```mlir
%y = linalg.generic {...} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
^bb0(%a: f32, %out: f32):
  %0 = arith.mulf %a, %c : f32
  linalg.yield %0 : f32
} -> tensor<4xf32>
```

So it does for a splat. An operand from which alone a loop has its extent stays.
"""

from __future__ import annotations

from typing import Any

from t10.dialect.mlir import ir, linalg_indexing_maps
from t10.passes.patterns.driver import Pattern, maker


def _rewrite(op: Any, rewriter: Any) -> bool:
    n_inputs = len(op.operands) - len(op.results)
    for number, operand in enumerate(list(op.operands)[:n_inputs]):
        if isinstance(operand.type, ir.RankedTensorType) and _is_constant(operand):
            others = [each for i, each in enumerate(linalg_indexing_maps(op)) if i != number]
            if _gives_extents(others):
                _use(op, number, _scalar(op, operand, rewriter), rewriter)
                return True
    return False


def _is_constant(value: Any) -> bool:
    """Return whether a tensor is a fill with a constant or a splat."""
    fill = maker(value, "linalg.fill")
    if fill is not None:
        return maker(fill.operands[0], "arith.constant") is not None
    constant = maker(value, "arith.constant")
    if constant is None:
        return False
    attribute = constant.attributes["value"]
    return isinstance(attribute, ir.DenseElementsAttr) and bool(ir.DenseElementsAttr(attribute).is_splat)


def _gives_extents(maps: list[Any]) -> bool:
    """Return whether every loop is a dim of some operand."""
    found = {each.position for m in maps for each in m.results if isinstance(each, ir.AffineDimExpr)}
    return len(found) == maps[0].n_dims


def _scalar(op: Any, operand: Any, rewriter: Any) -> Any:
    """Return the element that a constant tensor repeats."""
    fill = maker(operand, "linalg.fill")
    if fill is not None:
        return fill.operands[0]
    element = operand.owner.operation.attributes["value"].get_splat_value()
    with op.location, rewriter.ip:
        return ir.Operation.create(
            "arith.constant", results=[element.type], attributes={"value": element}
        ).results[0]


def _use(op: Any, number: int, scalar: Any, rewriter: Any) -> None:
    """Replace a generic by one that uses a scalar in place of an input."""
    operands = [value for i, value in enumerate(op.operands) if i != number]
    attributes = {name: op.attributes[name] for name in op.attributes}
    maps = [each for i, each in enumerate(ir.ArrayAttr(attributes["indexing_maps"])) if i != number]
    attributes["indexing_maps"] = ir.ArrayAttr.get(maps)
    sizes = [len(operands) - len(op.results), len(op.results)]
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(sizes)
    types = [result.type for result in op.results]
    with op.location, rewriter.ip:
        made = ir.Operation.create(
            op.name, results=types, operands=operands, attributes=attributes, regions=1
        )
    block = op.regions[0].blocks[0]
    block.append_to(made.regions[0])
    block.arguments[number].replace_all_uses_with(scalar)
    block.erase_argument(number)
    rewriter.replace_op(op, made)


CONSTANT_OPERAND = Pattern("linalg.generic", _rewrite)
