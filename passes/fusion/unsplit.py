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

    shape = graph.shapes[nest.result]
    n = nest.extents[axis] * nest.extents[axis + 1]
    made = graph.new_value((*shape[: places[0]], n, *shape[places[1] + 1 :]), graph.types[nest.result])
    whole = replace(
        with_leaves(nest, leaf),
        result=made,
        extents=(*nest.extents[:axis], n, *nest.extents[axis + 2 :]),
        kinds=(*nest.kinds[: axis + 1], *nest.kinds[axis + 2 :]),
        out_dims=_merged(nest.out_dims, places, by_axis),
    )
    groups = tuple(
        places if dim == places[0] else (dim + (dim > places[0]),) for dim in range(len(shape) - 1)
    )
    return Unsplit(whole, Reshape(nest.result, made, groups, True, nest.location, nest.rank))


def _asks(dim: AffineDim, axis: int) -> bool:
    return bool({axis, axis + 1} & set(dim.axes))


def _places(dims: Sequence[AffineDim], axis: int) -> tuple[int, int] | None:
    """Return the two dims, one behind the other, that an axis and the next index alone; None where it is not so."""
    asked = [place for place, dim in enumerate(dims) if _asks(dim, axis)]
    if len(asked) != 2 or asked[1] != asked[0] + 1:
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
    if len(graph.users[read.value]) > 1 or [group for group in source.groups if len(group) > 1] != [places]:
        return None
    return Read(source.source, _merged(read.dims, places, by_axis))


def _merged(
    dims: Sequence[AffineDim], places: tuple[int, int], by_axis: list[AffineDim]
) -> tuple[AffineDim, ...]:
    """Return an index with one dim instead of two."""
    kept = [dim for place, dim in enumerate(dims) if place != places[1]]
    return tuple(compose(dim, by_axis) if dim.terms else ZERO for dim in kept)
