"""Means and variances of rows of f16 as one operator, whose cores exchange both sums at once.

```
m = sum of x / n                                      s[0] = sum of x / n,  s[1] = sum of x^2 / n
v = f(sum of (x - m)^2 / n)          becomes
y = (x - m) * v                                       y = (x - s[0]) * f(max(s[1] - s[0]^2, 0))
```

Squares of f16 are exact in f32, and sums are f32: the variance is off by up to about root n 2^-24 s[1]. Where the mean
is far from 0 two passes lose less, so this is for partial sums that may be rounded (`docs/numerics.md`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from t10.core.scalar import parse_constant
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.tree import Accumulated, Apply, Constant, Index, Read, Scalar, visit
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Reshape, with_leaves
from t10.passes.fusion.make_views import ViewMaker

F32 = "f32"


@dataclass(frozen=True, slots=True)
class _Moments:
    """The mean and the variance of the same rows; `spread` is what the second makes of a variance."""

    mean: Nest
    variance: Nest

    @property
    def n(self) -> int:
        """Return the elements of a row."""
        return prod(n for n, kind in zip(self.mean.extents, self.mean.kinds, strict=True) if kind != PARALLEL)

    def spread(self, variance: Scalar) -> Scalar:
        """Return what the second makes of a variance."""
        memo: dict[int, Scalar] = {}

        def made(node: Scalar) -> Scalar:
            if isinstance(node, Accumulated):
                return Apply("arith.mulf", (variance, Constant(repr(float(self.n)), F32)), F32)
            if not isinstance(node, Apply):
                return node
            if id(node) not in memo:
                found = replace(node, operands=tuple([made(each) for each in node.operands]))
                memo[id(node)] = variance if _is_mean(node, self.n) else found
            return memo[id(node)]

        return made(self.variance.epilogue or Accumulated())


def join_moments(function: Any, graph: FusionGraph) -> None:
    """Join means and variances of a function's graph."""
    views = ViewMaker.of(function, graph)
    for result in [nest.result for nest in graph.nests()]:
        nest = graph.owners.get(result)
        found = _found(graph, nest) if isinstance(nest, Nest) else None
        if found is not None:
            _join(graph, views, found)


def _found(graph: FusionGraph, nest: Nest) -> _Moments | None:
    """Return the moments of which a nest is the variance, None for others."""
    body = nest.body
    is_square = (
        isinstance(body, Apply) and body.opcode == "arith.mulf" and body.operands[0] is body.operands[1]
    )
    if not (_is_sum(nest) and is_square):
        return None
    assert isinstance(body, Apply)
    centred = body.operands[0]
    if not (isinstance(centred, Apply) and centred.opcode == "arith.subf"):
        return None
    x, centre = centred.operands
    mean = graph.owners.get(centre.value) if isinstance(centre, Read) else None
    if not (isinstance(mean, Nest) and isinstance(centre, Read) and _is_sum(mean)):
        return None
    found = _Moments(mean, nest)
    is_one = _element(graph, x) is not None and _element(graph, x) == _element(graph, mean.body)
    is_alike = (mean.extents, mean.kinds, mean.out_dims) == (nest.extents, nest.kinds, nest.out_dims)
    is_own = centre.dims == nest.out_dims and mean.epilogue is not None and _is_mean(mean.epilogue, found.n)
    return found if is_one and is_alike and is_own and _may_spread(graph, nest) else None


def _is_sum(nest: Nest) -> bool:
    return nest.combine == "arith.addf" and nest.acc_type == F32 and nest.forced is None and not nest.name


def _element(graph: FusionGraph, scalar: Scalar) -> tuple[Any, ...] | None:
    """Return which element of f16 a scalar widens, None for others."""
    if isinstance(scalar, Apply) and scalar.opcode == "arith.extf":
        (read,) = scalar.operands
        if isinstance(read, Read) and graph.types[read.value] == "f16":
            return read.value, read.dims
    return None


def _is_mean(scalar: Scalar, n: int) -> bool:
    """Return whether a scalar is a sum of n terms, divided by n."""
    if not isinstance(scalar, Apply) or scalar.opcode not in ("arith.divf", "arith.mulf"):
        return False
    total, by = scalar.operands
    if not (isinstance(total, Accumulated) and isinstance(by, Constant)):
        return False
    value = float(parse_constant(by.text))
    return value == n if scalar.opcode == "arith.divf" else abs(value * n - 1) < 2**-20


def _is_along_rows(nest: Nest) -> bool:
    """Return whether a reduction adds up neighbours in memory."""
    last = [axis for read in nest.all_reads for axis in read.dims[-1].axes]
    return all(nest.kinds[axis] != PARALLEL for axis in last)


def _may_spread(graph: FusionGraph, nest: Nest) -> bool:
    """Return whether what reads a variance can compute it: each of these is elementwise, and nothing else is read."""
    readers = [graph.owners[user] for user in graph.users[nest.result]]
    leaves = visit(nest.epilogue or Accumulated())
    is_plain = not any(isinstance(node, Read | Index) for node in leaves)
    is_read = bool(readers) and nest.result not in graph.outputs
    return is_plain and is_read and all(isinstance(each, Nest) and each.is_elementwise for each in readers)


def _join(graph: FusionGraph, views: ViewMaker, found: _Moments) -> None:
    """Make both sums results of one operator, and let what reads the variance compute it of them."""
    mean, axis = found.mean, len(found.mean.extents)
    shape = graph.shapes[mean.result]
    rank = len(shape)
    # Across columns, neighbours in the result are those in x.
    place = rank if _is_along_rows(mean) else 0
    result = graph.new_value((*shape[:place], 2, *shape[place:]), F32)
    square = Apply("arith.mulf", (mean.body, mean.body), F32)
    is_first = Apply("arith.cmpi", (Index(axis_dim(axis)), Constant("0", "index")), "i1", "eq")
    both = replace(
        mean,
        result=result,
        extents=(*mean.extents, 2),
        kinds=(*mean.kinds, PARALLEL),
        body=Apply("arith.select", (is_first, mean.body, square), F32),
        out_dims=(*mean.out_dims[:place], axis_dim(axis), *mean.out_dims[place:]),
    )
    pair = min(place, rank - 1)
    groups = (
        *((dim,) for dim in range(pair)),
        (pair, pair + 1),
        *((dim + 1,) for dim in range(pair + 1, rank)),
    )
    parts = [views.slice(result, place, number, 1, mean.rank) for number in range(2)]
    squares = graph.new_value(shape, F32)

    def spread(node: Scalar) -> Scalar:
        if not (isinstance(node, Read) and node.value == found.variance.result):
            return node
        centre = Read(mean.result, node.dims)
        product = Apply("arith.mulf", (centre, centre), F32)
        less = Apply("arith.subf", (Read(squares, node.dims), product), F32)
        return found.spread(Apply("arith.maximumf", (less, Constant("0.0", F32)), F32))

    for user in sorted(graph.users[found.variance.result]):
        reader = graph.owners[user]
        assert isinstance(reader, Nest)
        graph.add(with_leaves(reader, spread))
    graph.remove_dead(found.variance.result)
    graph.add(both)
    for made, part in zip((mean.result, squares), parts, strict=True):
        graph.add(Reshape(made, part, groups if shape else (), False, mean.location, mean.rank))
