"""Products whose columns were split into heads, written over whole columns again.

```
w: 64x4x16 = expand(weight: 64x64)                         c[i, n] = sum over k of x[i, k] * weight[k, n]
q[i, h, d] = sum over k of x[i, k] * w[k, h, d]   becomes  q: 8x4x16 = expand(c: 8x64)
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from t10.core.expression import AffineDim
from t10.passes.bridge.affine import ZERO, axis_dim, compose
from t10.passes.bridge.tree import Index, Read, Scalar, visit
from t10.passes.fusion.graph import FusionGraph, Nest, Reshape, with_leaves


@dataclass(frozen=True, slots=True)
class Unsplit:
    """A nest over whole columns, whose result `back` splits into the value that it made."""

    nest: Nest
    back: Reshape


def unsplit(graph: FusionGraph, nest: Nest, axis: int) -> Unsplit | None:
    """Return a nest with an axis and the one behind it as one; None where something asks for one of them alone.

    What the nest reads along them must have been split for it. Nothing in the graph changes but for a new value.
    """
    by_axis = [axis_dim(a - (a > axis)) for a in range(len(nest.extents))]
    found = {id(read): _whole(graph, read, axis, by_axis) for read in nest.all_reads}
    places = _places(nest.out_dims, axis)
    indices = [node for part in nest.parts for node in visit(part) if isinstance(node, Index)]
    if places is None or None in found.values() or any(_asks(node.form, axis) for node in indices):
        return None

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Index):
            return Index(compose(scalar.form, by_axis))
        return (found[id(scalar)] or scalar) if isinstance(scalar, Read) else scalar

    n = nest.extents[axis] * nest.extents[axis + 1]
    whole = replace(
        with_leaves(nest, leaf),
        extents=(*nest.extents[:axis], n, *nest.extents[axis + 2 :]),
        kinds=(*nest.kinds[: axis + 1], *nest.kinds[axis + 2 :]),
        out_dims=_merged(nest.out_dims, places, by_axis),
    )
    return without_units(graph, whole, places)


def without_units(graph: FusionGraph, nest: Nest, whole: tuple[int, int] = (0, 0)) -> Unsplit:
    """Return a nest whose result has only dims that axes index, and what makes of that the value of before.

    That has the dims from the first to the last of `whole` where the nest has one.
    """
    first, last = whole
    shape = tuple(nest.extents[dim.terms[0].axis] for dim in nest.out_dims if dim.terms)
    ends: list[int] = []
    end = 0
    for place, dim in enumerate(nest.out_dims):
        end += 1 + (last - first if place == first else 0)
        if dim.terms:
            ends.append(end)
    ends[-1] = end
    groups = tuple(tuple(range(*each)) for each in zip([0, *ends], ends, strict=False))
    made = graph.new_value(shape, graph.types[nest.result])
    kept = tuple(dim for dim in nest.out_dims if dim.terms)
    back = Reshape(nest.result, made, groups, True, nest.location, nest.rank)
    return Unsplit(replace(nest, result=made, out_dims=kept), back)


def _asks(dim: AffineDim, axis: int) -> bool:
    return bool({axis, axis + 1} & set(dim.axes))


def _places(dims: Sequence[AffineDim], axis: int) -> tuple[int, int] | None:
    """Return the two dims that an axis and the next index alone, with none but units between; None if it is not so."""
    asked = [place for place, dim in enumerate(dims) if _asks(dim, axis)]
    if len(asked) != 2 or any(dim.terms or dim.offset for dim in dims[asked[0] + 1 : asked[1]]):
        return None
    first, second = dims[asked[0]], dims[asked[1]]
    are_alone = (first, second) == (axis_dim(axis), axis_dim(axis + 1))
    return (asked[0], asked[1]) if are_alone else None


def _whole(graph: FusionGraph, read: Read, axis: int, by_axis: list[AffineDim]) -> Read | None:
    """Return a read over whole columns: of what was split; None where it was not."""
    if not any(_asks(dim, axis) for dim in read.dims):
        return Read(read.value, tuple(compose(dim, by_axis) for dim in read.dims))
    places, source = _places(read.dims, axis), graph.owner(read.value)
    if places is None or not isinstance(source, Reshape) or not source.expands:
        return None
    if len(graph.users[read.value]) > 1 or not _splits(source, places):
        return None
    return Read(source.source, _merged(read.dims, places, by_axis))


def _splits(reshape: Reshape, places: tuple[int, int]) -> bool:
    """Return whether a reshape splits one dim, into those from the first of two places to the second."""
    first, last = places
    return [group for group in reshape.groups if len(group) > 1] == [tuple(range(first, last + 1))]


def _merged(
    dims: Sequence[AffineDim], places: tuple[int, int], by_axis: list[AffineDim]
) -> tuple[AffineDim, ...]:
    """Return an index with one dim instead of two and what is between them."""
    kept = [dim for place, dim in enumerate(dims) if not places[0] < place <= places[1]]
    return tuple(compose(dim, by_axis) if dim.terms else ZERO for dim in kept)
