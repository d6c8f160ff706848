"""Views as boxes: what of a view's elements are elements of which source, each dim along one dim of that source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from t10.core.arrays import Ints
from t10.core.graph import Graph, View

Number = TypeVar("Number", int, Ints)


@dataclass(frozen=True, slots=True)
class Piece:
    """A box of a view's elements that are elements of one source.

    `ranges` is the box by dims of the view; per dim of the source, `dims` is the view's dim that it runs along (-1:
    one position), and the source's position is `offset + stride * position in the view`.
    """

    source: str
    ranges: tuple[tuple[int, int], ...]
    dims: tuple[int, ...]
    offsets: tuple[int, ...]
    strides: tuple[int, ...]


def pieces_of(graph: Graph, value: str, laid_out: Mapping[str, tuple[int, ...]]) -> tuple[Piece, ...] | None:
    """Return the boxes that a value is made of; None where a reshape takes dims apart or together.

    `laid_out` are the shapes that sources are laid out by, where the operator that does so reads them reshaped.
    """
    views = {view.name: view for view in graph.views}
    found = list(_pieces(value, views, graph.shape_by_value, laid_out))
    return None if None in found else tuple(piece for piece in found if piece is not None)


def piece_of(graph: Graph, value: str, source: str) -> Piece | None:
    """Return the box that a value reads of an input, weight, result or other view; None unless it is one box."""
    views = {view.name: view for view in graph.views if view.name != source}
    found = [piece for piece in _pieces(value, views, graph.shape_by_value, {}) if piece is not None]
    found = [piece for piece in found if piece.source == source]
    return found[0] if len(found) == 1 else None


def _pieces(
    value: str,
    views: Mapping[str, View],
    shapes: Mapping[str, tuple[int, ...]],
    laid_out: Mapping[str, tuple[int, ...]],
) -> Iterator[Piece | None]:
    view = views.get(value)
    if view is None:
        ranges = tuple((0, extent) for extent in shapes[value])
        runs = _run_reshaped(laid_out.get(value, shapes[value]), shapes[value])
        columns = zip(*runs, strict=True) if runs else ((), (), ())
        yield None if runs is None else Piece(value, ranges, *columns)
        return
    first = 0
    for source in view.sources:
        along = _run_along(view, shapes[source], first)
        for piece in _pieces(source, views, shapes, laid_out):
            seen = None if along is None or piece is None else _seen_through(view, piece, along)
            if along is None or piece is None or seen is not None:
                yield seen
        first += shapes[source][view.axis] if view.kind == "concat" else 0


def _run_along(view: View, shape: tuple[int, ...], first: int) -> list[tuple[int, int, int]] | None:
    """Return (dim of the view or -1, offset, stride) per dim of a source, the elements before it in `first`."""
    plain = [(dim, 0, 1) for dim in range(len(shape))]
    if view.kind == "slice":
        return [(dim, view.offsets[dim], view.strides[dim]) for dim in range(len(shape))]
    if view.kind == "transpose":
        return [(view.permutation.index(dim), 0, 1) for dim in range(len(shape))]
    if view.kind == "broadcast":
        return [(to if shape[dim] == view.shape[to] else -1, 0, 1) for dim, to in enumerate(view.dims)]
    if view.kind == "concat":
        return [(dim, -first if dim == view.axis else 0, 1) for dim, _, _ in plain]
    if view.kind == "pad":
        return [(dim, -view.low[dim], 1) for dim in range(len(shape))]
    return _run_reshaped(shape, view.shape)


def _run_reshaped(shape: tuple[int, ...], seen_as: tuple[int, ...]) -> list[tuple[int, int, int]] | None:
    """Return what `_run_along` does for a reshape, which leaves out dims of one position or adds some."""
    long = [dim for dim, extent in enumerate(shape) if extent > 1]
    seen = [dim for dim, extent in enumerate(seen_as) if extent > 1]
    if [shape[dim] for dim in long] != [seen_as[dim] for dim in seen]:
        return None
    to_by_dim = dict(zip(long, seen, strict=True))
    return [(to_by_dim.get(dim, -1), 0, 1) for dim in range(len(shape))]


def _seen_through(view: View, piece: Piece, along: Sequence[tuple[int, int, int]]) -> Piece | None:
    """Return a piece of a view's source as one of the view, None where it sees nothing of it."""
    ranges = [(0, extent) for extent in view.shape]
    for (low, high), (dim, offset, stride) in zip(piece.ranges, along, strict=True):
        if dim < 0:
            if not low <= offset < high:
                return None
            continue
        first, last = inverse(low, high, offset, stride)
        ranges[dim] = (max(ranges[dim][0], first), min(ranges[dim][1], last))
    if any(low >= high for low, high in ranges):
        return None
    runs = [(along[dim] if dim >= 0 else (-1, 0, 1)) for dim in piece.dims]
    return replace(
        piece,
        ranges=tuple(ranges),
        dims=tuple(dim for dim, _, _ in runs),
        offsets=tuple(
            offset + stride * before
            for offset, stride, (_, before, _) in zip(piece.offsets, piece.strides, runs, strict=True)
        ),
        strides=tuple(stride * step for stride, (_, _, step) in zip(piece.strides, runs, strict=True)),
    )


def inverse(low: Number, high: Number, offset: int, stride: int) -> tuple[Number, Number]:
    """Return the positions p, first and behind the last, with low <= offset + stride * p < high."""
    if stride > 0:
        return -((offset - low) // stride), -((offset - high) // stride)
    return -((high - 1 - offset) // -stride), (offset - low) // -stride + 1
