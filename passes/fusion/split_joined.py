"""Split products that read a cache and the rows that a step appends to it: `x * concat(past, new)`.

```
scores[i, j] = sum over d of q[i, d] * concat(past, new)[j, d]    = concat(q * past, q * new)
values[i, d] = sum over j of p[i, j] * concat(past, new)[j, d]    = p[:, :n] * past + p[:, n] * new
```

An input of the model lies as the operator wants it that reads it directly (`plan.assemble`). A concatenation lies
nowhere: all of the cache would be copied in every step, and take memory twice. Epilogues are split with their products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from t10.core.dtypes import size_bytes
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import Accumulated, Apply, Read, Scalar, reads, rewrite
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, is_product, with_leaves
from t10.passes.fusion.normalize import drop_unit_axes, over_axes

LEAST_RATIO = 8
"""So many rows of a cache, or more, for each that is appended."""
LEAST_BYTES = 1 << 22
"""Bytes of a cache from which on a copy takes longer than the phases of one more product, on an IPU Mk2."""


@dataclass(frozen=True, slots=True)
class _Joined:
    """A tensor that `op` joins along `dim` of an argument `past` of `n_past` rows and of `new`."""

    value: int
    past: int
    new: int
    dim: int
    n_past: int
    n_new: int


def split_joined(function: Any, graph: FusionGraph) -> None:
    """Split all products that read an input of the model joined with a few rows."""
    block = function.regions[0].blocks[0]
    splitter = _Splitter(graph, block)
    for nest in graph.nests():
        if nest.combine == "arith.addf" and is_product(nest):
            for joined, axis in _joined_reads(graph, nest, len(block.arguments)):
                splitter.split(nest, joined, axis)
                break
    graph.remove_dead()


def _joined_reads(graph: FusionGraph, nest: Nest, n_arguments: int) -> Iterator[tuple[_Joined, int]]:
    """Yield what a product reads that is joined, and the axis along which it was."""
    for read in reads(nest.body):
        joined = _joined(graph, read.value, n_arguments)
        if joined is None or len([each for each in nest.all_reads if each.value == read.value]) != 1:
            continue
        form = read.dims[joined.dim]
        if not form.is_simple:
            continue
        axis = form.terms[0].axis
        forms = [dim for each in nest.all_reads for dim in each.dims] + list(nest.out_dims)
        is_plain = all(dim.is_simple for dim in forms if axis in dim.axes)
        if is_plain and (nest.kinds[axis] == PARALLEL or joined.n_new == 1):
            yield joined, axis


def _joined(graph: FusionGraph, value: int, n_arguments: int) -> _Joined | None:
    """Return how a value is joined of an argument and a few rows, None where it is not."""
    owner = graph.owner(value)
    if not isinstance(owner, Opaque) or owner.op.name != "tensor.concat" or len(owner.operands) != 2:
        return None
    past, new = owner.operands
    if past is None or new is None or past >= n_arguments:
        return None
    dim = int(ir.IntegerAttr(owner.op.attributes["dim"]).value)
    n_past, n_new = graph.shapes[past][dim], graph.shapes[new][dim]
    n_bytes = prod(graph.shapes[past]) * size_bytes(graph.types[past])
    if n_past < LEAST_RATIO * n_new or n_bytes < LEAST_BYTES:
        return None
    return _Joined(value, past, new, dim, n_past, n_new)


class _Splitter:
    """Splits nests of a graph; operations that are made are written at the end of `block`, and cloned from there."""

    def __init__(self, graph: FusionGraph, block: Any) -> None:
        self.graph = graph
        self.end = ir.InsertionPoint(list(block.operations)[-1])

    def split(self, nest: Nest, joined: _Joined, axis: int) -> None:
        """Replace a product by one of what was there and one of what is new."""
        if nest.kinds[axis] != PARALLEL:
            self.graph.add(self._summed(nest, joined, axis))
            return
        parts = [
            self._part(nest, joined, axis, first, n)
            for first, n in ((0, joined.n_past), (joined.n_past, joined.n_new))
        ]
        dim = next(number for number, form in enumerate(nest.out_dims) if axis in form.axes)
        for part in parts:
            self.graph.add(part)
        self.graph.add(self._concat(nest.result, tuple(part.result for part in parts), dim, nest.rank))

    def _summed(self, nest: Nest, joined: _Joined, axis: int) -> Nest:
        """Return the product of what was there, behind which the one of the row that is new is added."""
        past = self._sliced(nest, joined, axis, 0, joined.n_past)
        new = self._sliced(nest, joined, axis, joined.n_past, 1)
        term = replace(new, epilogue=None, init=None)
        by_axis = [axis_dim(a) if a != axis else ZERO for a in range(len(nest.extents))]
        term = over_axes(term, by_axis, list(nest.extents), list(nest.kinds))
        total = Apply(nest.combine, (Accumulated(), term.body), nest.acc_type)

        def leaf(scalar: Scalar) -> Scalar:
            return total if isinstance(scalar, Accumulated) else scalar

        return replace(past, epilogue=rewrite(nest.epilogue or Accumulated(), leaf))

    def _part(self, nest: Nest, joined: _Joined, axis: int, first: int, n: int) -> Nest:
        """Return the nest over `n` points of an axis from `first` on, with a result of its own."""
        part = self._sliced(nest, joined, axis, first, n)
        shape = [
            n if axis in form.axes else extent
            for form, extent in zip(nest.out_dims, self.graph.shapes[nest.result], strict=True)
        ]
        return replace(part, result=self.graph.new_value(tuple(shape), self.graph.types[nest.result]))

    def _sliced(self, nest: Nest, joined: _Joined, axis: int, first: int, n: int) -> Nest:
        """Return the nest over `n` points of an axis from `first` on; it reads slices."""

        def leaf(scalar: Scalar) -> Scalar:
            if not isinstance(scalar, Read):
                return scalar
            value = scalar.value
            if value == joined.value:
                return Read(joined.new if first else joined.past, scalar.dims)
            for dim, form in enumerate(scalar.dims):
                if axis in form.axes:
                    value = self._slice(value, dim, first, n, nest.rank)
            return Read(value, scalar.dims)

        extents = tuple(n if a == axis else extent for a, extent in enumerate(nest.extents))
        part = replace(with_leaves(nest, leaf), extents=extents)
        return drop_unit_axes(part) if nest.kinds[axis] == PARALLEL else part

    def _slice(self, value: int, dim: int, first: int, n: int, rank: int) -> int:
        """Return `n` rows of a value from `first` on."""
        shape = list(self.graph.shapes[value])
        sizes, offsets = [*shape[:dim], n, *shape[dim + 1 :]], [0] * len(shape)
        offsets[dim] = first
        static = {"static_offsets": offsets, "static_sizes": sizes, "static_strides": [1] * len(shape)}
        attributes = {key: ir.DenseI64ArrayAttr.get(values) for key, values in static.items()}
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
        result = self.graph.new_value(tuple(sizes), self.graph.types[value])
        self._add("tensor.extract_slice", result, (value,), attributes, rank)
        return result

    def _concat(self, result: int, parts: tuple[int, ...], dim: int, rank: int) -> Opaque:
        attributes = {"dim": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)}
        return self._made("tensor.concat", result, parts, attributes, rank)

    def _add(self, name: str, result: int, sources: tuple[int, ...], attributes: Any, rank: int) -> None:
        self.graph.add(self._made(name, result, sources, attributes, rank))

    def _made(self, name: str, result: int, sources: tuple[int, ...], attributes: Any, rank: int) -> Opaque:
        """Return an operation on values; its operands in IR stand in for them."""
        stand_ins = [
            ir.Operation.create("tensor.empty", results=[self._type(value)], ip=self.end).results[0]
            for value in sources
        ]
        op = ir.Operation.create(
            name, results=[self._type(result)], operands=stand_ins, attributes=attributes, ip=self.end
        )
        return Opaque((result,), sources, op, rank)

    def _type(self, value: int) -> Any:
        return ir.RankedTensorType.get(list(self.graph.shapes[value]), ir.Type.parse(self.graph.types[value]))
