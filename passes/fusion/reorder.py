"""A `FusionGraph` whose tensors are stored in other orders: the dims of values are renamed, nothing is computed.

```
x[i, k] * w[k, j]              becomes        x[i, k] * w'[j, k]             w' is argument w, stored [j, k]
p[i, j] * v[j, d]                             p[i, j] * v'[d, j]             what makes v makes v' instead
```

Nests read and write through permuted index forms; reshapes, pads, slices and concatenations are done in the new order
where they can be. Otherwise, and where the matrix engine needs another order than a tensor has, a transpose is put in
between: a view, which is only ever read through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from t10.core.orders import Order, composed, given_order, permuted, relative
from t10.dialect.elements import elements
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.tree import Extract, Read, Scalar, reads
from t10.passes.fusion.arguments import argument_entries, set_argument_entries, set_shape
from t10.passes.fusion.demands import (
    DIM_ATTRIBUTES,
    follows_order,
    is_short_constant,
    relations_of,
    stored_tensors,
)
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Node, Opaque, Reshape, with_leaves
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.product_prices import Target
from t10.passes.fusion.views import fold_transposes
from t10.passes.read_graph import ORDER
from t10.plan.memory.storage import Product, Tensors
from t10.plan.memory.storage_choice import choose_orders


def reorder(function: Any, graph: FusionGraph, target: Target) -> None:
    """Choose the storage orders of a function's tensors for a target and rewrite graph and weights to them.

    The types of arguments change, weights and inputs alike, and `t10.order` says how: the host hands them over so.
    Arguments that have a layout keep their order, and so do results, which the host reads through views.
    """
    arguments = list(function.regions[0].blocks[0].arguments)
    fixed = {
        number
        for number, argument in enumerate(arguments)
        if not isinstance(argument.type, ir.RankedTensorType) or argument.type.encoding is not None
    }
    tensors = stored_tensors(graph, fixed)
    relations = relations_of(graph, tensors, target)
    orders = choose_orders(tensors, relations)
    products = {each.values[2]: each for each in relations if isinstance(each, Product)}
    _Rewriter(graph, ViewMaker.of(function, graph), tensors, orders, products).rewrite()
    fold_transposes(graph)
    _reorder_arguments(function, {n: orders[n] for n in range(len(arguments)) if n in orders})


def _reorder_arguments(function: Any, orders: Mapping[int, Order]) -> None:
    """Give arguments the types of what is stored, and say in which order that is."""
    changed = {number: order for number, order in orders.items() if order != given_order(len(order))}
    if not changed:
        return
    block = function.regions[0].blocks[0]
    entries = argument_entries(function)
    for number, order in changed.items():
        argument = block.arguments[number]
        set_shape(argument, permuted(ir.RankedTensorType(argument.type).shape, order))
        before = entries[number].get(ORDER)
        whole = order if before is None else composed(tuple(ir.DenseI64ArrayAttr(before)), order)
        entries[number].pop(ORDER, None)
        if whole != given_order(len(whole)):
            entries[number][ORDER] = ir.DenseI64ArrayAttr.get(list(whole))
    set_argument_entries(function, entries)


class _Rewriter:
    """Rewrites every node of a graph to the orders chosen; `views` are the transposes made, by value and order."""

    def __init__(
        self,
        graph: FusionGraph,
        made: ViewMaker,
        tensors: Tensors,
        orders: Mapping[int, Order],
        products: Mapping[int, Product],
    ) -> None:
        self.graph = graph
        self.made = made
        self.products = products
        self.tensors = tensors
        self.orders = orders
        self.shapes = dict(graph.shapes)
        self.views: dict[tuple[int, Order], int] = {}

    def rewrite(self) -> None:
        """Rewrite all nodes, then what the function returns."""
        nodes = self.graph.nodes()
        for value, order in self.orders.items():
            self.graph.shapes[value] = permuted(self.shapes[value], order)
        for node in nodes:
            if isinstance(node, Nest):
                self._nest(node)
            elif isinstance(node, Reshape):
                self._reshape(node)
            else:
                self._opaque(node)
        last = nodes[-1] if nodes else None
        if last is not None:
            self.graph.outputs = [
                self._in_order(value, self._given(value), last) for value in self.graph.outputs
            ]

    def _given(self, value: int) -> Order:
        return given_order(len(self.shapes[value]))

    def _order(self, value: int) -> Order:
        return self.orders.get(value, self._given(value))

    def _in_order(self, value: int, order: Order, reader: Node) -> int:
        """Return a value in an order of its given dims, through a transpose if it is not stored so."""
        stored = self._order(value)
        if stored == order:
            return value
        made = self.views.get((value, order))
        if made is None:
            made = self._transpose(value, relative(stored, order), reader)
            self.views[value, order] = made
        return made

    def _transpose(self, value: int, order: Order, reader: Node) -> int:
        """Add a view of a value with its dims, as they now stand, in another order."""
        made = self.graph.new_value(permuted(self.graph.shapes[value], order), self.graph.types[value])
        self._move(made, value, order, reader)
        return made

    def _move(self, result: int, source: int, order: Order, reader: Node) -> None:
        """Add the nest that makes `result` of `source`, its dims in another order."""
        shape = self.graph.shapes[result]
        forms = tuple(axis_dim(dim) for dim in range(len(shape)))
        self.graph.add(
            Nest(
                result=result,
                extents=shape,
                kinds=(PARALLEL,) * len(shape),
                body=Read(source, tuple(forms[order.index(dim)] for dim in range(len(order)))),
                out_dims=forms,
                acc_type=self.graph.types[result],
                location=reader.op.location if isinstance(reader, Opaque) else reader.location,
                rank=reader.rank,
                is_transpose=True,
            )
        )

    def _nest(self, nest: Nest) -> None:
        wanted = self._engine_orders(nest)

        def leaf(scalar: Scalar) -> Scalar:
            if isinstance(scalar, Read):
                order = wanted.get(id(scalar), self._order(scalar.value))
                source = self._in_order(scalar.value, order, nest)
                return Read(source, permuted(scalar.dims, order))
            if isinstance(scalar, Extract):
                return Extract(scalar.table, permuted(scalar.indices, self._order(scalar.table)))
            return scalar

        out_dims = permuted(nest.out_dims, self._order(nest.result))
        self.graph.add(replace(with_leaves(nest, leaf), out_dims=out_dims))

    def _engine_orders(self, nest: Nest) -> dict[int, Order]:
        """Return the orders in which the operands of a product are read."""
        product = self.products.get(nest.result)
        if product is None:
            return {}
        wanted = product.read_orders(self.orders, self.tensors)
        return {id(read): order for read, order in zip(reads(nest.body), wanted, strict=True)}

    def _reshape(self, node: Reshape) -> None:
        """Do a reshape in the new orders if it stays one; else in the given ones, between transposes."""
        long, short = (node.result, node.source) if node.expands else (node.source, node.result)
        groups = tuple(node.groups[group] for group in self._order(short))
        if tuple(dim for group in groups for dim in group) == self._order(long):
            sizes = [len(group) for group in groups]
            starts = [sum(sizes[:i]) for i in range(len(sizes))]
            renamed = tuple(tuple(range(s, s + n)) for s, n in zip(starts, sizes, strict=True))
            self.graph.add(replace(node, groups=renamed))
            return
        source = self._in_order(node.source, self._given(node.source), node)
        order = self._order(node.result)
        if order == self._given(node.result):
            self.graph.add(replace(node, source=source))
            return
        plain = self.graph.new_value(self.shapes[node.result], self.graph.types[node.result])
        self.graph.add(replace(node, result=plain, source=source))
        self._move(node.result, plain, order, node)

    def _constant(self, node: Opaque) -> None:
        """Keep a constant, or make another of its elements in the order that is wanted of it."""
        (result,) = node.results
        if self._order(result) == self._given(result):
            self.graph.add(node)
            return
        values = elements(node.op.attributes["value"], self.graph.types[result])
        assert values is not None
        self.made.constant(result, values.transpose(self._order(result)), node.rank)

    def _opaque(self, node: Opaque) -> None:
        """Do what can be done in any order in that of the result; anything else gets its operands as given."""
        if is_short_constant(self.graph, node):
            self._constant(node)
            return
        if not follows_order(self.graph, node):
            operands = tuple(
                value
                if value is None or not self.shapes[value]
                else self._in_order(value, self._given(value), node)
                for value in node.operands
            )
            self.graph.add(replace(node, operands=operands))
            return
        order = self._order(node.results[0])
        n_direct = len(node.op.operands)
        direct = tuple(self._in_order(v, order, node) for v in node.operands[:n_direct] if v is not None)
        is_given = order == self._given(node.results[0])
        self.graph.add(
            replace(node, operands=(*direct, *node.operands[n_direct:]), order=() if is_given else order)
        )


def reorder_dims(op: Any, order: Order) -> None:
    """Permute what an operation that goes through a change of order says per dim; its types are the caller's."""
    for key in DIM_ATTRIBUTES[op.name]:
        values = tuple(ir.DenseI64ArrayAttr(op.attributes[key]))
        op.attributes[key] = ir.DenseI64ArrayAttr.get(list(permuted(values, order)))
    if op.name == "tensor.concat":
        dim = int(ir.IntegerAttr(op.attributes["dim"]).value)
        op.attributes["dim"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), order.index(dim))
