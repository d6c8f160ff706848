"""The half of GELU, taken of what x is multiplied by: x (1 + t) / 2 does not overflow where x does not.

```
(x * (1 + t)) * 0.5        becomes        x * ((1 + t) * 0.5)        t = tanh u or erf u
```

Halving is exact, so nothing else changes but results whose product is denormal. The half of 1 + tanh u is a sigmoid,
as which code computes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from t10.core.scalar import parse_constant
from t10.passes.bridge.tree import Apply, Constant, Scalar
from t10.passes.fusion.graph import FusionGraph

BOUNDED = frozenset({"math.tanh", "math.erf"})


def halve_gates(graph: FusionGraph) -> None:
    """Halve 1 + t, not its product with something."""
    for nest in graph.nests():
        memo: dict[int, Scalar] = {}
        body = _halved(nest.body, memo)
        epilogue = None if nest.epilogue is None else _halved(nest.epilogue, memo)
        if body is not nest.body or epilogue is not nest.epilogue:
            graph.add(replace(nest, body=body, epilogue=epilogue))


def _halved(scalar: Scalar, memo: dict[int, Scalar]) -> Scalar:
    if not isinstance(scalar, Apply):
        return scalar
    if id(scalar) not in memo:
        operands = tuple(_halved(operand, memo) for operand in scalar.operands)
        is_same = all(new is old for new, old in zip(operands, scalar.operands, strict=True))
        made = scalar if is_same else replace(scalar, operands=operands)
        memo[id(scalar)] = _moved(made) or made
    return memo[id(scalar)]


def _moved(half: Apply) -> Apply | None:
    """Return half of a product as the product with a half, None of anything else."""
    for product, factor in _orders(half):
        is_half = _is(factor, 0.5) if half.opcode == "arith.mulf" else _is(factor, 2.0)
        for x, gate in _orders(product) if is_half and isinstance(product, Apply) else ():
            if isinstance(product, Apply) and product.opcode == "arith.mulf" and _is_gate(gate):
                inner = Apply("arith.mulf", (gate, Constant("0.5", half.dtype)), half.dtype)
                return Apply("arith.mulf", (x, inner), half.dtype)
    return None


def _is_gate(scalar: Scalar) -> bool:
    """Return whether a scalar is 1 + t with a t from -1 to 1."""
    if not isinstance(scalar, Apply) or scalar.opcode != "arith.addf":
        return False
    orders = _orders(scalar)
    return any(_is(one, 1.0) and isinstance(t, Apply) and t.opcode in BOUNDED for one, t in orders)


def _is(scalar: Scalar, value: float) -> bool:
    return isinstance(scalar, Constant) and float(parse_constant(scalar.text)) == value


def _orders(of: Apply) -> Iterator[tuple[Scalar, Scalar]]:
    """Yield the operands of a sum or a product in both orders, of a quotient in theirs."""
    if of.opcode in ("arith.mulf", "arith.addf", "arith.divf"):
        x, y = of.operands
        yield x, y
        if of.opcode != "arith.divf":
            yield y, x
