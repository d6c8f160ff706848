"""Weights stored in the blocks that the matrix engine loads, which then needs no new address for every column.

```
x[i, k] * w[j, k]        becomes        x'[i, p, q] * w'[p, j, q]        k = 16 p + q; x' is a view of x
```

So stand weights that one product reads as blocks of its columns while the other input streams: the inner axis of the
result is theirs. The host reorders them. Where few rows stream, the engine takes the weights as rows instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from t10.core.dtypes import size_bytes
from t10.core.orders import Order, given_order, permuted
from t10.core.products import BLOCK_BYTES
from t10.dialect.mlir import ir
from t10.passes.bridge.tree import Read, Scalar, reads
from t10.passes.fusion.arguments import argument_entries, set_argument_entries, set_shape
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, is_product, with_leaves
from t10.passes.fusion.reshapes import can_split, split_axes
from t10.passes.read_graph import ORDER, SPLIT, WEIGHT

LEAST_ROWS = 32
"""Rows from which on weights are stored in blocks: twice those that the engine takes as columns."""
TYPES = frozenset({"f16", "f32"})


@dataclass(frozen=True, slots=True)
class _Blocked:
    """A product whose weights (an argument) can be stored in blocks along the summed `axis`.

    `column` is the dim of the weights along the columns.
    """

    nest: Nest
    weights: int
    axis: int
    column: int


def block_weights(function: Any, graph: FusionGraph) -> None:
    """Store weights of products in blocks: their arguments have the new type, and `t10.split` and `t10.order` say how.

    Run again it changes nothing: what is in blocks has a last dim of one.
    """
    arguments = function.regions[0].blocks[0].arguments
    free = {
        number
        for number, entry in enumerate(argument_entries(function))
        if WEIGHT in entry
        and SPLIT not in entry
        and len(graph.users.get(number, ())) == 1
        and number not in graph.outputs
        and ir.RankedTensorType(arguments[number].type).encoding is None
    }
    for nest in graph.nests():
        found = _blocked(graph, nest, free)
        if found is not None:
            order = _rewrite(graph, found)
            _reorder_argument(function, found.weights, graph.shapes[found.weights], order)


def _blocked(graph: FusionGraph, nest: Nest, free: set[int]) -> _Blocked | None:
    """Return a product of weights that are `free` and can stand in blocks, None for any other nest."""
    found = reads(nest.body) if is_product(nest) and nest.combine == "arith.addf" else []
    own = [read for read in found if read.value in free]
    if len(found) != 2 or len(own) != 1 or any(graph.types[read.value] not in TYPES for read in found):
        return None
    (w,) = own
    (x,) = [read for read in found if read is not w]
    if not x.dims or not x.dims[-1].is_simple or not all(dim.is_simple for dim in w.dims):
        return None
    axis, of_x = w.dims[-1].axes[0], {axis for dim in x.dims for axis in dim.axes}
    of_w = [dim.axes[0] for dim in w.dims]
    columns = [each for each in of_w if each not in of_x]
    rows = [each for each in of_x if each not in of_w and nest.kinds[each] == PARALLEL]
    n, depth = nest.extents[axis], BLOCK_BYTES // size_bytes(graph.types[w.value])
    is_along = nest.kinds[axis] != PARALLEL and x.dims[-1].axes == (axis,) and n % depth == 0 and n > depth
    is_stationary = len(columns) == 1 and nest.out_dims[-1].axes == (columns[0],)
    has_rows = prod(nest.extents[each] for each in rows) >= LEAST_ROWS
    if not (is_along and is_stationary and has_rows and can_split(nest, {axis: (n // depth, depth)})):
        return None
    return _Blocked(nest, w.value, axis, of_w.index(columns[0]))


def _rewrite(graph: FusionGraph, found: _Blocked) -> Order:
    """Split the summed axis of a product, and let it read its weights with columns before what is in a block.

    Return the order of the dims that weights whose last dim is split have then.
    """
    depth = BLOCK_BYTES // size_bytes(graph.types[found.weights])
    split = {found.axis: (found.nest.extents[found.axis] // depth, depth)}
    before = set(graph.shapes)
    expanded, _ = split_axes(graph, found.nest, split)
    (reshaped,) = {user for user in graph.users[found.weights] if user not in before}
    rank = len(graph.shapes[reshaped])
    moved = (found.column, rank - 1)
    order = (*(dim for dim in range(rank) if dim not in moved), *moved)

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Read) and scalar.value == reshaped:
            return Read(found.weights, permuted(scalar.dims, order))
        return scalar

    graph.add(with_leaves(expanded, leaf))
    graph.shapes[found.weights] = permuted(graph.shapes[reshaped], order)
    graph.remove_dead(reshaped)
    return order


def _reorder_argument(function: Any, number: int, shape: tuple[int, ...], order: Order) -> None:
    """Give an argument its type, and say of the host's dims which is split, and the order of all then."""
    set_shape(function.regions[0].blocks[0].arguments[number], shape)
    entries = argument_entries(function)
    entry = entries[number]
    before = tuple(ir.DenseI64ArrayAttr(entry[ORDER])) if ORDER in entry else given_order(len(shape) - 1)
    last = before[-1]
    halves = (*(dim + (dim > last) for dim in before[:-1]), last, last + 1)
    entry[ORDER] = ir.DenseI64ArrayAttr.get(list(permuted(halves, order)))
    entry[SPLIT] = ir.DenseI64ArrayAttr.get([last, shape[-1]])
    set_argument_entries(function, entries)
