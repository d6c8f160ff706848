"""Join elementwise operators that do the same to parts of one tensor, as rotary embeddings to queries and keys.

```
q = f(y[:, :N], c)        becomes        z = f(concat(y[:, :N], y[:, N:]), c)        q = z[:, :N], k = z[:, N:]
k = f(y[:, N:], c)
```

Each waits for an exchange of its own, and that is what small ones take.
"""

from __future__ import annotations

from math import prod
from typing import Any

from t10.dialect.elements import elements
from t10.dialect.mlir import ir
from t10.passes.bridge.tree import Index, Read, Scalar, visit
from t10.passes.fusion.graph import FusionGraph, Nest, Opaque, sources_of, with_leaves
from t10.passes.fusion.join_products import Member, dim_of, join_members, key_of
from t10.passes.fusion.make_views import ViewMaker

MOST_ELEMENTS = 4096
"""Of constants that are compared."""


def join_alike(function: Any, graph: FusionGraph) -> None:
    """Join operators of a function's graph."""
    groups: dict[tuple[Any, ...], list[Member]] = {}
    firsts = _equal_constants(graph)
    for nest in graph.nests():
        member = _member(graph, nest, firsts)
        if member is not None:
            groups.setdefault(member.key, []).append(member)
    views = ViewMaker.of(function, graph)
    for members in groups.values():
        if len(members) > 1:
            join_members(function, graph, views, members, [], frozenset())


def _equal_constants(graph: FusionGraph) -> dict[int, int]:
    """Return the first of equal small constants by each of them."""
    firsts: dict[tuple[Any, ...], int] = {}
    found: dict[int, int] = {}
    for node in graph.nodes():
        if not isinstance(node, Opaque) or node.op.name != "arith.constant":
            continue
        if not isinstance(node.op.results[0].type, ir.RankedTensorType):
            continue
        (value,) = node.results
        shape, dtype = graph.shapes[value], graph.types[value]
        values = elements(node.op.attributes["value"], dtype) if prod(shape) <= MOST_ELEMENTS else None
        if values is not None:
            found[value] = firsts.setdefault((shape, dtype, values.tobytes()), value)
    return found


def _member(graph: FusionGraph, nest: Nest, firsts: dict[int, int]) -> Member | None:
    """Return an operator as one that may be joined along an axis, None for others.

    All that it reads along that axis shows parts of the same values as what others read so: none waits for another.
    What it reads besides is the same for all, and there is some.
    """
    is_free = nest.forced is None and not nest.name and nest.epilogue is None
    if not nest.is_elementwise or nest.is_move or not is_free:
        return None

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Read):
            return Read(firsts.get(scalar.value, scalar.value), scalar.dims)
        return scalar

    for axis in range(len(nest.extents)):
        columns = [read for read in nest.all_reads if any(axis in dim.axes for dim in read.dims)]
        operands = tuple(dict.fromkeys(read.value for read in columns))
        dims = tuple(dim_of(read, axis) for value in operands for read in columns if read.value == value)
        is_each_once = len(dims) == len(operands) and all(dim >= 0 for dim in dims)
        if not 0 < len(operands) < len(nest.uses) or not is_each_once:
            continue
        if not any(isinstance(node, Index) and axis in node.form.axes for node in visit(nest.body)):
            shown = {root for value in operands for root in sources_of(graph, value)}
            key = (tuple(sorted(shown)), axis, *key_of(graph, with_leaves(nest, leaf), axis, operands))
            return Member(nest, axis, operands, dims, key)
    return None
