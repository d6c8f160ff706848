"""Sub-tasks, and what accumulators hold before the first of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from t10.core import geometry
from t10.core.arrays import Bools, Ints
from t10.core.costs import fill_cycles, step_cycles
from t10.core.device import Step
from t10.core.dtypes import size_bytes
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.neutral import neutral_value
from t10.core.placed_costs import reads_left_over
from t10.core.products import zero_padded_axes
from t10.core.program import Fill, Shift, Statement, SubTask
from t10.core.scalar import ScalarFunction, ScalarOp, constant_text
from t10.core.schedule import ScheduledOperator
from t10.core.task import TaskOperand
from t10.core.task_nest import axis_strides, uses_position
from t10.core.vertex_nest import VertexNest, Work, renamed
from t10.cost import CostModel
from t10.emit.builder import Builder, flat_operand
from t10.emit.contiguous_parts import ContiguousPart, lacks_terms, sub_task_parts
from t10.emit.lowering_context import OperatorContext

Cores = Bools


def initial_cores(context: OperatorContext, body: tuple[Statement, ...]) -> dict[int, Cores]:
    """Return, per number of a statement, on which cores a `Fill` fills or a `SubTask` replaces its outputs.

    The first sub-task to touch its outputs after a `Fill` replaces them: then nothing needs to be filled. That does not
    do where accumulators rotate (other cores have touched them), nor where the first part of a core's reduction is all
    padding (nothing touches them).
    """
    result: dict[int, Cores] = {}
    replaces: Cores = np.zeros(context.plan.n_cores, np.bool_)
    touched: set[AxisSizes] = set()
    for number, statement in enumerate(body):
        match statement:
            case Fill():
                result[number] = _filled(context, body[number + 1 :])
                replaces, touched = ~result[number], set()
            case SubTask(positions):
                where = _outputs(context, positions)
                result[number] = np.zeros_like(replaces) if where in touched else replaces
                touched.add(where)
            case _:
                pass
    return result


def _outputs(context: OperatorContext, positions: AxisSizes) -> AxisSizes:
    """Return the positions along the axes that are not summed: sub-tasks that agree in them touch the same outputs."""
    return tuple(p for axis, p in enumerate(positions) if axis not in context.spec.reduction_axes)


def _filled(context: OperatorContext, following: tuple[Statement, ...]) -> Cores:
    """Return which cores' accumulators no first sub-task among the statements after a `Fill` replaces."""
    filled: Cores = np.zeros(context.plan.n_cores, np.bool_)
    touched: set[AxisSizes] = set()
    for statement in following:
        match statement:
            case Fill():
                break
            case Shift(operands) if context.output_slot in operands:
                return np.ones_like(filled)
            case SubTask(positions):
                if _outputs(context, positions) not in touched:
                    filled |= lacks_terms(context.spec, context.plan, positions, context.whole)
                touched.add(_outputs(context, positions))
            case _:
                pass
    return filled


def nest_of(context: OperatorContext) -> VertexNest:
    """Return the loop nest of an operator's sub-tasks, all axes in the operator's order."""
    spec, plan = context.spec, context.plan
    operands = [
        (name, TaskOperand(operand.dtype, axis_strides(operand, geometry.window_lengths(plan, n))))
        for n, (name, operand) in enumerate(zip(context.inputs, spec.inputs, strict=True))
    ]
    lengths = geometry.window_lengths(plan, context.output_slot)
    output = (context.accumulator, TaskOperand(spec.acc_dtype, axis_strides(spec.output, lengths)))
    return VertexNest(spec.body, spec.combine, spec.reduction_axes, (*operands, output), spec.selectors)


def sub_task(
    builder: Builder, cost: CostModel, context: OperatorContext, positions: AxisSizes, begins: Cores
) -> list[Step]:
    """Return the executions of one sub-task, one per part; `begins` (cores,) where its outputs hold nothing yet."""
    spec, plan = context.spec, context.plan
    cycles = step_cycles(cost, spec, plan, adds=spec.combine != "none" and not begins.any())
    note = f"box {'x'.join(map(str, plan.box))} at position {list(positions)}"
    steps: list[Step] = []
    key = ("sub-task", builder.kind_of(spec), plan, context.whole, positions, begins.tobytes())
    made = builder.once(key, lambda: tuple(sub_task_work(context, positions, begins)))
    names = (*context.inputs, context.accumulator)
    for number, (nest, work) in enumerate(renamed(made, names)):
        steps.append(builder.execute(spec.name, "sub_task", nest, work, 0 if number else cycles, note))
    return steps


def sub_task_work(
    context: OperatorContext, positions: AxisSizes, begins: Cores | bool
) -> Iterator[tuple[VertexNest, Work]]:
    """Yield what cores do in the sub-task at a loop state, part by part; `begins` as in `sub_task`."""
    spec, plan = context.spec, context.plan
    nest = nest_of(context)
    begins = np.broadcast_to(begins, plan.n_cores)
    for part in sub_task_parts(spec, plan, positions, context.whole):
        chosen = np.flatnonzero(part.extents.all(axis=1))
        offsets = operand_offsets(context, nest, part, chosen)
        initial = begins[chosen] & part.is_first[chosen]
        if spec.combine == "none":
            initial[:] = True
        origin = None
        if uses_position((spec.body, *(s.index for s in spec.selectors)), spec.selectors):
            origin = geometry.coordinates(plan)[chosen] * np.array(plan.lengths) + part.local[chosen]
        yield nest, Work(chosen, part.extents[chosen], offsets, initial, origin)


def whole_axes(spec: OperatorSpec, scheduled: ScheduledOperator) -> frozenset[int]:
    """Return the axes along which sub-tasks run over whole parts, padding and all: no core then has other code to run.

    Results in padding are nobody's. Sums are over whole parts where padding holds zeros in every input: those that
    arrive, or that the host filled. A result that is read where another operator left it has anything in its padding.
    """
    # What is looked up has to be an index.
    parallel = frozenset(() if spec.selectors else set(range(len(spec.axes))) - set(spec.reduction_axes))
    is_whole = not reads_left_over(spec, scheduled.arrivals)
    return parallel | zero_padded_axes(spec, scheduled.active.plan) if is_whole else parallel


def operand_offsets(context: OperatorContext, nest: VertexNest, part: ContiguousPart, chosen: Ints) -> Ints:
    """Return the byte offset of a part's first element in every operand, shape (chosen cores, operands)."""
    columns: list[Ints] = []
    for n, (_, operand) in enumerate(nest.operands):
        lengths = np.array(geometry.window_lengths(context.plan, n))
        slots = ((part.local[chosen] % lengths) * np.array(operand.strides)).sum(axis=1)
        columns.append(slots * size_bytes(operand.dtype))
    return np.stack(columns, axis=1)


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
