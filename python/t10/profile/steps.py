"""The steps of a plan, measured: each different one runs once on the instruction-set or the exchange simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Epilogue, Fill, Shift, SubTask
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.core.task import Task, TaskOperand
from t10.cost.measured import StepCycles
from t10.emit.epilogue import epilogue_nests
from t10.emit.lowering_context import OperatorContext
from t10.emit.nest import fill_work, initial_cores, sub_task_work, whole_axes
from t10.emit.shifts import shift_rounds
from t10.emit.tasks import alignment_bytes, simplified
from t10.emit.vertices import VertexNest, Work
from t10.errors import UnsupportedOpError
from t10.profile.measure import cycles_of
from t10.sim.device.phase import ExchangeModel, pattern_time

Progress = Callable[[str, int, int], None]
APART_BYTES = 1 << 20
"""Between operands of a shift: none of their words touch."""
MOST_SUB_TASKS = 8
"""Sub-tasks of a nest that are measured: the first begins sums, the next add to them."""


def measured_steps(
    plan: ModulePlan, chip: ChipSpec, progress: Progress | None = None
) -> dict[str, StepCycles]:
    """Return what the sub-task, the epilogue and the shifts of every operator take, launches included.

    A step is measured as lowering cuts it, vertex by vertex. Operands lie in memory elements of their own, unless they
    are of one buffer or one takes over another's. What an operator without an epilogue copies from its accumulator
    counts as one.
    Steps that do not fit one tile side by side, or that no codelet computes, are left out (0).
    """
    specs = {spec.name: spec for spec in plan.graph.operators}
    extents = {b.name: range(b.address_bytes, b.address_bytes + b.size_bytes) for b in plan.buffers}
    known: dict[object, StepCycles] = {}
    result: dict[str, StepCycles] = {}
    for number, scheduled in enumerate(plan.operators):
        if progress:
            progress("measure", number, len(plan.operators))
        spec = specs[scheduled.name]
        names = _buffers(spec, scheduled, extents)
        lie = tuple(extents[name] for name in names)
        shared = frozenset(
            (i, j) for i in range(len(lie)) for j in range(i + 1, len(lie)) if _overlap(lie[i], lie[j])
        )
        key = (canonical(spec), scheduled.active.plan, whole_axes(spec, scheduled), shared)
        if key not in known:
            known[key] = _measured(spec, scheduled, chip, shared)
        result[scheduled.name] = known[key]
    return result


def _buffers(
    spec: OperatorSpec, scheduled: ScheduledOperator, extents: Mapping[str, range]
) -> tuple[str, ...]:
    """Return the buffers of an operator's operands, of its accumulator and of its result."""
    arrivals = sorted(scheduled.arrivals, key=lambda arrival: arrival.operand)
    accumulator, result = f"accumulator:{spec.name}", f"value:{spec.output.name}"
    return (
        *(arrival.buffer for arrival in arrivals),
        accumulator if accumulator in extents else result,
        result,
    )


def _overlap(first: range, second: range) -> bool:
    return max(first.start, second.start) < min(first.stop, second.stop)


