"""Join products that read one tensor with different weights, as of queries, keys and values: it is brought once.

```
q[i, n] = x[i, :] * wq[:, n] + bq[n]              y[i, n] = x[i, :] * w[:, n] + b[n]
k[i, n] = x[i, :] * wk[:, n] + bk[n]     becomes  q = y[:, :N], k = y[:, N:]              w is wq, then wk; b so too
```

What is split over cores then is one large product: less of `x` arrives, and less is added up. The host puts the weights
behind one another (`t10.parts`); the results are slices, views. What is read per column is not computed: it could need
one of the products. Where one is multiplied by a constant last (queries by 1 over the root of their length), all are,
the others by 1.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from typing import Any

import numpy as np

from t10.core.dtypes import numpy_dtype, size_bytes
from t10.core.scalar import parse_constant
from t10.dialect.location import location_name
from t10.dialect.mlir import ir
from t10.passes.bridge.affine import axis_dim
from t10.passes.bridge.tree import (
    Accumulated,
    Apply,
    Constant,
    Index,
    Read,
    Scalar,
    reads,
    rewrite,
    spelled,
    visit,
)
from t10.passes.fusion.arguments import Entry, argument_entries, set_argument_entries, set_shape
from t10.passes.fusion.graph import (
    PARALLEL,
    FusionGraph,
    Nest,
    Reshape,
    is_product,
    is_rounded,
    with_leaves,
)
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.ungate import is_computed, without_gate
from t10.passes.fusion.unsplit import unsplit, without_units
from t10.passes.read_graph import NAME, ORDER, PARTS, WEIGHT

MEMORY_PART = 8
"""Results of products that are joined take this part of the memory of all cores at most."""


@dataclass(frozen=True, slots=True)
class Member:
    """A product whose columns are those of a weight: `operands` are that and what its epilogue reads per column.

    `dims` are the operands' dims that `axis` indexes; `key` is equal for products that can be joined. `back` splits
    what the product makes into the value that the graph has, where columns were split. `product` is the last
    multiplication of its results, by a constant, which `nest` leaves out; `rest` is what it leaves out as that reads
    other results as well.
    """

    nest: Nest
    axis: int
    operands: tuple[int, ...]
    dims: tuple[int, ...]
    key: tuple[Any, ...]
    back: Reshape | None = None
    product: Apply | None = None
    rest: Nest | None = None


def join_products(function: Any, graph: FusionGraph, memory_bytes: int | None = None) -> list[int]:
    """Join products of a function's graph, and the arguments that are their weights.

    Results that would take much of `memory_bytes`, those of all cores, stay apart: what is joined lives as long as
    what is read last of it. Returns the numbers of the arguments that nothing reads any more.
    """
    free = free_weights(function, graph)
    groups: dict[tuple[Any, ...], list[Member]] = {}
    for nest in graph.nests():
        root, rest = without_gate(graph, nest)
        plain, product = _without_factor(root)
        member = _member(graph, plain, free) or _split_member(graph, plain, free)
        if member is not None:
            made = replace(member, product=product, rest=rest)
            groups.setdefault(_shared_key(graph, made), []).append(made)
    views = ViewMaker.of(function, graph)
    entries = argument_entries(function)
    dead: list[int] = []
    for members in groups.values():
        if len({member.key for member in members}) > 1:
            alike: dict[tuple[Any, ...], list[Member]] = {}
            for member in _with_biases(graph, views, [_without_units(graph, each) for each in members], free):
                alike.setdefault(member.key, []).append(member)
        else:
            alike = {members[0].key: members}
        for same in alike.values():
            for few in _sharing(graph, same, memory_bytes):
                if len(few) > 1:
                    dead += join_members(function, graph, views, few, entries, free)
    if dead:
        set_argument_entries(function, entries)
        graph.remove_dead()
    return dead


def free_weights(function: Any, graph: FusionGraph) -> set[int]:
    """Return the arguments that may be joined: weights that one operator reads, as they are, and that have names."""
    entries = argument_entries(function)
    if any(NAME not in entry for entry in entries):
        # Arguments without a name are known by their number.
        return set()
    return {
        number
        for number, entry in enumerate(entries)
        if WEIGHT in entry
        and not {ORDER, PARTS} & entry.keys()
        and len(graph.users[number]) == 1
        and number not in graph.outputs
    }


def _member(graph: FusionGraph, nest: Nest, free: set[int]) -> Member | None:
    """Return a product as one that may be joined, None where it is none."""
    if nest.combine != "arith.addf" or not is_product(nest) or nest.forced is not None or nest.name:
        return None
    found = [read for read in reads(nest.body) if read.value in free]
    if len(found) != 1 or len(reads(nest.body)) != 2:
        return None
    (weight,) = found
    (other,) = (read for read in reads(nest.body) if read is not weight)
    shared = {axis for dim in other.dims for axis in dim.axes}
    own = [
        axis
        for axis, n in enumerate(nest.extents)
        if nest.kinds[axis] == PARALLEL and n > 1 and axis not in shared
    ]
    if len(own) != 1:
        return None
    (axis,) = own
    columns = [read for read in nest.all_reads if any(axis in dim.axes for dim in read.dims)]
    operands = tuple(dict.fromkeys(read.value for read in columns))
    if any(owner is not None and owner.uses for owner in map(graph.owner, operands)):
        return None
    dims = tuple(dim_of(read, axis) for value in operands for read in columns if read.value == value)
    if len(dims) != len(operands) or any(dim < 0 for dim in dims):
        return None
    if any(isinstance(node, Index) and axis in node.form.axes for part in nest.parts for node in visit(part)):
        return None
    return Member(nest, axis, operands, dims, key_of(graph, nest, axis, operands))


def _sharing(graph: FusionGraph, members: Sequence[Member], memory_bytes: int | None) -> list[list[Member]]:
    """Return members in groups whose results together take a small part of the memory of all cores."""
    groups: list[list[Member]] = []
    room = 0
    for member in members:
        result = member.nest.result
        n_bytes = prod(graph.shapes[result]) * size_bytes(graph.types[result])
        if not groups or (memory_bytes is not None and n_bytes > room):
            groups.append([])
            room = 0 if memory_bytes is None else memory_bytes // MEMORY_PART
        groups[-1].append(member)
        room -= n_bytes
    return groups


def _shared_key(graph: FusionGraph, member: Member) -> tuple[Any, ...]:
    """Return what is equal for products that can be made alike: dims of extent 1 and biases are left out."""
    whole = _without_units(graph, member)
    bias = _bias(graph, whole)
    if bias is None:
        return whole.key
    nest = _ending_in(whole.nest, bias[0])
    return key_of(graph, nest, whole.axis, tuple(value for value in whole.operands if value in nest.uses))


def _bias(graph: FusionGraph, member: Member) -> tuple[Scalar, Scalar] | None:
    """Return to what a product adds one number per column last, and that; None where it adds none."""
    last = _unrounded(member.nest.epilogue)
    if not isinstance(last, Apply) or last.opcode != "arith.addf":
        return None
    for value, bias in (last.operands, last.operands[::-1]):
        found = reads(bias)
        is_one = len(found) == 1 and found[0].dims == (axis_dim(member.axis),)
        if is_one and isinstance(value, Accumulated) and not is_computed(graph, found[0]):
            return value, bias
    return None


def _with_biases(
    graph: FusionGraph, views: ViewMaker, members: Sequence[Member], free: set[int]
) -> list[Member]:
    """Return members of which those without a bias add zeros, where others have biases."""
    biases = [_bias(graph, member) for member in members]
    given = next((bias[1] for bias in biases if bias is not None), None)
    if given is None or all(biases):
        return list(members)
    return [
        member if bias is not None else _biased(graph, views, member, given, free)
        for member, bias in zip(members, biases, strict=True)
    ]


def _biased(graph: FusionGraph, views: ViewMaker, member: Member, bias: Scalar, free: set[int]) -> Member:
    """Return a member that adds zeros, negative ones, which change nothing, as others do a bias."""
    (read,) = reads(bias)
    n, dtype = member.nest.extents[member.axis], graph.types[read.value]
    zeros = graph.new_value((n,), dtype)
    views.constant(zeros, np.full(n, -0.0, numpy_dtype(dtype)), member.nest.rank)
    own = rewrite(bias, lambda leaf: Read(zeros, leaf.dims) if isinstance(leaf, Read) else leaf)
    total = Apply(
        "arith.addf", (_unrounded(member.nest.epilogue) or Accumulated(), own), member.nest.acc_type
    )
    made = _member(graph, _ending_in(member.nest, total), free)
    return (
        member if made is None else replace(made, back=member.back, product=member.product, rest=member.rest)
    )


def _without_factor(nest: Nest) -> tuple[Nest, Apply | None]:
    """Return a nest without its last multiplication, if that is of its sums by a constant, and the multiplication."""
    last = _unrounded(nest.epilogue)
    is_product_of_sums = isinstance(last, Apply) and (last.opcode, last.dtype) == (
        "arith.mulf",
        nest.acc_type,
    )
    if not isinstance(last, Apply) or not is_product_of_sums or _factor(last) is None:
        return nest, None
    return _ending_in(nest, last.operands[0]), last


def _factor(product: Apply) -> float | None:
    """Return the constant by which something is multiplied."""
    factor = product.operands[1]
    if isinstance(factor, Apply) and factor.opcode == "arith.extf":
        (factor,) = factor.operands
    return parse_constant(factor.text) if isinstance(factor, Constant) else None


def _unrounded(epilogue: Scalar | None) -> Scalar | None:
    """Return what an epilogue gives before it rounds that."""
    return epilogue.operands[0] if epilogue is not None and is_rounded(epilogue) else epilogue


def _ending_in(nest: Nest, last: Scalar) -> Nest:
    """Return a nest that makes something else of its sums, and rounds it as before."""
    if nest.epilogue is not None and is_rounded(nest.epilogue):
        last = replace(nest.epilogue, operands=(last,))
    return replace(nest, epilogue=None if isinstance(last, Accumulated) else last)


def _split_member(graph: FusionGraph, nest: Nest, free: set[int]) -> Member | None:
    """Return a product whose columns were split in two axes (heads) as one that may be joined, None of others."""
    if not is_product(nest):
        return None
    for axis in range(len(nest.extents) - 1):
        if nest.kinds[axis] == nest.kinds[axis + 1] == PARALLEL:
            whole = unsplit(graph, nest, axis)
            member = None if whole is None else _member(graph, whole.nest, free)
            if whole is not None and member is not None:
                return replace(member, back=whole.back)
    return None


def _without_units(graph: FusionGraph, member: Member) -> Member:
    """Return a member whose result has no dims of extent 1; those of products that were split have none."""
    if member.back is not None:
        return member
    whole = without_units(graph, member.nest)
    key = key_of(graph, whole.nest, member.axis, member.operands)
    return replace(member, nest=whole.nest, key=key, back=whole.back)


def dim_of(read: Read, axis: int) -> int:
    """Return the dim that an axis alone indexes, -1 where none is, or it has more."""
    dims = [number for number, form in enumerate(read.dims) if axis in form.axes]
    return dims[0] if len(dims) == 1 and read.dims[dims[0]].is_simple else -1


def key_of(graph: FusionGraph, nest: Nest, axis: int, operands: tuple[int, ...]) -> tuple[Any, ...]:
    """Return all of a nest but its extent along an axis, and which operands it reads along that."""
    extents = tuple(-1 if a == axis else extent for a, extent in enumerate(nest.extents))
    numbers = {value: -1 - place for place, value in enumerate(operands)}
    parts = tuple(
        spelled(part, numbers) if part is not None else () for part in (nest.body, nest.init, nest.epilogue)
    )
    types = tuple(graph.types[value] for value in (*operands, nest.result))
    return (parts, extents, nest.kinds, nest.out_dims, nest.acc_type, nest.sum_type, types)


def join_members(
    function: Any,
    graph: FusionGraph,
    views: ViewMaker,
    members: Sequence[Member],
    entries: list[Entry],
    free: Set[int],
) -> list[int]:
    """Replace products by one, and what they made by slices of what it makes; returns arguments no longer read."""
    first, nest, axis = members[0], members[0].nest, members[0].axis
    sizes = [member.nest.extents[member.axis] for member in members]
    joined: dict[int, int] = {}
    dead: list[int] = []
    for place, value in enumerate(first.operands):
        values = [member.operands[place] for member in members]
        shape = _widened(graph.shapes[value], first.dims[place], sum(sizes))
        if free >= set(values):
            graph.shapes[value] = shape
            _join_arguments(function, graph, values, first.dims[place], entries)
            dead += values[1:]
        else:
            joined[value] = graph.new_value(shape, graph.types[value])
            views.concat(joined[value], tuple(values), first.dims[place], nest.rank)

    def leaf(scalar: Scalar) -> Scalar:
        if isinstance(scalar, Read) and scalar.value in joined:
            return Read(joined[scalar.value], scalar.dims)
        return scalar

    dim = next(number for number, form in enumerate(nest.out_dims) if axis in form.axes)
    result = graph.new_value(_widened(graph.shapes[nest.result], dim, sum(sizes)), graph.types[nest.result])
    extents = _widened(nest.extents, axis, sum(sizes))
    base = location_name(nest.location)
    location = ir.Location.name(f"{base} (+{len(members) - 1})", nest.location) if base else nest.location
    start = 0
    for member, size in zip(members, sizes, strict=True):
        views.slice(result, dim, start, size, member.nest.rank, member.nest.result)
        if member.back is not None:
            graph.add(member.back)
        if member.rest is not None:
            graph.add(member.rest)
        start += size
    made = replace(with_leaves(nest, leaf), result=result, extents=extents, location=location)
    graph.add(_multiplied(graph, views, made, axis, members))
    return dead


def _multiplied(
    graph: FusionGraph, views: ViewMaker, nest: Nest, axis: int, members: Sequence[Member]
) -> Nest:
    """Return what members are joined to, its columns multiplied by the factor of each."""
    given = [member.product for member in members if member.product is not None]
    if not given:
        return nest
    factors = [1.0 if member.product is None else _factor(member.product) for member in members]
    dtype, by = given[0].dtype, given[0].operands[1]
    if len(set(factors)) > 1:
        value = graph.new_value((nest.extents[axis],), dtype)
        sizes = [member.nest.extents[member.axis] for member in members]
        views.constant(value, np.repeat(np.array(factors, numpy_dtype(dtype)), sizes), nest.rank)
        by = Read(value, (axis_dim(axis),))
    last = _unrounded(nest.epilogue) or Accumulated()
    return _ending_in(nest, Apply("arith.mulf", (last, by), dtype))


def _widened(shape: tuple[int, ...], dim: int, extent: int) -> tuple[int, ...]:
    """Return a shape with another extent of one dim."""
    return (*shape[:dim], extent, *shape[dim + 1 :])


def _join_arguments(
    function: Any, graph: FusionGraph, values: Sequence[int], dim: int, entries: list[Entry]
) -> None:
    """Make the first of several weights that of all, and say of what the host makes it."""
    first = values[0]
    names = [entries[value][NAME] for value in values]
    set_shape(function.regions[0].blocks[0].arguments[first], graph.shapes[first])
    axis = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim)
    wanted = f"{names[0].value} (+{len(names) - 1})"
    entries[first][NAME] = ir.StringAttr.get(_free_name(wanted, {entry[NAME].value for entry in entries}))
    entries[first][PARTS] = ir.DictAttr.get({"axis": axis, "names": ir.ArrayAttr.get(names)})


def _free_name(wanted: str, taken: Set[str]) -> str:
    """Return a name, with a number if it is taken."""
    numbered = (wanted if number == 1 else f"{wanted}_{number}" for number in count(1))
    return next(name for name in numbered if name not in taken)
