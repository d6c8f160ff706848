"""Sums kept in 16 bits: what `partials=f16` asks for (poplibs calls it the partials type).

```
acc: f32 += extf(a) * extf(b);  y = f(truncf(acc))     becomes     acc: f16 += a * b;  y = f(acc)
```

Only sums of 16-bit terms whose total is rounded to that type before anything else happens to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from t10.dialect.mlir import ir
from t10.passes.fusion.graph import FusionGraph, Nest
from t10.passes.fusion.scalar import Accumulated, Apply, Constant, Read, Scalar, visit

NARROW = ("f16", "bf16")


def narrow_sums(graph: FusionGraph) -> None:
    """Keep every sum in 16 bits whose terms are of 16 bits and whose total is rounded to them at once."""
    for nest in graph.nests():
        narrowed = _narrowed(graph, nest)
        if narrowed is not None:
            graph.add(narrowed)


def _narrowed(graph: FusionGraph, nest: Nest) -> Nest | None:
    """Return the nest with a narrow accumulator, None where it must not have one."""
    if nest.combine != "arith.addf" or str(nest.acc_type) != "f32" or not isinstance(nest.init, Constant):
        return None
    kind = _rounded_to(nest.epilogue)
    body = None if kind is None else _narrow_term(graph, nest.body, kind)
    if body is None or nest.epilogue is None:
        return None
    start = ir.FloatAttr.get(kind, ir.FloatAttr(nest.init.attribute).value)
    epilogue = _without_rounding(nest.epilogue)
    return replace(
        nest,
        body=body,
        acc_type=kind,
        init=Constant(start),
        epilogue=None if isinstance(epilogue, Accumulated) else epilogue,
    )


def _rounded_to(epilogue: Scalar | None) -> Any:
    """Return the one 16-bit type that every use of the total rounds it to, None if there is none."""
    if epilogue is None or isinstance(epilogue, Accumulated):
        return None
    uses = [node for node in visit(epilogue) if any(isinstance(o, Accumulated) for o in _operands(node))]
    kinds = {str(use.type) if _is_rounding(use) else "" for use in uses if isinstance(use, Apply)}
    if len(kinds) != 1 or not kinds <= set(NARROW):
        return None
    return next(use.type for use in uses if isinstance(use, Apply))


def _narrow_term(graph: FusionGraph, scalar: Scalar, kind: Any) -> Scalar | None:
    """Return a term of the sum in its narrow type, None if it is more than a product of widened values."""
    if isinstance(scalar, Apply) and scalar.opcode == "arith.extf":
        inner = scalar.operands[0]
        return inner if str(_type_of(graph, inner)) == str(kind) else None
    if isinstance(scalar, Apply) and scalar.opcode == "arith.mulf":
        factors = [_narrow_term(graph, operand, kind) for operand in scalar.operands]
        known = tuple(factor for factor in factors if factor is not None)
        return Apply("arith.mulf", known, kind) if len(known) == len(factors) else None
    return None


def _without_rounding(scalar: Scalar) -> Scalar:
    """Return the epilogue with each rounded total replaced by the total; what is shared stays shared."""
    memo: dict[int, Scalar] = {}

    def rebuilt(node: Scalar) -> Scalar:
        if not isinstance(node, Apply):
            return node
        if id(node) not in memo:
            if _is_rounding(node) and isinstance(node.operands[0], Accumulated):
                memo[id(node)] = node.operands[0]
            else:
                operands = tuple(rebuilt(operand) for operand in node.operands)
                memo[id(node)] = Apply(node.opcode, operands, node.type, node.template)
        return memo[id(node)]

    return rebuilt(scalar)


def _is_rounding(node: Scalar) -> bool:
    return isinstance(node, Apply) and node.opcode == "arith.truncf"


def _operands(node: Scalar) -> Iterator[Scalar]:
    if isinstance(node, Apply):
        yield from node.operands


def _type_of(graph: FusionGraph, scalar: Scalar) -> Any:
    if isinstance(scalar, Read):
        return graph.types[scalar.value]
    return scalar.type if isinstance(scalar, Apply) else None