def _measured(
    spec: OperatorSpec, scheduled: ScheduledOperator, chip: ChipSpec, shared: frozenset[tuple[int, int]]
) -> StepCycles:
    """Return the mean cycles of a sub-task, what is filled before the first included, and those of the epilogue.

    `shared` are the pairs of buffers, in the order of `_buffers`, that lie on the same bytes.
    """
    plan = scheduled.active.plan
    names = tuple(map(str, range(len(spec.operands) + 2)))
    n_inputs = len(spec.inputs)
    context = OperatorContext(
        spec,
        plan,
        names[:n_inputs],
        names[n_inputs:-2],
        names[-2],
        names[-1],
        ((0,) * len(spec.axes),) * len(spec.rotatable),
        whole_axes(spec, scheduled),
    )
    cores = initial_cores(context, scheduled.body)
    before = after = 0
    sub_tasks: list[int] = []
    shifts: dict[tuple[int, tuple[int, ...]], int] = {}
    for number, statement in enumerate(scheduled.body):
        match statement:
            case Fill():
                before += _work_cycles(chip, shared, fill_work(context, cores[number]))
            case SubTask(positions) if len(sub_tasks) < MOST_SUB_TASKS:
                sub_tasks.append(_work_cycles(chip, shared, sub_task_work(context, positions, cores[number])))
            case Shift(operands, axis) if (axis, operands) not in shifts:
                shifts[axis, operands] = _shift_cycles(chip, spec, plan, statement)
            case Epilogue():
                after = _work_cycles(chip, shared, epilogue_nests(context))
            case _:
                pass
        context = context.after(statement)
    moved = tuple((axis, operands, cycles) for (axis, operands), cycles in shifts.items())
    if 0 in sub_tasks:
        return StepCycles(0, after, moved)
    # Those that are not measured are like the last that is.
    total = before + sum(sub_tasks) + (plan.n_sub_tasks - len(sub_tasks)) * sub_tasks[-1]
    return StepCycles(round(total / plan.n_sub_tasks), after, moved)


def _shift_cycles(chip: ChipSpec, spec: OperatorSpec, plan: OperatorPlan, statement: Shift) -> int:
    """Return the cycles of the exchanges of a shift and of the copies out of the shift buffer."""
    model = ExchangeModel(chip, has_elements=False)
    total = 0
    for one in shift_rounds(spec, plan, statement, chip.shift_buffer_bytes):
        for passes in one.passes:
            phases = [passes.pattern, *(pattern for _, pattern in passes.copied_out)]
            starts = np.arange(1, len(passes.copied_out) + 1, dtype=np.int64) * APART_BYTES
            total += sum(
                pattern_time(
                    phase, model, chip.n_cores, source_offsets=starts, target_offset=0, is_neighbour=True
                ).cycles
                for phase in phases
            )
    return total


def _work_cycles(
    chip: ChipSpec, shared: frozenset[tuple[int, int]], works: Iterable[tuple[VertexNest, Work]]
) -> int:
    """Return the cycles of compute sets one after the other, launches included; 0 where one cannot be measured.

    Operands are named by the numbers of their buffers.
    """
    total = 0
    for nest, work in works:
        slowest = 0
        buffers = [int(name) for name, _ in nest.operands]
        pairs = [(i, j) for i in range(len(buffers)) for j in range(i + 1, len(buffers))]
        apart = frozenset(
            (i, j) for i, j in pairs if buffers[i] != buffers[j] and (buffers[i], buffers[j]) not in shared
        )
        rows = np.column_stack([work.extents, work.initial[:, None]])
        kinds, of_kind = np.unique(rows, axis=0, return_inverse=True)
        for number, kind in enumerate(kinds.tolist()):
            offsets = work.offsets[of_kind.reshape(-1) == number]
            operands = [
                _placed(operand, column)
                for (_, operand), column in zip(nest.operands, offsets.T, strict=True)
            ]
            task = Task(
                extents=tuple(kind[:-1]),
                inputs=tuple(operands[:-1]),
                output=operands[-1],
                combine=nest.combine,
                body=nest.body,
                reduction_axes=nest.reduction_axes,
                initial=bool(kind[-1]),
                selectors=nest.selectors,
                origin=(0,) * (len(kind) - 1),
                apart=apart,
            )
            measured = _cycles(simplified(task))
            if measured is None:
                return 0
            slowest = max(slowest, measured)
        total += slowest + chip.launch_cycles
    return total


def _placed(operand: TaskOperand, offsets: Ints) -> TaskOperand:
    """Return an operand of a buffer that begins at a multiple of 16 interleaved bytes, at some byte offsets in it."""
    align_bytes = alignment_bytes(operand.dtype, 0, tuple(np.unique(offsets).tolist()))
    return replace(operand, align_bytes=align_bytes, is_interleaved=True)


def _cycles(task: Task) -> int | None:
    try:
        return cycles_of(task)
    except UnsupportedOpError:
        return None
