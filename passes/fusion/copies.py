"""Results of products copied to another order of dims, where reading them through transposes takes longer.

```
y[n, m] = sum over k of w[n, k] * x[m, k]             z[m, n] = y[n, m], an operator
q[m, j] = y[j, m]                          becomes    q = z[:, :J]
k[m, j] = y[J + j, m]                                 k = z[:, J:]
```

The engine is fastest where few rows come innermost in its result, its readers where the axis they sum along does. An
exchange that turns one into the other gathers and scatters elements of two bytes, for every reader again; a core that
turns what it has computed moves whole rows behind that.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.expression import AffineDim
from t10.core.orders import given_order, inverse, permuted
from t10.dialect.location import location_name
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import ZERO, axis_dim
from t10.passes.bridge.tree import Read
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, Reshape, is_product, kind_of
from t10.passes.fusion.make_views import ViewMaker

HALF_WORD = 2
"""Bytes of elements that exchanges gather and scatter: longer ones are whole words."""
STEP_CYCLES = 250
"""About what a step takes beside its elements."""


@dataclass(frozen=True, slots=True)
class _Turned:
    """A transpose of `n` rows from `first` on, along `dim`, of `source`: what a product makes, perhaps reshaped."""

    view: Nest
    product: Nest
    order: tuple[int, ...]
    source: int
    dim: int
    first: int
    n: int


def copy_turned(function: Any, graph: FusionGraph, chip: ChipSpec) -> None:
    """Copy what products make where that pays on a chip, once for all parts that are read in one order."""
    groups: dict[tuple[int, tuple[int, ...], int], list[_Turned]] = {}
    for nest in graph.nests():
        turned = _turned(graph, nest)
        if turned is not None:
            groups.setdefault((turned.source, turned.order, turned.dim), []).append(turned)
    views = ViewMaker.of(function, graph)
    n_copies = Counter[str]()
    for members in groups.values():
        if _pays(graph, chip, members):
            product = members[0].product
            base = product.name or location_name(product.location) or kind_of(product)
            n_copies[base] += 1
            number = n_copies[base]
            _copy(graph, views, members, f"{base}.copy" if number == 1 else f"{base}.copy_{number}")


def _turned(graph: FusionGraph, nest: Nest) -> _Turned | None:
    """Return what a transpose shows of a product that operators read; None of anything else."""
    if not nest.is_transpose or not isinstance(nest.body, Read):
        return None
    source = nest.body.value
    shape = graph.shapes[source]
    order = _order(nest, nest.body.dims, shape)
    if order is None or _innermost(shape) == _innermost([shape[dim] for dim in order], order):
        return None
    part = _part(graph, source) or (source, 0, 0, shape[0])
    made = source
    while not isinstance(product := graph.owner(made), Nest):
        before = product.source if isinstance(product, Reshape) else (_part(graph, made) or (None,))[0]
        if before is None:
            return None
        made = before
    return _Turned(nest, product, order, *part) if is_product(product) else None


def _part(graph: FusionGraph, value: int) -> tuple[int, int, int, int] | None:
    """Return of what a value is a slice along one dim, that dim, its first row and how many; None of no such slice."""
    owner = graph.owner(value)
    if not isinstance(owner, Opaque) or owner.op.name != "tensor.extract_slice":
        return None
    source, *computed = owner.operands
    if source is None or computed:
        return None
    offsets, strides = (
        tuple(ir.DenseI64ArrayAttr(owner.op.attributes[key])) for key in ("static_offsets", "static_strides")
    )
    whole, shape = graph.shapes[source], graph.shapes[value]
    if len(whole) != len(shape) or set(strides) != {1}:
        return None
    cut = [dim for dim, n in enumerate(whole) if n != shape[dim]]
    if len(cut) != 1:
        return None
    first = permuted(offsets, owner.order or given_order(len(shape)))[cut[0]]
    return source, cut[0], first, shape[cut[0]]


def _order(nest: Nest, dims: tuple[AffineDim, ...], shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return which dim of its source each dim of a transpose is; None where it is not all of the source."""
    where = {form.terms[0].axis: dim for dim, form in enumerate(nest.out_dims) if form.terms}
    found = [where.get(form.terms[0].axis) if form.is_simple else None for form in dims]
    if len(nest.out_dims) != len(shape) or any(
        place is None and n != 1 for place, n in zip(found, shape, strict=True)
    ):
        return None
    free = iter(sorted(set(range(len(shape))) - set(found)))
    return inverse(tuple(next(free) if place is None else place for place in found))


def _innermost(shape: Any, order: tuple[int, ...] | None = None) -> int | None:
    """Return the last dim of more than one element, as `order` numbers them."""
    dims = [dim for dim, n in enumerate(shape) if n > 1]
    if not dims:
        return None
    return dims[-1] if order is None else order[dims[-1]]


def _readers(graph: FusionGraph, value: int) -> int:
    """Return how many operators read a value, reshapes looked through."""
    n = 0
    for user in graph.users[value]:
        node = graph.owners[user]
        n += _readers(graph, user) if isinstance(node, Reshape) else isinstance(node, Nest)
    return n


def _pays(graph: FusionGraph, chip: ChipSpec, members: list[_Turned]) -> bool:
    """Return whether a copy is estimated to take less than reading through transposes.

    Of a transposed view a core gathers all that it holds, and scatters about half as much, for every operator that
    reads it: a cycle per byte. A copy waits for one exchange, and takes about two cycles per byte that a core copies.
    """
    product = members[0].product.result
    if size_bytes(graph.types[product]) != HALF_WORD:
        return False
    first, end = _region(members)
    held = prod(graph.shapes[product]) * HALF_WORD / chip.n_cores
    source = graph.shapes[members[0].source]
    copied = prod(source) * HALF_WORD / chip.n_cores * (end - first) / source[members[0].dim]
    reads = sum(_readers(graph, each.view.result) for each in members)
    reading = reads * (2 * chip.copy_launch_cycles + 1.5 * held)
    copying = chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles + STEP_CYCLES + 2 * copied
    return reading > copying


def _region(members: list[_Turned]) -> tuple[int, int]:
    """Return the first row that any of the parts shows, and the one behind the last."""
    return min(each.first for each in members), max(each.first + each.n for each in members)


def _copy(graph: FusionGraph, views: ViewMaker, members: list[_Turned], name: str) -> None:
    """Make all parts slices of one copy of a name."""
    product, order, dim = members[0].product, members[0].order, members[0].dim
    first, end = _region(members)
    source = members[0].source
    if end - first < graph.shapes[source][dim]:
        source = views.slice(source, dim, first, end - first, product.rank)
    shape = tuple(graph.shapes[source][d] for d in order)
    forms: list[AffineDim] = []
    for n in shape:
        forms.append(ZERO if n == 1 else axis_dim(sum(form.terms != () for form in forms)))
    copied = graph.new_value(shape, graph.types[source])
    extents = tuple(n for n in shape if n > 1)
    graph.add(
        replace(
            members[0].view,
            result=copied,
            extents=extents,
            kinds=(PARALLEL,) * len(extents),
            body=Read(source, tuple(forms[order.index(d)] for d in range(len(order)))),
            out_dims=tuple(forms),
            rank=product.rank,
            name=name,
            is_transpose=False,
            is_copy=True,
        )
    )
    place = order.index(dim)
    for each in members:
        if each.n == end - first:
            graph.replace_uses(each.view.result, copied)
        else:
            views.slice(copied, place, each.first - first, each.n, each.view.rank, each.view.result)
    graph.remove_dead()
