"""Storage orders that the nodes of a `FusionGraph` prefer, as relations between tensors (`plan.memory.storage`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from math import prod
from typing import Any

from t10.chip import ChipSpec
from t10.codelets.matrix.windows import STRIDES, least_columns, pieces_of
from t10.codelets.matrix.windows_code import CHANNELS
from t10.core.expression import AffineDim
from t10.dialect.mlir import ir
from t10.passes.bridge.tree import Extract, Index, Read, Scalar, reads, visit
from t10.passes.fusion.arguments import TYPES, argument_entries
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, Reshape, is_product
from t10.passes.fusion.narrow import is_handed_on_rounded, widened
from t10.passes.fusion.product_prices import FEW_BOXES, CountedPrice, CountedProduct, Target, Tensor
from t10.passes.read_graph import WEIGHT
from t10.plan.memory.storage import (
    AsGiven,
    Axes,
    Channels,
    Follow,
    Joined,
    Product,
    ProductPrice,
    Regroup,
    Relation,
    RowRule,
    Stored,
    Tensors,
)

_counted = lru_cache(maxsize=256)(CountedProduct)
"""Products that are alike are one, which keeps what it has counted."""
WHOLE_TABLE = 64
"""Weight of a byte of a table that is gathered from in another order than given: rows are fetched, not columns."""
DIM_ATTRIBUTES = {
    "tensor.pad": ("static_low", "static_high"),
    "tensor.extract_slice": ("static_offsets", "static_sizes", "static_strides"),
    "tensor.concat": (),
}
"""Operations that go through a change of order, and their attributes with one number per dim."""


def stored_tensors(graph: FusionGraph, fixed: Collection[int]) -> dict[int, Stored]:
    """Return the tensors of the graph that have dims; `fixed` are arguments that keep their order."""
    values = {value for node in graph.nodes() for value in (*node.results, *node.uses)}
    kept = set(fixed)
    for node in graph.nodes():
        if isinstance(node, Opaque) and not follows_order(graph, node) and not is_short_constant(graph, node):
            kept.update(node.results)
    return {
        value: Stored(
            graph.shapes[value],
            prod(graph.shapes[value]) * _size_bytes(graph.types[value]),
            is_fixed=value in kept,
        )
        for value in sorted(values | set(graph.outputs))
        if graph.shapes[value]
    }


def is_short_constant(graph: FusionGraph, node: Opaque) -> bool:
    """Return whether an operation is a constant of floats that stand in the text: they can stand in any order."""
    is_constant = node.op.name == "arith.constant" and graph.types[node.results[0]] in TYPES
    return is_constant and isinstance(node.op.attributes["value"], ir.DenseElementsAttr)


def target_of(function: Any, graph: FusionGraph, chip: ChipSpec) -> Target:
    """Return a chip as the target of a function with its weights."""
    entries = argument_entries(function)
    weights = [number for number, entry in enumerate(entries) if WEIGHT in entry and graph.shapes[number]]
    sizes = {n: prod(graph.shapes[n]) * _size_bytes(graph.types[n]) for n in weights}
    return Target.of(chip, sizes)


def _size_bytes(dtype: str) -> int:
    """Return the bytes of an element, 8 for an index."""
    bits = re.search(r"\d+", dtype)
    return 8 if bits is None else max(int(bits.group()) // 8, 1)


def follows_order(graph: FusionGraph, node: Opaque) -> bool:
    """Return whether an operation can be done in any order of dims: padding, cutting and joining with known numbers."""
    op = node.op
    if op.name not in DIM_ATTRIBUTES or len(node.results) != 1:
        return False
    if op.name != "tensor.concat" and len(op.operands) != 1:
        return False
    if any(
        list(argument.uses)
        for region in op.regions
        for block in region.blocks
        for argument in block.arguments
    ):
        return False
    rank = len(graph.shapes[node.results[0]])
    return rank > 0 and all(
        source is not None and len(graph.shapes[source]) == rank
        for source in node.operands[: len(op.operands)]
    )


def relations_of(graph: FusionGraph, tensors: Tensors, target: Target) -> list[Relation]:
    """Return what all nodes want on a target; the host takes outputs in any order."""
    found: list[Relation] = []
    for node in graph.nodes():
        if isinstance(node, Reshape):
            pair = (node.result, node.source) if node.expands else (node.source, node.result)
            found.append(Regroup(*pair, node.groups))
        elif isinstance(node, Opaque):
            found += _of_opaque(graph, node)
        else:
            found += dict.fromkeys(_of_nest(graph, node, product_of(graph, node, tensors, target)))
    return [each for each in found if all(graph.shapes[value] for value in each.values)]


def _of_opaque(graph: FusionGraph, node: Opaque) -> Iterator[Relation]:
    direct = node.operands[: len(node.op.operands)] if follows_order(graph, node) else ()
    for source in dict.fromkeys(value for value in direct if value is not None):
        axes = tuple(range(len(graph.shapes[source])))
        yield Follow(node.results[0], source, axes, axes, is_view=True)
    for value in node.uses:
        if value not in direct:
            yield AsGiven(value)
    if direct and node.op.name == "tensor.concat" and graph.users[node.results[0]]:
        yield Joined(node.results[0], int(ir.IntegerAttr(node.op.attributes["dim"]).value))


def _of_nest(graph: FusionGraph, nest: Nest, product: Product | None) -> Iterator[Relation]:
    body = reads(nest.body)
    rest = [read for part in nest.parts[1:] for read in reads(part)]
    result = axes_of(nest, nest.out_dims)
    if product is not None:
        yield product
        yield from _following(nest.result, result, nest, rest)
    elif (channels := channels_of(graph, nest)) is not None:
        yield channels
        yield from _following(nest.result, result, nest, rest)
    elif nest.combine:
        largest = max(body, key=lambda read: prod(graph.shapes[read.value]), default=None)
        if largest is not None:
            axes = axes_of(nest, largest.dims)
            yield Follow(largest.value, nest.result, axes, result)
            yield from _following(largest.value, axes, nest, [read for read in body if read is not largest])
        yield from _following(nest.result, result, nest, rest)
    else:
        yield from _following(nest.result, result, nest, [*body, *rest])
    for part in nest.parts:
        for node in visit(part):
            if isinstance(node, Extract):
                yield AsGiven(node.table, WHOLE_TABLE)
                yield Follow(nest.result, node.table, result, tuple(_axis_of_index(i) for i in node.indices))


def _following(leader: int, axes: Axes, nest: Nest, followers: list[Read]) -> Iterator[Relation]:
    for read in followers:
        yield Follow(leader, read.value, axes, axes_of(nest, read.dims))


def axes_of(nest: Nest, dims: tuple[AffineDim, ...]) -> Axes:
    """Return the axis of every dim: the only one in it, or the only parallel one (a window slides along it)."""
    return tuple(_axis_of(nest, dim) for dim in dims)


def _axis_of(nest: Nest, dim: AffineDim) -> int | None:
    axes = dim.axes if len(dim.axes) < 2 else tuple(a for a in dim.axes if nest.kinds[a] == PARALLEL)
    return axes[0] if len(axes) == 1 else None


def _axis_of_index(index: Scalar) -> int | None:
    return index.form.terms[0].axis if isinstance(index, Index) and index.form.is_simple else None


def product_of(graph: FusionGraph, nest: Nest, tensors: Tensors, target: Target) -> Product | None:
    """Return the product that the matrix engine may compute, None for a nest that is none or sums nothing of both.

    None too where the result is one number: it has no rows.
    """
    if nest.combine != "arith.addf" or not is_product(nest) or not graph.shapes[nest.result]:
        return None
    first, second = (read for read in reads(nest.body))
    sides = (first, second)
    compound = {axis for read in sides for dim in read.dims if len(dim.terms) > 1 for axis in dim.axes}
    lone = [{dim.terms[0].axis for dim in read.dims if dim.is_simple} - compound for read in sides]
    inner = tuple(
        axis
        for axis, (extent, kind) in enumerate(zip(nest.extents, nest.kinds, strict=True))
        if kind != PARALLEL and extent > 1 and all(axis in each for each in lone)
    )
    if not inner:
        return None
    own = _own_axes(nest, sides)
    axes = (_simple_axes(first), _simple_axes(second), axes_of(nest, nest.out_dims))
    one, other, out = (tensors[value] for value in (first.value, second.value, nest.result))
    none: frozenset[int] = frozenset()
    lanes = (none, none) if compound else (none if own[1] else own[0], none if own[0] else own[1])
    rule = RowRule(axes, (one, other, out), frozenset(inner), _rows(nest, sides, own), lanes)
    price: ProductPrice = rule
    if not compound:
        wide = widened(nest) if nest.acc_type == "f16" else None
        other = None if wide is None else counted_product(graph, wide, target)
        price = CountedPrice(counted_product(graph, nest, target), rule, other)
    return Product((first.value, second.value, nest.result), axes, inner, own[0] | own[1], price)


def channels_of(graph: FusionGraph, nest: Nest) -> Channels | None:
    """Return the channels of a depthwise convolution that the short-window engine may compute, None of no such."""
    if nest.combine != "arith.addf" or not is_product(nest):
        return None
    first, second = sides = reads(nest.body)
    if {graph.types[side.value] for side in sides} != {"f16"}:
        return None
    windows = [dim for side in sides for dim in side.dims if len(dim.terms) > 1]
    reduced = {a for a, n in enumerate(nest.extents) if nest.kinds[a] != PARALLEL and n > 1}
    if not reduced <= {axis for dim in windows for axis in dim.axes}:
        return None
    if not any(_slides(nest, dim, reduced) for dim in windows):
        return None
    one, other, out = _simple_axes(first), _simple_axes(second), axes_of(nest, nest.out_dims)
    walked = [{a for dim in side.dims for a in dim.axes if nest.extents[a] > 1} - reduced for side in sides]
    for axis in out:
        # Weights of several results for each channel are none of these.
        if axis is None or axis not in one or axis not in other or {axis} not in walked:
            continue
        if nest.extents[axis] % CHANNELS == 0:
            values = first.value, second.value, nest.result
            return Channels(values, (one.index(axis), other.index(axis), out.index(axis)))
    return None


def _slides(nest: Nest, dim: AffineDim, reduced: Collection[int]) -> bool:
    """Return whether the engine can slide a window along a dim."""
    place, position = sorted(dim.terms, key=lambda term: term.axis in reduced)[:2]
    pieces = pieces_of(nest.extents[position.axis])
    stride, rest = divmod(place.coefficient, position.coefficient)
    if pieces is None or position.axis not in reduced or rest or stride not in STRIDES:
        return False
    rows = prod(nest.extents[axis] for axis in reduced if axis != position.axis)
    return nest.extents[place.axis] >= least_columns(pieces, stride, rows)


def counted_product(
    graph: FusionGraph, nest: Nest, target: Target, n_boxes: int = FEW_BOXES
) -> CountedProduct:
    """Return a nest that adds up products as it is counted for a target; those that are alike count once."""
    first, second = sides = reads(nest.body)
    tensors = (
        *(Tensor(graph.types[each.value], graph.shapes[each.value], each.dims) for each in (first, second)),
        Tensor(nest.acc_type, graph.shapes[nest.result], nest.out_dims),
    )
    reduced = frozenset(axis for axis, kind in enumerate(nest.kinds) if kind != PARALLEL)
    outside, everywhere = (
        frozenset(number for number, read in enumerate(sides) if read.value in those)
        for those in (target.outside, target.everywhere)
    )
    rounds = is_handed_on_rounded(nest)
    return _counted(nest.extents, reduced, tensors, target.chip, outside, rounds, everywhere, n_boxes)


def _simple_axes(read: Read) -> Axes:
    return tuple(dim.terms[0].axis if dim.is_simple else None for dim in read.dims)


def _own_axes(nest: Nest, sides: tuple[Read, Read]) -> tuple[frozenset[int], frozenset[int]]:
    """Return, per side of a product, the parallel axes of several points that it has and the other has not."""
    first, second = ({axis for dim in read.dims for axis in dim.axes} for read in sides)
    parallel = {a for a, n in enumerate(nest.extents) if nest.kinds[a] == PARALLEL and n > 1}
    return frozenset(parallel & (first - second)), frozenset(parallel & (second - first))


def _rows(nest: Nest, sides: tuple[Read, Read], own: tuple[frozenset[int], frozenset[int]]) -> frozenset[int]:
    """Return the axes that an engine writes in a row: those of either side, with a window those of the weights."""
    slides = [any(len(dim.terms) > 1 for dim in read.dims) for read in sides]
    allowed = own[0] | own[1]
    if any(slides):
        allowed = own[0] if slides[1] else own[1]
    everywhere = frozenset(a for a, kind in enumerate(nest.kinds) if kind == PARALLEL)
    return allowed or everywhere
