"""Split what reads a cache and the rows that a step appends to it, so that the cache is read where it lies.

```
all = concat(past, new)             nothing reads `all`
s[i, j] = q[i, :] * all[j, :]       s1[i, j] = q[i, :] * past[j, :],  s2[i] = q[i, :] * new[0, :]
m[i] = max over j of s[i, j]        m[i] = max(max over j of s1[i, j], s2[i])
p[i, j] = exp(s[i, j] - m[i])       p1[i, j] = exp(s1[i, j] - m[i]),  p2[i] = exp(s2[i] - m[i])
y[i, d] = p[i, :] * all[:, d]       y[i, d] = p1[i, :] * past[:, d] + p2[i] * new[0, d]
```

What is little, as `p2`, its readers compute anew (`merge.recompute`): an operator of its own would wait for exchanges.

An input of the model lies as the operator wants it that reads it directly (`plan.assemble`). A concatenation lies
nowhere: all of the cache would be copied in every step, and take memory twice. What cannot be split reads both joined.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from t10.core.dtypes import size_bytes
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import Accumulated, Apply, Read, Scalar, reads, rewrite
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, is_product, with_leaves
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.merge import MAX_READS, recompute
from t10.passes.fusion.normalize import drop_unit_axes, over_axes

LEAST_RATIO = 8
"""So many rows of a cache, or more, for each that is appended."""
LEAST_BYTES = 1 << 22
"""Bytes of a cache from which on a copy takes longer than the phases of what is split off, on an IPU Mk2."""


@dataclass(frozen=True, slots=True)
class _Joined:
    """A tensor that is joined along `dim` of `past` and of `new`, `n_past` and `n_new` rows."""

    past: int
    new: int
    dim: int
    n_past: int
    n_new: int


def split_joined(function: Any, graph: FusionGraph) -> None:
    """Split products that read an input of the model joined with a few rows, and what reads their results."""
    n_arguments = len(function.regions[0].blocks[0].arguments)
    splitter = _Splitter(graph, ViewMaker.of(function, graph), n_arguments)
    for nest in graph.nests():
        splitter.visit(nest)
    graph.remove_dead()
    recompute(graph, splitter.rows)


@dataclass(slots=True)
class _Splitter:
    """Splits nests of a graph in order; `made` are values that were split: their readers are, too.

    `rows` are the results of what was split off.
    """

    graph: FusionGraph
    views: ViewMaker
    n_arguments: int
    made: set[int] = field(default_factory=set[int])
    rows: list[int] = field(default_factory=list[int])

    def visit(self, nest: Nest) -> None:
        """Split a nest along what it reads that is joined, if there is such and it can be."""
        for read in nest.all_reads:
            joined = self._joined(read.value)
            if joined is None or not (read.value in self.made or self._is_cache(nest, read, joined)):
                continue
            form = read.dims[joined.dim]
            if form.is_simple and self._can_split(nest, joined, form.terms[0].axis):
                self._split(nest, joined, form.terms[0].axis)
                return

    def _joined(self, value: int) -> _Joined | None:
        """Return how a value is joined of two, None where it is not."""
        owner = self.graph.owner(value)
        if not isinstance(owner, Opaque) or owner.op.name != "tensor.concat" or len(owner.operands) != 2:
            return None
        past, new = owner.operands
        if past is None or new is None:
            return None
        dim = int(ir.IntegerAttr(owner.op.attributes["dim"]).value)
        return _Joined(past, new, dim, self.graph.shapes[past][dim], self.graph.shapes[new][dim])

    def _is_cache(self, nest: Nest, read: Read, joined: _Joined) -> bool:
        """Return whether a product reads a large input of the model joined with a few rows."""
        shape = self.graph.shapes[joined.past]
        return (
            nest.combine == "arith.addf"
            and is_product(nest)
            and any(each is read for each in reads(nest.body))
            and joined.past < self.n_arguments
            and joined.n_past >= LEAST_RATIO * joined.n_new
            and prod(shape) * size_bytes(self.graph.types[joined.past]) >= LEAST_BYTES
        )

    def _can_split(self, nest: Nest, joined: _Joined, axis: int) -> bool:
        """Return whether an axis is an index by itself wherever it occurs, and a sum along it can go on behind it."""
        forms = [dim for read in nest.all_reads for dim in read.dims] + list(nest.out_dims)
        if nest.is_gather or not all(dim.is_simple for dim in forms if axis in dim.axes):
            return False
        n_reads = len(nest.all_reads) + len(reads(nest.body))
        return nest.kinds[axis] == PARALLEL or (joined.n_new == 1 and n_reads <= MAX_READS)

    def _split(self, nest: Nest, joined: _Joined, axis: int) -> None:
        if nest.kinds[axis] != PARALLEL:
            self.graph.add(self._continued(nest, joined, axis))
            return
        places = ((0, joined.n_past), (joined.n_past, joined.n_new))
        parts = [self._part(nest, axis, first, n) for first, n in places]
        dim = next(number for number, form in enumerate(nest.out_dims) if axis in form.axes)
        for part in parts:
            self.graph.add(part)
        self.views.concat(nest.result, tuple(part.result for part in parts), dim, nest.rank)
        self.made.add(nest.result)
        self.rows.append(parts[1].result)

    def _continued(self, nest: Nest, joined: _Joined, axis: int) -> Nest:
        """Return the reduction of what was there, combined behind it with the row that is new."""
        past = self._sliced(nest, axis, 0, joined.n_past)
        new = replace(self._sliced(nest, axis, joined.n_past, 1), epilogue=None, init=None)
        by_axis = [axis_dim(a) if a != axis else ZERO for a in range(len(nest.extents))]
        term = over_axes(new, by_axis, list(nest.extents), list(nest.kinds)).body
        total = Apply(nest.combine, (Accumulated(), term), nest.acc_type)

        def leaf(scalar: Scalar) -> Scalar:
            return total if isinstance(scalar, Accumulated) else scalar

        return replace(past, epilogue=rewrite(nest.epilogue or Accumulated(), leaf))

    def _part(self, nest: Nest, axis: int, first: int, n: int) -> Nest:
        """Return the nest over `n` points of a parallel axis from `first` on, with a result of its own."""
        shape = [
            n if axis in form.axes else extent
            for form, extent in zip(nest.out_dims, self.graph.shapes[nest.result], strict=True)
        ]
        result = self.graph.new_value(tuple(shape), self.graph.types[nest.result])
        return drop_unit_axes(replace(self._sliced(nest, axis, first, n), result=result))

    def _sliced(self, nest: Nest, axis: int, first: int, n: int) -> Nest:
        """Return the nest over `n` points of an axis from `first` on, of what it reads there."""

        def leaf(scalar: Scalar) -> Scalar:
            if not isinstance(scalar, Read):
                return scalar
            value = scalar.value
            for dim, form in enumerate(scalar.dims):
                if axis in form.axes:
                    value = self._slice(value, dim, first, n, nest.rank)
            return Read(value, scalar.dims)

        extents = tuple(n if a == axis else extent for a, extent in enumerate(nest.extents))
        return replace(with_leaves(nest, leaf), extents=extents)

    def _slice(self, value: int, dim: int, first: int, n: int, rank: int) -> int:
        """Return `n` rows of a value from `first` on: one of two that are joined there, else a slice."""
        joined = self._joined(value)
        if joined is not None and joined.dim == dim:
            if (first, n) == (0, joined.n_past):
                return joined.past
            if (first, n) == (joined.n_past, joined.n_new):
                return joined.new
        return self.views.slice(value, dim, first, n, rank)
