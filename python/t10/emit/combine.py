"""How partial sums that lie on several cores become results: exchanges into the shift buffer and additions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from t10.core.device import Pattern, Step
from t10.core.dtypes import size_bytes
from t10.core.scalar import identity
from t10.core.task import TaskOperand
from t10.cost import CostModel
from t10.cost.operator import combine_cycles, output_chunk
from t10.emit.builder import Builder
from t10.emit.patterns import NOTHING, pattern
from t10.emit.reduction import Round, all_rounds, groups, scatter_rounds
from t10.emit.running import Running
from t10.emit.vertices import Nest, Work

EVEN_BYTES = 8


def combine_partials(builder: Builder, cost: CostModel, running: Running) -> list[Step]:
    """Return how partial sums are combined, nothing where every output element is on one core."""
    spec, plan = running.spec, running.plan
    n_members, _ = output_chunk(spec, plan)
    if n_members == 1 or spec.combine == "none":
        return []
    item_bytes = size_bytes(spec.acc_dtype)
    buffer = builder.shift_buffer(spec.acc_dtype)
    n_buffer = builder.variables[buffer].shape[0]
    even = max(EVEN_BYTES // item_bytes, 1)
    make = all_rounds if plan.reduce == "all" else scatter_rounds

    def rounds() -> list[tuple[Pattern, Round]]:
        made = make(groups(spec, plan), running.n_output_slots, n_buffer, even)
        return [(pattern(one.moves, item_bytes), replace(one, moves=NOTHING)) for one in made]

    kind = builder.kind_of(spec)
    cycles = builder.once(("reduce cycles", kind, plan), lambda: combine_cycles(cost, spec, plan))
    steps: list[Step] = []
    key = ("reduce", kind, plan, n_buffer)
    for number, (made, one) in enumerate(builder.once(key, rounds)):
        note = f"partial results of {n_members} cores"
        charged = 0 if number else cycles
        steps.append(
            builder.exchange(spec.name, "reduce", "", (running.accumulator,), buffer, made, charged, note)
        )
        # Its cycles are counted with the reduction's, as the cost model does.
        steps.append(_combine(builder, running, one, buffer, item_bytes))
    return steps


def _combine(builder: Builder, running: Running, one: Round, buffer: str, item_bytes: int) -> Step:
    """Return the execution that combines what landed with the accumulators."""
    spec = running.spec
    nest = Nest(
        identity(),
        spec.combine,
        (0,),
        (
            (buffer, TaskOperand(spec.acc_dtype, (one.stride, 1))),
            (running.accumulator, TaskOperand(spec.acc_dtype, (0, 1))),
        ),
    )
    tiles = np.flatnonzero(one.widths > 0)
    extents = np.column_stack([np.full(len(tiles), one.n_parts), one.widths[tiles]])
    offsets = np.column_stack([np.zeros(len(tiles), np.int64), one.first[tiles] * item_bytes])
    work = Work(tiles, extents, offsets, np.full(len(tiles), one.replaces))
    return builder.execute(spec.name, "combine", nest, work, 0)
