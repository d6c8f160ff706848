"""The compute steps of a plan, measured: each different one runs once on the instruction-set simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from t10.chip import ChipSpec
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.core.task import Task
from t10.core.tile import TileRange
from t10.cost.measured import StepCycles
from t10.emit.epilogue import epilogue_nests
from t10.emit.lowering_context import OperatorContext
from t10.emit.nest import sub_task_work, whole_axes
from t10.emit.vertices import Lie, VertexNest, Work, tasks
from t10.errors import UnsupportedOpError
from t10.profile.measure import cycles_of

Progress = Callable[[str, int, int], None]
MOSTLY = 3
"""Sub-tasks from which on most of a nest adds to what the first has begun."""


def measured_steps(
    plan: ModulePlan, chip: ChipSpec, progress: Progress | None = None
) -> dict[str, StepCycles]:
    """Return what the sub-task and the epilogue of every operator take, launches included.

    A step is measured as lowering cuts it, vertex by vertex, by the code that it gets where its operands lie. Steps
    that do not fit one tile side by side, or that no codelet computes, are left out (0).
    """
    specs = {spec.name: spec for spec in plan.graph.operators}
    memory = chip.tile_memory
    places = {b.name: TileRange(memory.base + b.address_bytes, b.size_bytes, memory) for b in plan.buffers}
    known: dict[tuple[OperatorSpec, OperatorPlan, frozenset[int], Lie], StepCycles] = {}
    result: dict[str, StepCycles] = {}
    for number, scheduled in enumerate(plan.operators):
        if progress:
            progress("measure", number, len(plan.operators))
        spec = specs[scheduled.name]
        context = _context(spec, scheduled, places)
        names = (*context.inputs, *context.epilogue_inputs, context.accumulator, context.result)
        lie = Lie.of([places[name] for name in names])
        key = (canonical(spec), scheduled.active.plan, context.whole, lie)
        if key not in known:
            known[key] = _measured(context, scheduled, chip, places)
        result[scheduled.name] = known[key]
    return result


def _context(
    spec: OperatorSpec, scheduled: ScheduledOperator, places: Mapping[str, TileRange]
) -> OperatorContext:
    """Return an operator before its first statement; variables are the buffers that hold its operands."""
    buffers = [arrival.buffer for arrival in sorted(scheduled.arrivals, key=lambda a: a.operand)]
    result, accumulator = f"value:{spec.output.name}", f"accumulator:{spec.name}"
    return OperatorContext(
        spec,
        scheduled.active.plan,
        tuple(buffers[: len(spec.inputs)]),
        tuple(buffers[len(spec.inputs) :]),
        accumulator if accumulator in places else result,
        result,
        ((0,) * len(spec.axes),) * len(spec.rotatable),
        whole_axes(spec, scheduled),
    )


def _measured(
    context: OperatorContext, scheduled: ScheduledOperator, chip: ChipSpec, places: Mapping[str, TileRange]
) -> StepCycles:
    plan = context.plan
    works = sub_task_work(context, (0,) * len(plan.steps), plan.n_sub_tasks < MOSTLY)
    sub_task = _work_cycles(chip, works, places)
    after = 0
    if context.spec.epilogue is not None:
        done = reduce(OperatorContext.after, scheduled.body, context)
        after = _work_cycles(chip, epilogue_nests(done), places)
    return StepCycles(sub_task, after)


def _work_cycles(
    chip: ChipSpec, works: Iterable[tuple[VertexNest, Work]], places: Mapping[str, TileRange]
) -> int:
    """Return the cycles of compute sets one after the other, launches included; 0 where one cannot be measured."""
    total = 0
    for nest, work in works:
        slowest = 0
        for _, task in tasks(nest, work, Lie.of([places[name] for name, _ in nest.operands])):
            measured = _cycles(task)
            if measured is None:
                return 0
            slowest = max(slowest, measured)
        total += slowest + chip.launch_cycles
    return total


def _cycles(task: Task) -> int | None:
    try:
        return cycles_of(task)
    except UnsupportedOpError:
        return None
