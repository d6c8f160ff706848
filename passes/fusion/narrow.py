"""Sums kept in 16 bits: what `partials` asks for (poplibs calls it the partials type).

```
acc: f32 += extf(a) * extf(b);  y = f(truncf(acc + extf(c)))     becomes     acc: f16 += a * b;  y = f(acc + c)
```

Only sums of 16-bit terms whose total, with what is added to it (a bias), is rounded to that type before anything else.
Where a core sums in f32 and rounds what it hands on (`mixed`), the product stays in f32 and is rounded to be added:

```
acc: f16 += truncf(extf(a) * extf(b));  y = f(acc + c)
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from t10.passes.bridge.tree import Accumulated, Apply, Constant, Read, Scalar, visit
from t10.passes.fusion.graph import FusionGraph, Nest, is_product, is_rounded

NARROW = ("f16", "bf16")


def narrow_sums(
    graph: FusionGraph, is_narrow: Callable[[Nest], bool], rounds_parts: Callable[[Nest], bool]
) -> None:
    """Keep narrow sums in 16 bits where the terms are of 16 bits and the total is rounded to them at once.

    Those of `rounds_parts` as soon as a core has added up what it has of them.
    """
    for nest in graph.nests():
        rounds = rounds_parts(nest)
        narrowed = _narrowed(graph, nest, rounds=rounds) if rounds or is_narrow(nest) else None
        if narrowed is not None:
            graph.add(narrowed)


def is_handed_on_rounded(nest: Nest) -> bool:
    """Return whether a nest adds up products that are rounded to the type of its accumulator."""
    return nest.acc_type == "f16" and is_product(nest) and is_rounded(nest.body)


def _narrowed(graph: FusionGraph, nest: Nest, *, rounds: bool) -> Nest | None:
    """Return the nest with a narrow accumulator, None where it must not have one."""
    is_wide_sum = nest.combine == "arith.addf" and nest.acc_type == "f32"
    if not is_wide_sum or nest.epilogue is None or not isinstance(nest.init, Constant):
        return None
    rounded = (_rounded_type(node) for node in visit(nest.epilogue))
    kind = next((kind for kind in rounded if kind is not None), None)
    if kind is None:
        return None
    body = _in_narrow_type(graph, nest.body, kind, "arith.mulf")
    epilogue = None if body is None else _Rounded(graph, kind).epilogue(nest.epilogue)
    if body is None or epilogue is None or (rounds and kind != "f16"):
        return None
    if rounds:
        body = Apply("arith.truncf", (nest.body,), kind)
    return replace(
        nest,
        body=body,
        acc_type=kind,
        init=Constant(nest.init.text, kind),
        epilogue=None if isinstance(epilogue, Accumulated) else epilogue,
    )


def _in_narrow_type(graph: FusionGraph, scalar: Scalar, kind: str, opcode: str) -> Scalar | None:
    """Return a scalar in a narrow type, None unless it is widened values (or the total) joined by `opcode`."""
    if isinstance(scalar, Accumulated):
        return scalar
    if not isinstance(scalar, Apply):
        return None
    if scalar.opcode == "arith.extf":
        inner = scalar.operands[0]
        return inner if _type_of(graph, inner) == kind else None
    if scalar.opcode != opcode:
        return None
    operands = [_in_narrow_type(graph, operand, kind, opcode) for operand in scalar.operands]
    known = tuple(operand for operand in operands if operand is not None)
    return Apply(opcode, known, kind) if len(known) == len(operands) else None


class _Rounded:
    """An epilogue rewritten so that what was rounded to `kind` is computed in it."""

    def __init__(self, graph: FusionGraph, kind: str) -> None:
        self.graph = graph
        self.kind = kind
        self.uses_wide_total = kind not in NARROW
        self.memo: dict[int, Scalar] = {}

    def epilogue(self, scalar: Scalar) -> Scalar | None:
        """Return the epilogue of a narrow total, None if the wide one is needed."""
        made = self._made(scalar)
        return None if self.uses_wide_total else made

    def _made(self, node: Scalar) -> Scalar:
        if isinstance(node, Accumulated):
            self.uses_wide_total = True
        if not isinstance(node, Apply):
            return node
        if id(node) not in self.memo:
            narrow = None
            if _rounded_type(node) == self.kind:
                narrow = _in_narrow_type(self.graph, node.operands[0], self.kind, "arith.addf")
            if narrow is None:
                operands = tuple(self._made(operand) for operand in node.operands)
                narrow = replace(node, operands=operands)
            self.memo[id(node)] = narrow
        return self.memo[id(node)]


def _rounded_type(node: Scalar) -> str | None:
    """Return the type that a scalar is rounded to, None if it is not."""
    return node.dtype if isinstance(node, Apply) and node.opcode == "arith.truncf" else None


def _type_of(graph: FusionGraph, scalar: Scalar) -> str | None:
    if isinstance(scalar, Read):
        return graph.types[scalar.value]
    return scalar.dtype if isinstance(scalar, Apply) else None


def widened(nest: Nest) -> Nest | None:
    """Return a nest that sums in f32 and rounds the total, None where it begins with what is no constant."""
    if not isinstance(nest.init, Constant):
        return None
    body = nest.body.operands[0] if is_rounded(nest.body) else _in_f32(nest.body)
    return replace(
        nest,
        body=body,
        acc_type="f32",
        init=Constant(nest.init.text, "f32"),
        epilogue=_Unrounded().of(nest.epilogue or Accumulated()),
    )


def _in_f32(product: Scalar) -> Scalar:
    assert isinstance(product, Apply)
    operands = tuple(Apply("arith.extf", (operand,), "f32") for operand in product.operands)
    return Apply(product.opcode, operands, "f32")


class _Unrounded:
    """An epilogue of a narrow total as one of a wide one: that is rounded, with what is added to it at once."""

    def __init__(self) -> None:
        self.memo: dict[int, Scalar] = {}

    def of(self, node: Scalar) -> Scalar:
        """Return a scalar of the narrow total as one of the wide one."""
        if isinstance(node, Accumulated):
            return Apply("arith.truncf", (node,), "f16")
        if not isinstance(node, Apply):
            return node
        if id(node) not in self.memo:
            is_total = [isinstance(operand, Accumulated) for operand in node.operands]
            if node.opcode == "arith.addf" and sum(is_total) == 1:
                wide = tuple(
                    operand if total else Apply("arith.extf", (operand,), "f32")
                    for operand, total in zip(node.operands, is_total, strict=True)
                )
                self.memo[id(node)] = Apply("arith.truncf", (Apply(node.opcode, wide, "f32"),), "f16")
            else:
                self.memo[id(node)] = replace(node, operands=tuple(map(self.of, node.operands)))
        return self.memo[id(node)]
