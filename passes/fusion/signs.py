"""Negated parts of what is multiplied, negated in the other factor where that is smaller.

```
concat(-b, a) * s        becomes        concat(b, a) * concat(-s[.., :n], s[.., n:])
```

Rotary embeddings turn halves of heads like this. Negating a half of all heads is an operator in every layer, for which
its readers wait; the factor is one for all heads, layers, queries and keys, and negated once. No product changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from t10.dialect.mlir import ir
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.tree import Apply, Read, Scalar, visit
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.normalize import drop_unit_axes

Pieces = tuple[tuple[int, bool], ...]
"""The lengths of the parts of a concatenation, and which are negated."""


def move_signs(function: Any, graph: FusionGraph) -> None:
    """Negate the smaller factor of products of which the other is a concatenation with negated parts."""
    mover = _Mover(graph, ViewMaker.of(function, graph))
    for node in graph.nodes():
        if isinstance(node, Opaque) and node.op.name == "tensor.concat":
            mover.visit(node)


@dataclass(frozen=True, slots=True)
class _Mover:
    """Moves signs in a graph; `made` are factors with negated parts, by factor, dim and parts."""

    graph: FusionGraph
    views: ViewMaker
    made: dict[tuple[int, int, Pieces], int] = field(default_factory=dict[tuple[int, int, Pieces], int])

    def visit(self, node: Opaque) -> None:
        """Move the signs of a concatenation's parts, if all that reads it multiplies it by less."""
        graph, (result,) = self.graph, node.results
        dim = int(ir.IntegerAttr(node.op.attributes["dim"]).value)
        parts = [value for value in node.operands if value is not None]
        negated = [self._negated(value) for value in parts]
        users = [graph.owners[user] for user in sorted(graph.users[result])]
        nests = [user for user in users if isinstance(user, Nest) and self._multiplies(user, result, dim)]
        if len(nests) < len(users) or result in graph.outputs or all(value is None for value in negated):
            return
        pieces = tuple(
            [(graph.shapes[p][dim], value is not None) for p, value in zip(parts, negated, strict=True)]
        )
        sources = [part if value is None else value for part, value in zip(parts, negated, strict=True)]
        plain = graph.new_value(graph.shapes[result], graph.types[result])
        self.views.concat(plain, tuple(sources), dim, node.rank)
        for nest in nests:
            self._move(nest, result, plain, dim, pieces)
        graph.remove_dead(result)

    def _negated(self, value: int) -> int | None:
        """Return what a value has the other sign of, point for point; None where it has not, or others read it."""
        nest = self.graph.owner(value)
        if not isinstance(nest, Nest) or not nest.is_elementwise or self.graph.only_user(value) is None:
            return None
        body = nest.body
        if not isinstance(body, Apply) or body.opcode != "arith.negf" or nest.epilogue is not None:
            return None
        (source,) = body.operands
        if not isinstance(source, Read) or self.graph.shapes[source.value] != self.graph.shapes[value]:
            return None
        return source.value if source.dims == nest.out_dims else None

    def _multiplies(self, nest: Nest, value: int, dim: int) -> bool:
        """Return whether an elementwise nest reads a value only to multiply it by a smaller one along a dim of it."""
        found = [node for node in visit(nest.body) if self._factor(node, value, dim) is not None]
        n_read = sum(
            isinstance(operand, Read) and operand.value == value
            for node in visit(nest.body)
            if isinstance(node, Apply)
            for operand in node.operands
        )
        return nest.is_elementwise and nest.epilogue is None and 0 < n_read == len(found)

    def _factor(self, node: Scalar, value: int, dim: int) -> tuple[Read, Read, int] | None:
        """Return the factors of a product of a value by a smaller one, and the dim of that; None for what is none."""
        if not isinstance(node, Apply) or node.opcode != "arith.mulf":
            return None
        for one, other in (node.operands, node.operands[::-1]):
            if not isinstance(one, Read) or not isinstance(other, Read) or one.value != value:
                continue
            along = [number for number, form in enumerate(other.dims) if form == one.dims[dim]]
            axes = {axis for form in other.dims for axis in form.axes}
            is_smaller = 2 * prod(self.graph.shapes[other.value]) <= prod(self.graph.shapes[value])
            is_plain = one.dims[dim].is_simple and sum(map(len, (f.axes for f in other.dims))) == len(axes)
            if len(along) == 1 and is_smaller and is_plain and other.value != value:
                is_whole = self.graph.shapes[other.value][along[0]] == self.graph.shapes[value][dim]
                return (one, other, along[0]) if is_whole else None
        return None

    def _move(self, nest: Nest, value: int, plain: int, dim: int, pieces: Pieces) -> None:
        """Let a nest multiply what is `plain` instead of a value by factors with negated parts."""
        made: dict[int, Scalar] = {}
        for node in visit(nest.body):
            if not isinstance(node, Apply):
                made[id(node)] = node
                continue
            operands = tuple(made[id(operand)] for operand in node.operands)
            found = self._factor(node, value, dim)
            if found is not None:
                # A factor of other products as well keeps its sign there.
                one, other, along = found
                signed = Read(self._signed(other.value, along, pieces, nest), other.dims)
                operands = (Read(plain, one.dims), signed)
            made[id(node)] = replace(node, operands=operands)
        self.graph.add(replace(nest, body=made[id(nest.body)]))

    def _signed(self, value: int, dim: int, pieces: Pieces, reader: Nest) -> int:
        """Return a value with negated parts along a dim."""
        key = value, dim, pieces
        if key not in self.made:
            first, parts = 0, list[int]()
            for n, is_negated in pieces:
                part = self.views.slice(value, dim, first, n, reader.rank)
                parts.append(self._negation(part, reader) if is_negated else part)
                first += n
            self.made[key] = self.graph.new_value(self.graph.shapes[value], self.graph.types[value])
            self.views.concat(self.made[key], tuple(parts), dim, reader.rank)
        return self.made[key]

    def _negation(self, value: int, reader: Nest) -> int:
        shape, dtype = self.graph.shapes[value], self.graph.types[value]
        forms = tuple(axis_dim(axis) for axis in range(len(shape)))
        body = Apply("arith.negf", (Read(value, forms),), dtype)
        result = self.graph.new_value(shape, dtype)
        kinds = (PARALLEL,) * len(shape)
        nest = Nest(result, shape, kinds, body, forms, dtype, reader.location, reader.rank)
        self.graph.add(drop_unit_axes(nest))
        return result
