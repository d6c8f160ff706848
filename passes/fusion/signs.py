"""Negated parts of what is multiplied, negated in the other factor where that is smaller.

```
concat(-b, a) * s        becomes        concat(b, a) * concat(-s[.., :n], s[.., n:])
```

Rotary embeddings turn halves of heads like this, or every two elements (`stack(-b, a)`, reshaped). Negating a half of
all heads is an operator in every layer, for which its readers wait; the factor is one for all heads, layers, queries
and keys, and negated once. Where its readers compute few points, or pairs are turned, each multiplies by signs of its
own instead, a constant; not by halves where the factor is a weight, which each would bring to its cores. No product
changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from t10.core.dtypes import numpy_dtype
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import Apply, Read, Scalar, visit
from t10.passes.fusion.arguments import argument_entries
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, Reshape, sources_of
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.normalize import drop_unit_axes
from t10.passes.read_graph import WEIGHT

Pieces = tuple[tuple[int, bool], ...]
"""The lengths of the parts of a concatenation, and which are negated."""


FEW_POINTS = 256
"""How many points a core computes that multiply by signs in the time in which it waits for one more operator."""


def move_signs(function: Any, graph: FusionGraph, n_cores: int) -> None:
    """Negate the smaller factor of products of which the other is a concatenation with negated parts."""
    weights = {number for number, entry in enumerate(argument_entries(function)) if WEIGHT in entry}
    mover = _Mover(graph, ViewMaker.of(function, graph), frozenset(weights))
    concats = [n for n in graph.nodes() if isinstance(n, Opaque) and n.op.name == "tensor.concat"]
    turned = [each for each in map(mover.turned, concats) if each is not None]
    n_points = sum(prod(nest.extents) for each in turned for nest in each.nests)
    for each in turned:
        mover.move_all(each, is_little=n_points <= FEW_POINTS * n_cores)


@dataclass(frozen=True, slots=True)
class _Turned:
    """A concatenation of which some parts are negated: what is, and what multiplies it by less.

    If it stacks them, `shown` is the reshape through which that reads it, with one dim for the last two.
    """

    node: Opaque
    pieces: Pieces
    sources: tuple[int, ...]
    nests: tuple[Nest, ...]
    shown: Reshape | None = None

    @property
    def value(self) -> int:
        """Return what the nests read."""
        return self.node.results[0] if self.shown is None else self.shown.result

    @property
    def dim(self) -> int:
        """Return the dim of that along which the pieces lie."""
        return _dim(self.node) - (self.shown is not None)


@dataclass(frozen=True, slots=True)
class _Mover:
    """Moves signs in a graph; `made` are factors with negated parts, by factor, dim and parts."""

    graph: FusionGraph
    views: ViewMaker
    weights: frozenset[int]
    made: dict[tuple[int, int, Pieces], int] = field(default_factory=dict[tuple[int, int, Pieces], int])

    def turned(self, node: Opaque) -> _Turned | None:
        """Return a concatenation with negated parts if all that reads it multiplies it by less, None for others."""
        graph, (result,) = self.graph, node.results
        parts = [value for value in node.operands if value is not None]
        negated = [self._negated(value) for value in parts]
        pieces = [
            (graph.shapes[p][_dim(node)], value is not None) for p, value in zip(parts, negated, strict=True)
        ]
        shown = graph.only_user(result)
        if isinstance(shown, Reshape) and _merges_last(shown, _dim(node)):
            pieces *= graph.shapes[result][-2]
        else:
            shown = None
        sources = [part if value is None else value for part, value in zip(parts, negated, strict=True)]
        found = _Turned(node, tuple(pieces), tuple(sources), (), shown)
        users = [graph.owners[user] for user in sorted(graph.users[found.value])]
        nests = [user for user in users if isinstance(user, Nest) and self._multiplies(user, found)]
        if len(nests) < len(users) or found.value in graph.outputs or all(value is None for value in negated):
            return None
        return replace(found, nests=tuple(nests))

    def move_all(self, turned: _Turned, *, is_little: bool) -> None:
        """Move the signs of a concatenation's parts into the factors; into what reads them where that is little."""
        graph, (result,), rank = self.graph, turned.node.results, turned.node.rank
        dim, shape = _dim(turned.node), graph.shapes[result]
        plain = graph.new_value(shape, graph.types[result])
        sources = [self._stacked(value, turned.shown) if turned.shown else value for value in turned.sources]
        self.views.concat(plain, tuple(sources), dim, rank)
        if turned.shown is not None:
            stacked, plain = plain, graph.new_value(graph.shapes[turned.value], graph.types[result])
            graph.add(replace(turned.shown, result=plain, source=stacked))
        for nest in turned.nests:
            self._move(nest, plain, turned, is_little=is_little)
        graph.remove_dead(turned.value)

    def _stacked(self, value: int, shown: Reshape) -> int:
        """Return a value with a last dim of extent 1, which it may have."""
        shape = self.graph.shapes[value]
        if shape[-1] == 1:
            return value
        made = self.graph.new_value((*shape, 1), self.graph.types[value])
        groups = (*((dim,) for dim in range(len(shape) - 1)), (len(shape) - 1, len(shape)))
        self.graph.add(Reshape(made, value, groups, True, shown.location, shown.rank))
        return made

    def _negated(self, value: int) -> int | None:
        """Return what a value has the other sign of, point for point; None where it has not, or others read it."""
        nest = self.graph.owner(value)
        if not isinstance(nest, Nest) or not nest.is_elementwise or self.graph.only_user(value) is None:
            return None
        body = nest.body
        if not isinstance(body, Apply) or body.opcode != "arith.negf" or nest.epilogue is not None:
            return None
        (source,) = body.operands
        if not isinstance(source, Read):
            return None
        shape, dims = self.graph.shapes[source.value], source.dims
        if (*shape, 1) == self.graph.shapes[value]:
            shape, dims = (*shape, 1), (*dims, ZERO)
        return source.value if (shape, dims) == (self.graph.shapes[value], nest.out_dims) else None

    def _multiplies(self, nest: Nest, turned: _Turned) -> bool:
        """Return whether an elementwise nest reads what is turned only to multiply it by less along its dim."""
        value = turned.value
        found = [node for node in visit(nest.body) if self._factor(node, value, turned.dim) is not None]
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

    def _move(self, nest: Nest, plain: int, turned: _Turned, *, is_little: bool) -> None:
        """Let a nest multiply what is `plain`, not turned, by factors with negated parts."""
        made: dict[int, Scalar] = {}
        for node in visit(nest.body):
            if not isinstance(node, Apply):
                made[id(node)] = node
                continue
            operands = tuple(made[id(operand)] for operand in node.operands)
            found = self._factor(node, turned.value, turned.dim)
            if found is not None:
                # A factor of other products as well keeps its sign there.
                one, other, along = found
                is_weight = bool(self.weights & sources_of(self.graph, other.value))
                if turned.shown is not None or (is_little and not is_weight):
                    signs = Read(self._signs(other.value, turned.pieces, nest), (other.dims[along],))
                    signed: Scalar = Apply("arith.mulf", (other, signs), node.dtype)
                else:
                    signed = Read(self._signed(other.value, along, turned.pieces, nest), other.dims)
                operands = (Read(plain, one.dims), signed)
            made[id(node)] = replace(node, operands=operands)
        self.graph.add(replace(nest, body=made[id(nest.body)]))

    def _signs(self, value: int, pieces: Pieces, reader: Nest) -> int:
        """Return -1 and 1, as the parts of a value are to be multiplied by: one reader's, which rest as it wants."""
        dtype = self.graph.types[value]
        signs = np.concatenate(
            [np.full(n, -1 if negated else 1, numpy_dtype(dtype)) for n, negated in pieces]
        )
        result = self.graph.new_value(signs.shape, dtype)
        self.views.constant(result, signs, reader.rank)
        return result

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


def _merges_last(reshape: Reshape, dim: int) -> bool:
    """Return whether a reshape makes one dim of `dim`, the last, and the one before, and leaves others as they are."""
    first, last = reshape.groups[:-1], reshape.groups[-1]
    return not reshape.expands and last == (dim - 1, dim) and all(len(group) == 1 for group in first)


def _dim(concat: Opaque) -> int:
    """Return the dim along which parts are put together."""
    return int(ir.IntegerAttr(concat.op.attributes["dim"]).value)
