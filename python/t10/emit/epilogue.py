"""What follows the accumulation: the epilogue on the output elements each core owns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.chunks import chunk_slots
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes
from t10.core.scalar import ScalarFunction, identity
from t10.core.task import TaskOperand
from t10.core.task_nest import axis_strides, uses_position
from t10.cost import CostModel
from t10.cost.operator import epilogue_cycles, output_chunk
from t10.emit.builder import Builder
from t10.emit.contiguous_parts import window_parts
from t10.emit.lowering_context import OperatorContext
from t10.emit.reduction import groups
from t10.emit.vertices import VertexNest, Work, renamed


def epilogue_work(
    builder: Builder, cost: CostModel, context: OperatorContext
) -> Iterator[tuple[VertexNest, Work, int]]:
    """Yield the nests of an operator's epilogue (a copy where it has none), what cores do in them, and cycles."""
    spec, plan = context.spec, context.plan
    charged = replace(plan, reduce="scatter" if context.is_scattered else "all")
    key = ("epilogue", builder.kind_of(spec), charged, context.output_positions)
    cycles, made = builder.once(
        key, lambda: (epilogue_cycles(cost, spec, charged), tuple(epilogue_nests(context)))
    )
    names = (context.accumulator, *context.epilogue_inputs, context.result)
    for number, (nest, work) in enumerate(renamed(made, names)):
        yield nest, work, 0 if number else cycles


def epilogue_nests(context: OperatorContext) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the nests of an operator's epilogue and what cores do in them."""
    n_members, _ = output_chunk(context.spec, context.plan)
    return _scattered(context, n_members) if context.is_scattered else _whole(context)


def _nest(context: OperatorContext, result_strides: AxisSizes) -> VertexNest:
    """Return the nest over the parallel axes in the operator's order; reduction axes have extent 1."""
    spec, plan = context.spec, context.plan
    lengths = geometry.window_lengths(plan, context.output_slot)
    strides = axis_strides(spec.output, lengths)
    inputs = [
        (name, TaskOperand(operand.dtype, axis_strides(operand, lengths)))
        for name, operand in zip(context.epilogue_inputs, spec.epilogue_inputs, strict=True)
    ]
    operands = (
        (context.accumulator, TaskOperand(spec.acc_dtype, strides)),
        *inputs,
        (context.result, TaskOperand(spec.output.dtype, result_strides)),
    )
    return VertexNest(spec.epilogue or identity(), "none", (), operands)


def _whole(context: OperatorContext) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the epilogue over every core's whole window; cut at its seam only where the position matters."""
    spec, plan = context.spec, context.plan
    lengths = geometry.window_lengths(plan, context.output_slot)
    nest = _nest(context, axis_strides(spec.output, lengths))
    tiles = np.arange(plan.n_cores)
    if not uses_position((_function(context),), ()):
        extents = tuple(n if a in spec.output.axes else 1 for a, n in enumerate(lengths))
        work = Work(
            tiles,
            np.broadcast_to(np.array(extents, np.int64), (len(tiles), len(extents))),
            np.zeros((len(tiles), len(nest.operands)), np.int64),
            np.ones(len(tiles), np.bool_),
        )
        yield nest, work
        return
    for part in window_parts(spec, plan, context.output_positions):
        chosen = np.flatnonzero(part.extents.all(axis=1))
        local = part.local[chosen]
        slots = local % np.array(lengths)
        origin = geometry.coordinates(plan)[chosen] * np.array(plan.lengths) + local
        offsets = _offsets(nest, slots)
        yield nest, Work(chosen, part.extents[chosen], offsets, np.ones(len(chosen), np.bool_), origin)


def _offsets(nest: VertexNest, slots: Ints) -> Ints:
    """Return the byte offsets of every operand at slot coordinates (cores, axes)."""
    return np.stack(
        [(slots * np.array(o.strides)).sum(axis=1) * size_bytes(o.dtype) for _, o in nest.operands], axis=1
    )


def _function(context: OperatorContext) -> ScalarFunction:
    return context.spec.epilogue or identity()


