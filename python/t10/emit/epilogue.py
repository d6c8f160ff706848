"""What follows the accumulation: the epilogue on the output elements each core owns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.contiguous_parts import window_parts
from t10.core.epilogue_nest import chunk_nests, epilogue_nest, nest_offsets
from t10.core.reduction import groups
from t10.core.task_nest import uses_position
from t10.core.vertex_nest import VertexNest, Work, renamed
from t10.cost import CostModel
from t10.cost.operator import epilogue_cycles, output_chunk
from t10.emit.builder import Builder
from t10.emit.lowering_context import OperatorContext


def epilogue_work(
    builder: Builder, cost: CostModel, context: OperatorContext
) -> Iterator[tuple[VertexNest, Work, int]]:
    """Yield the nests of an operator's epilogue (a copy where it has none), what cores do in them, and cycles."""
    spec, plan = context.spec, context.plan
    reduced = "scatter" if context.is_scattered else "none" if plan.reduce == "none" else "all"
    charged = replace(plan, reduce=reduced)
    key = ("epilogue", builder.kind_of(spec), charged, context.output_positions)
    made = builder.once(key, lambda: tuple(epilogue_nests(context)))
    cycles = epilogue_cycles(cost, spec, charged)
    names = (context.accumulator, *context.epilogue_inputs, context.result)
    for number, (nest, work) in enumerate(renamed(made, names)):
        yield nest, work, 0 if number else cycles


def epilogue_nests(context: OperatorContext) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the nests of an operator's epilogue and what cores do in them; operands have numbers for names."""
    return _scattered(context) if context.is_scattered else _whole(context)


def _whole(context: OperatorContext) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the epilogue over every core's whole window; cut at its seam only where the position matters."""
    spec, plan = context.spec, context.plan
    lengths = geometry.window_lengths(plan, context.output_slot)
    nest = epilogue_nest(spec, lengths)
    tiles = np.arange(plan.n_cores)
    if not uses_position((nest.body,), ()):
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
        origin = geometry.coordinates(plan)[chosen] * np.array(plan.lengths) + local
        offsets = nest_offsets(nest, local % np.array(lengths))
        yield nest, Work(chosen, part.extents[chosen], offsets, np.ones(len(chosen), np.bool_), origin)


def _scattered(context: OperatorContext) -> Iterator[tuple[VertexNest, Work]]:
    """Yield the epilogue over every core's chunk of the flattened window: chunk k lies with the core of rank k."""
    spec, plan = context.spec, context.plan
    n_members, _ = output_chunk(spec, plan)
    lengths = geometry.window_lengths(plan, context.output_slot)
    ranks = groups(spec, plan, context.output_positions).ranks
    for nest, of_ranks in chunk_nests(spec, lengths, n_members):
        row_of_rank = np.full(n_members, -1, np.int64)
        row_of_rank[of_ranks.tiles] = np.arange(len(of_ranks.tiles))
        tiles = np.flatnonzero(row_of_rank[ranks] >= 0)
        rows = row_of_rank[ranks[tiles]]
        origin = None if of_ranks.origin is None else _global(context, tiles, of_ranks.origin[rows])
        yield (
            nest,
            Work(tiles, of_ranks.extents[rows], of_ranks.offsets[rows], of_ranks.initial[rows], origin),
        )


def _global(context: OperatorContext, tiles: Ints, slots: Ints) -> Ints:
    """Return the global indices, (tiles, axes), of slots of the output's windows."""
    plan = context.plan
    lengths = np.array(geometry.window_lengths(plan, context.output_slot))
    starts = geometry.window_starts(plan, context.output_slot, context.output_positions)[tiles]
    local = starts + (slots - starts) % lengths
    return geometry.coordinates(plan)[tiles] * np.array(plan.lengths) + local % np.array(plan.lengths)
