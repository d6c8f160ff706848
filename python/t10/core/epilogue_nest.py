"""What follows the accumulation as loop nests: over a core's window of the output, or over its chunk of one.

Of several cores that have sums of one window, the one of rank k ends with chunk k of its slots in a row. A chunk is at
most one partial row, whole rows, and another partial row per dim: a nest for each. Dims that all operands walk evenly
are one. Work covers padding as well: results
there are nobody's, and all cores run the same code. Where windows wrap along an axis that the epilogue names, indices
do not go on evenly: there, and only there, work is cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import Box, chunk_boxes, window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.core.task_nest import axis_strides, named_axes
from t10.core.vertex_nest import VertexNest, Work


def epilogue_axes(spec: OperatorSpec) -> frozenset[int]:
    """Return the axes along which an epilogue depends on where in the result a point lies."""
    return named_axes((spec.epilogue,), ()) if spec.epilogue else frozenset()


def wraps(spec: OperatorSpec, ft: AxisSizes) -> bool:
    """Return whether windows of the output, cut so often over time, may wrap along an axis that the epilogue names."""
    return any(ft[axis] > 1 for axis in epilogue_axes(spec))


def epilogue_work(
    spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes, *, is_scattered: bool
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the nests of an epilogue, a copy where there is none, and what cores do in them.

    The output's windows stand at `positions`. Every core has its chunk of one if they are scattered, else all of it.
    """
    slot = len(spec.inputs)
    lengths = geometry.window_lengths(plan, slot)
    n_members, ranks = 1, np.zeros(plan.n_cores, np.int64)
    if is_scattered:
        n_members, ranks = (
            geometry.n_replicas(spec, plan, slot),
            geometry.replica_ranks(spec.output, plan, slot),
        )
    for nest, of_ranks in chunk_nests(spec, lengths, n_members):
        row_of_rank = np.full(n_members, -1, np.int64)
        row_of_rank[of_ranks.tiles] = np.arange(len(of_ranks.tiles))
        tiles = np.flatnonzero(row_of_rank[ranks] >= 0)
        rows = row_of_rank[ranks[tiles]]
        origin = None if of_ranks.origin is None else of_ranks.origin[rows]
        work = Work(tiles, of_ranks.extents[rows], of_ranks.offsets[rows], of_ranks.initial[rows], origin)
        yield from [(nest, work)] if origin is None else _cut_at_seams(spec, plan, positions, nest, work)


