"""Transposes, broadcasts, constants, widening casts and unit reshapes folded into the index maps of their readers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from t10.core.expression import AffineDim
from t10.passes.bridge.affine import ZERO, is_zero
from t10.passes.bridge.tree import WIDENING, Apply, Constant, Read, Scalar, substitute_axes
from t10.passes.fusion.graph import FusionGraph, Nest, Reshape, with_leaves


def fold_views(graph: FusionGraph) -> None:
    """Make every nest read through what only renames, repeats or widens elements."""
    folding = True
    while folding:
        _fold_into(graph, graph.nests())
        graph.remove_dead()
        folded_reshapes = [fold_reshape(graph, node) for node in graph.nodes() if isinstance(node, Reshape)]
        folding = any(folded_reshapes)
    graph.remove_dead()


def fold_transposes(graph: FusionGraph) -> None:
    """Make every transpose between two storage orders read through what only renames or repeats elements."""
    _fold_into(graph, [nest for nest in graph.nests() if nest.is_transpose])
    graph.remove_dead()


def _fold_into(graph: FusionGraph, nests: list[Nest]) -> None:
    for nest in nests:
        folded = with_leaves(nest, partial(_through, graph))
        # A transpose stays one: what widens in front of it is computed there.
        if folded != nest and (not nest.is_transpose or isinstance(folded.body, Read)):
            graph.add(folded)


def fold_reshape(graph: FusionGraph, reshape: Reshape) -> bool:
    """Drop a reshape that undoes another, or that changes nothing; returns whether it did."""
    if not graph.users[reshape.result] and reshape.result not in graph.outputs:
        return False
    source = graph.owner(reshape.source)
    origin = reshape.source
    if isinstance(source, Reshape) and source.expands != reshape.expands:
        origin = source.source
    if graph.shapes[origin] != graph.shapes[reshape.result]:
        return False
    graph.replace_uses(reshape.result, origin)
    return True


def _through(graph: FusionGraph, leaf: Scalar) -> Scalar:
    """Return what a read amounts to once every foldable producer is looked through."""
    if not isinstance(leaf, Read):
        return leaf
    producer = graph.owner(leaf.value)
    if isinstance(producer, Reshape):
        past = _past_reshapes(graph, producer, leaf.dims)
        return leaf if past is None else _through(graph, past)
    if isinstance(producer, Nest) and is_foldable(producer):
        return _resolved(graph, inlined(producer, leaf.dims))
    return leaf


def _resolved(graph: FusionGraph, scalar: Scalar) -> Scalar:
    if isinstance(scalar, Apply):
        return replace(scalar, operands=tuple(_resolved(graph, o) for o in scalar.operands))
    return _through(graph, scalar)


def is_foldable(nest: Nest) -> bool:
    """Return whether a nest only moves, repeats or widens elements: reading through it costs nothing."""
    if nest.combine or nest.epilogue is not None:
        return False
    body = nest.body
    while isinstance(body, Apply) and body.opcode in WIDENING:
        body = body.operands[0]
    return isinstance(body, Read | Constant)


def inlined(producer: Nest, dims: tuple[AffineDim, ...]) -> Scalar:
    """Return what an elementwise producer computes for its element at `dims`, over the reader's axes."""
    return substitute_axes(producer.body, axes_read(producer, dims))


def axes_read(producer: Nest, dims: tuple[AffineDim, ...]) -> list[AffineDim]:
    """Return, per axis of an elementwise producer, the reader's index that it stands for."""
    by_axis = [ZERO] * len(producer.extents)
    for form, dim in zip(producer.out_dims, dims, strict=True):
        if form.terms:
            by_axis[form.terms[0].axis] = dim
    return by_axis


def _past_reshapes(graph: FusionGraph, reshape: Reshape, dims: tuple[AffineDim, ...]) -> Read | None:
    """Return the read of what lies before a reshape, or before two that undo each other up to dims of extent 1."""
    direct = through_reshape(graph, reshape, dims)
    if direct is not None:
        return Read(reshape.source, direct)
    before = graph.owner(reshape.source)
    if not isinstance(before, Reshape):
        return None
    origin, result = graph.shapes[before.source], graph.shapes[reshape.result]
    if [n for n in origin if n != 1] != [n for n in result if n != 1]:
        return None
    places = iter([dim for dim, n in zip(dims, result, strict=True) if n != 1])
    return Read(before.source, tuple(ZERO if n == 1 else next(places) for n in origin))


def through_reshape(
    graph: FusionGraph, reshape: Reshape, dims: tuple[AffineDim, ...]
) -> tuple[AffineDim, ...] | None:
    """Return the index of a reshape's source for an index of its result, None if dims are really merged or split.

    Only dims of extent 1 come and go.
    """
    long = graph.shapes[reshape.result] if reshape.expands else graph.shapes[reshape.source]
    grown = [[i for i in group if long[i] != 1] for group in reshape.groups]
    if any(len(group) > 1 for group in grown):
        return None
    if reshape.expands:
        return tuple(dims[group[0]] if group else ZERO for group in grown)
    found = [ZERO] * len(long)
    for dim, group in zip(dims, grown, strict=True):
        if group:
            found[group[0]] = dim
    return tuple(found)


def is_bijective(dims: tuple[AffineDim, ...], axes: range | list[int]) -> bool:
    """Return whether an index visits every point of `axes` at a place of its own: each axis once, alone in its dim."""
    simple = [dim.terms[0].axis for dim in dims if dim.is_simple]
    others = [dim for dim in dims if not dim.is_simple]
    return sorted(simple) == sorted(axes) and all(is_zero(dim) for dim in others)
