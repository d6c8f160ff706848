"""Sub-tasks, and what accumulators hold before the first of them."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.costs import fill_cycles, step_part_cycles
from t10.core.device import Step
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.neutral import neutral_value
from t10.core.products import hands_on_rounded
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.core.sub_task_nest import sub_task_work
from t10.core.vertex_nest import VertexNest, Work, renamed
from t10.cost import CostModel
from t10.emit.builder import Builder, flat_operand
from t10.emit.lowering_context import OperatorContext

Cores = Bools


def sub_task(
    builder: Builder, cost: CostModel, context: OperatorContext, positions: AxisSizes, begins: Cores
) -> list[Step]:
    """Return the executions of one sub-task, one per part; `begins` (cores,) where its outputs hold nothing yet."""
    spec, plan, whole = context.run, context.plan, context.whole
    note = f"box {'x'.join(map(str, plan.box))} at position {list(positions)}"
    key = ("sub-task", builder.kind_of(spec), plan, whole, positions, begins.tobytes())
    made = builder.once(key, lambda: tuple(sub_task_work(spec, plan, positions, begins, whole)))
    adds = spec.combine != "none" and not begins.any()
    cycles = step_part_cycles(cost, spec, plan, positions, adds=adds)
    sums = (builder.shift_buffer("f32"),) if hands_on_rounded(spec) else ()
    names = (*context.inputs, *context.first, *sums, context.accumulator)
    # Of steps in one part, all but the first of others have no cycles of their own.
    each = (*cycles, *(0,) * len(made))[: len(made)]
    booked = zip(renamed(made, names), each, strict=True)
    return [builder.execute(spec.name, "sub_task", nest, work, n, note) for (nest, work), n in booked]


def fill(builder: Builder, cost: CostModel, context: OperatorContext, cores: Cores) -> list[Step]:
    """Return the execution that puts the neutral element into the accumulators of `cores`, if there are any."""
    spec, tiles = context.spec, np.flatnonzero(cores)
    if not tiles.size:
        return []
    body = ScalarFunction(0, (ScalarOp("const", (), spec.acc_dtype, neutral_text(spec)),), 0)
    nest = VertexNest(body, "none", (), ((context.accumulator, flat_operand(spec.acc_dtype)),))
    work = flat_work(tiles, np.full(len(tiles), context.n_output_slots), np.zeros((len(tiles), 1), np.int64))
    return [builder.execute(spec.name, "fill", nest, work, fill_cycles(cost, spec, context.plan))]


def flat_work(tiles: Ints, extents: Ints, offsets: Ints) -> Work:
    """Return work over one axis that replaces what was there."""
    return Work(tiles, extents[:, None], offsets, np.ones(len(tiles), np.bool_))


def neutral_text(spec: OperatorSpec) -> str:
    """Return the spelling of the element that changes nothing when it is combined."""
    return constant_text(neutral_value(spec.combine, spec.acc_dtype))
