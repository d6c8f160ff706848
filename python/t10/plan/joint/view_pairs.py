"""What moves between plans of a producer and of a reader through views: an estimate, pair by pair.

A view reads boxes of its sources, each dim of a source along one dim of the view or at one position. A core receives
what it needs of such a box less what it holds of it. That is counted on a few cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, View
from t10.core.part_lengths import whole_lengths
from t10.plan.search.placement import natural_core_order

CORES_LOOKED_AT = 12

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
        yield None if runs is None else Piece(value, ranges, *zip(*runs, strict=True))
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
        first, last = _inverse(low, high, offset, stride)
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


def _inverse(low: Number, high: Number, offset: int, stride: int) -> tuple[Number, Number]:
    """Return the positions p, first and behind the last, with low <= offset + stride * p < high."""
    if stride > 0:
        return -((offset - low) // stride), -((offset - high) // stride)
    return -((high - 1 - offset) // -stride), (offset - low) // -stride + 1


def most_received(
    pieces: Sequence[Piece],
    maker: tuple[OperatorSpec, Operand, Ints, Ints],
    reader: tuple[OperatorSpec, Operand, Ints],
) -> Ints:
    """Return about how many elements the busiest core receives, by partitions of the maker and of the reader.

    Each is (operator, operand or result, F_op by row), with the elements that lie on a core at most for the maker.
    """
    made_spec, made, made_rows, stored = maker
    read_spec, read, read_rows = reader
    cores = read_rows.prod(axis=1)
    # Cores evenly spread over those of each of the reader's partitions, both ends among them.
    looked_at = np.arange(CORES_LOOKED_AT) * (cores[:, None] - 1) // (CORES_LOOKED_AT - 1)
    needed = _windows(read_spec, read, read_rows, looked_at)
    # By partitions of the maker, of the reader, and cores.
    where = np.broadcast_to(looked_at[None], (len(made_rows), *looked_at.shape))
    held = _windows(made_spec, made, made_rows, where.reshape(len(made_rows), -1))
    is_used = where < made_rows.prod(axis=1)[:, None, None]
    total = np.zeros(where.shape, np.int64)
    for piece in pieces:
        wanted = np.ones(looked_at.shape, np.int64)
        own = np.ones(where.shape, np.int64)
        for number, (dim, offset, stride) in enumerate(
            zip(piece.dims, piece.offsets, piece.strides, strict=True)
        ):
            low, high = (bound.reshape(where.shape) for bound in held[number])
            if dim < 0:
                own *= (low <= offset) & (offset < high)
                continue
            first = np.maximum(needed[dim][0], piece.ranges[dim][0])
            last = np.minimum(needed[dim][1], piece.ranges[dim][1])
            wanted *= np.maximum(last - first, 0)
            low, high = _inverse(low, high, offset, stride)
            own *= np.maximum(np.minimum(high, last) - np.maximum(low, first), 0)
        total += wanted - np.minimum(np.where(is_used, own, 0), stored[:, None, None])
    most: Ints = total.max(axis=2)
    return most


def _windows(spec: OperatorSpec, operand: Operand, rows: Ints, cores: Ints) -> list[tuple[Ints, Ints]]:
    """Return, per dim of a tensor, the first position and the one behind the last, by F_op and core of `cores`."""
    extents = np.array(spec.extents)
    lengths = whole_lengths(spec, rows)
    parts = np.zeros((*cores.shape, rows.shape[1]), np.int64)
    for row, f_op in enumerate(rows.tolist()):
        left = cores[row]
        for axis in reversed(natural_core_order(spec, tuple(f_op), tuple(lengths[row].tolist()))):
            left, parts[row, :, axis] = np.divmod(left, f_op[axis])
    first = parts * lengths[:, None, :]
    last = np.minimum(first + lengths[:, None, :], extents)
    result: list[tuple[Ints, Ints]] = []
    for dim, size in zip(operand.dims, operand.shape, strict=True):
        low = np.full(cores.shape, dim.offset)
        high = low + 1
        for term in dim.terms:
            low = low + term.coefficient * first[:, :, term.axis]
            high = high + term.coefficient * (last[:, :, term.axis] - 1)
        result.append((np.clip(low, 0, size), np.clip(high, 0, size)))
    return result