def _scattered(context: OperatorContext, n_members: int) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the epilogue over every core's chunk of the flattened window, box by box.

    Chunk k lies with the core of rank k; a chunk is a run of slots, so it is at most one partial row, whole rows, and
    another partial row per dim.
    """
    spec, plan = context.spec, context.plan
    lengths = geometry.window_lengths(plan, context.output_slot)
    strides = axis_strides(spec.output, lengths)
    shape = geometry.partition_shape(spec.output, lengths)
    n_slots = prod(shape)
    chunk = chunk_slots(n_slots, n_members)
    ranks = groups(spec, plan, context.output_positions).ranks
    starts = geometry.window_starts(plan, context.output_slot, context.output_positions)
    by_rank: dict[int, list[tuple[AxisSizes, AxisSizes]]] = {
        rank: _boxes(shape, rank * chunk, min(chunk, max(n_slots - rank * chunk, 0)))
        for rank in range(n_members)
    }
    nest = _nest(context, strides)
    if _is_flat(nest) and not uses_position((_function(context),), ()):
        yield _flat(nest, ranks, chunk, n_slots)
        return
    axis_of_dim = [dim.terms[0].axis if dim.terms else -1 for dim in spec.output.dims]
    for number in range(max(map(len, by_rank.values()))):
        yield _boxed(
            context,
            nest,
            ranks,
            chunk,
            [b[number : number + 1] for b in by_rank.values()],
            axis_of_dim,
            starts,
        )


def _is_flat(nest: VertexNest) -> bool:
    """Return whether every input is walked as the accumulator is, or not at all."""
    strides = nest.operands[0][1].strides
    return all(o.strides == strides or not any(o.strides) for _, o in nest.operands[:-1])


def _flat(nest: VertexNest, ranks: Ints, chunk: int, n_slots: int) -> tuple[VertexNest, Work]:
    """Return a nest over the slots of a chunk."""
    strides = nest.operands[0][1].strides
    operands = tuple(
        (name, TaskOperand(o.dtype, (1,) if any(o.strides) or o.strides == strides else (0,)))
        for name, o in nest.operands[:-1]
    )
    name, result = nest.operands[-1]
    flat = VertexNest(nest.body, "none", (), (*operands, (name, TaskOperand(result.dtype, (1,)))))
    widths = np.clip(n_slots - ranks * chunk, 0, chunk)
    tiles = np.flatnonzero(widths > 0)
    first = ranks[tiles] * chunk
    columns = [first * o.strides[0] * size_bytes(o.dtype) for _, o in operands]
    offsets = np.column_stack([*columns, np.zeros(len(tiles), np.int64)])
    return flat, Work(tiles, widths[tiles, None], offsets, np.ones(len(tiles), np.bool_))


def _boxed(
    context: OperatorContext,
    nest: VertexNest,
    ranks: Ints,
    chunk: int,
    boxes: list[list[tuple[AxisSizes, AxisSizes]]],
    axis_of_dim: list[int],
    starts: Ints,
) -> tuple[VertexNest, Work]:
    """Return the work on one box per rank: `boxes[rank]` holds (first coordinates, extents) per dim, or nothing."""
    plan = context.plan
    n_axes = len(plan.f_op)
    by_tile: list[int] = ranks.tolist()
    has_box = np.array([bool(boxes[rank]) for rank in by_tile], np.bool_)
    tiles = np.flatnonzero(has_box)
    first = np.zeros((len(tiles), n_axes), np.int64)
    extents = np.ones((len(tiles), n_axes), np.int64)
    for row, tile in enumerate(tiles.tolist()):
        begin, size = boxes[int(ranks[tile])][0]
        for d, axis in enumerate(axis_of_dim):
            if axis >= 0:
                first[row, axis], extents[row, axis] = begin[d], size[d]
    offsets = _offsets(nest, first)
    offsets[:, -1] -= ranks[tiles] * chunk * size_bytes(nest.operands[-1][1].dtype)
    origin = None
    if uses_position((_function(context),), ()):
        lengths = np.array(geometry.window_lengths(plan, context.output_slot))
        local = starts[tiles] + (first - starts[tiles]) % lengths
        origin = geometry.coordinates(plan)[tiles] * np.array(plan.lengths) + local % np.array(plan.lengths)
    return nest, Work(tiles, extents, offsets, np.ones(len(tiles), np.bool_), origin)


def _boxes(shape: tuple[int, ...], first: int, count: int) -> list[tuple[AxisSizes, AxisSizes]]:
    """Return a run of row-major slots as boxes (first coordinates, extents), in order."""
    if count <= 0:
        return []
    if not shape:
        return [((), ())]
    inner = prod(shape[1:])
    boxes: list[tuple[AxisSizes, AxisSizes]] = []
    row, offset = divmod(first, inner)
    if offset or count < inner:
        here = min(count, inner - offset)
        boxes += [((row, *f), (1, *e)) for f, e in _boxes(shape[1:], offset, here)]
        count, row = count - here, row + 1
    n_rows, rest = divmod(count, inner)
    if n_rows:
        boxes.append(((row, *(0,) * (len(shape) - 1)), (n_rows, *shape[1:])))
    if rest:
        boxes += [((row + n_rows, *f), (1, *e)) for f, e in _boxes(shape[1:], 0, rest)]
    return boxes