def _cut_at_seams(
    spec: OperatorSpec, plan: OperatorPlan, positions: AxisSizes, nest: VertexNest, work: Work
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield work whose origins are slots in parts along which indices go on evenly; origins are indices then."""
    assert work.origin is not None
    slot = len(spec.inputs)
    lengths, first = np.array(geometry.window_lengths(plan, slot)), work.origin
    starts = geometry.window_starts(plan, slot, positions)[work.tiles]
    begins = geometry.coordinates(plan)[work.tiles] * np.array(plan.lengths)
    seams = starts % lengths
    cut = [axis for axis in sorted(epilogue_axes(spec)) if seams[:, axis].any()]
    for is_behind in product((False, True), repeat=len(cut)):
        low, high = first.copy(), first + work.extents
        for axis, behind in zip(cut, is_behind, strict=True):
            if behind:
                low[:, axis] = np.maximum(low[:, axis], seams[:, axis])
            else:
                high[:, axis] = np.minimum(high[:, axis], seams[:, axis])
        rows = np.flatnonzero((high > low).all(axis=1))
        if not len(rows):
            continue
        local = (starts + (low - starts) % lengths) % np.array(plan.lengths)
        offsets = work.offsets + nest_offsets(nest, low - first)
        origin = (begins + local)[rows]
        yield nest, Work(work.tiles[rows], (high - low)[rows], offsets[rows], work.initial[rows], origin)


def epilogue_nest(spec: OperatorSpec, lengths: AxisSizes) -> VertexNest:
    """Return the nest over the parallel axes in the operator's order; reduction axes have extent 1.

    Operands are the accumulator, the epilogue's inputs, the result; they have numbers for names.
    """
    strides = axis_strides(spec.output, lengths)
    inputs = [TaskOperand(operand.dtype, axis_strides(operand, lengths)) for operand in spec.epilogue_inputs]
    operands = (TaskOperand(spec.acc_dtype, strides), *inputs, TaskOperand(spec.output.dtype, strides))
    named = tuple((str(number), operand) for number, operand in enumerate(operands))
    return VertexNest(spec.epilogue or identity(), "none", (), named)


def nest_offsets(nest: VertexNest, slots: Ints) -> Ints:
    """Return the byte offsets of every operand at slot coordinates (cores, axes)."""
    return np.stack(
        [(slots * np.array(o.strides)).sum(axis=1) * size_bytes(o.dtype) for _, o in nest.operands], axis=1
    )


def chunk_nests(spec: OperatorSpec, lengths: AxisSizes, n_members: int) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the nests of an epilogue over chunks of windows, and what the cores of every rank do in them.

    Where the position matters, origins are slot coordinates in the window.
    """
    nest = epilogue_nest(spec, lengths)
    shape = geometry.partition_shape(spec.output, lengths)
    n_slots = prod(shape)
    chunk = window_chunk(n_slots, n_members)
    has_position = bool(epilogue_axes(spec))
    axis_of_dim = [dim.terms[0].axis if dim.terms else -1 for dim in spec.output.dims]
    if not has_position:
        nest, shape = _in_rows(nest, shape, axis_of_dim)
        axis_of_dim = list(range(len(shape)))
    by_rank = [
        chunk_boxes(shape, rank * chunk, min(chunk, max(n_slots - rank * chunk, 0)))
        for rank in range(n_members)
    ]
    for number in range(max(map(len, by_rank))):
        boxes = {rank: own[number] for rank, own in enumerate(by_rank) if number < len(own)}
        work = _boxed(nest, chunk, boxes, axis_of_dim, len(nest.operands[0][1].strides))
        yield nest, work if has_position else replace(work, origin=None)


def _in_rows(
    nest: VertexNest, shape: tuple[int, ...], axis_of_dim: list[int]
) -> tuple[VertexNest, tuple[int, ...]]:
    """Return a nest over a window with neighbouring dims joined where all operands go on evenly, and its extents.

    So chunks are cut where rows of the joined dims end, not those of dims that nothing tells apart.
    """
    loops: list[tuple[int, tuple[int, ...]]] = []
    for extent, axis in zip(shape, axis_of_dim, strict=True):
        if extent == 1:
            continue
        strides = tuple(operand.strides[axis] for _, operand in nest.operands)
        if loops and all(far == near * extent for far, near in zip(loops[-1][1], strides, strict=True)):
            loops[-1] = (loops[-1][0] * extent, strides)
        else:
            loops.append((extent, strides))
    loops = loops or [(1, (0,) * len(nest.operands))]
    operands = tuple(
        (name, replace(operand, strides=tuple(strides[number] for _, strides in loops)))
        for number, (name, operand) in enumerate(nest.operands)
    )
    return replace(nest, operands=operands), tuple(extent for extent, _ in loops)


def _boxed(nest: VertexNest, chunk: int, boxes: dict[int, Box], axis_of_dim: list[int], n_axes: int) -> Work:
    """Return the work on one box of each of some ranks."""
    ranks = np.array(list(boxes), np.int64)
    first = np.zeros((len(ranks), n_axes), np.int64)
    extents = np.ones((len(ranks), n_axes), np.int64)
    for row, (begin, size) in enumerate(boxes.values()):
        for d, axis in enumerate(axis_of_dim):
            if axis >= 0:
                first[row, axis], extents[row, axis] = begin[d], size[d]
    offsets = nest_offsets(nest, first)
    offsets[:, -1] -= ranks * chunk * size_bytes(nest.operands[-1][1].dtype)
    return Work(ranks, extents, offsets, np.ones(len(ranks), np.bool_), first)
