"""The compute steps of a plan, measured: each different one runs once on the instruction-set simulator."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce

import numpy as np

from t10.chip import ChipSpec
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.core.task import Task, TaskOperand
from t10.core.tile import WIDE_BYTES
from t10.cost.measured import StepCycles
from t10.emit.epilogue import epilogue_nests
from t10.emit.lowering_context import OperatorContext
from t10.emit.nest import sub_task_work, whole_axes
from t10.emit.tasks import simplified
from t10.emit.vertices import VertexNest, Work
from t10.errors import UnsupportedOpError
from t10.profile.measure import cycles_of
from t10.profile.work import apart

Progress = Callable[[str, int, int], None]
MOSTLY = 3
"""Sub-tasks from which on most of a nest adds to what the first has begun."""


def measured_steps(
    plan: ModulePlan, chip: ChipSpec, progress: Progress | None = None
) -> dict[str, StepCycles]:
    """Return what the sub-task and the epilogue of every operator take, launches included.

    A step is measured as lowering cuts it, vertex by vertex, with operands that lie apart and begin at whole words.
    Steps that do not fit one tile side by side, or that no codelet computes, are left out (0).
    """
    specs = {spec.name: spec for spec in plan.graph.operators}
    known: dict[tuple[OperatorSpec, OperatorPlan, frozenset[int]], StepCycles] = {}
    result: dict[str, StepCycles] = {}
    for number, scheduled in enumerate(plan.operators):
        if progress:
            progress("measure", number, len(plan.operators))
        spec = specs[scheduled.name]
        key = (canonical(spec), scheduled.active.plan, whole_axes(spec, scheduled))
        if key not in known:
            known[key] = _measured(spec, scheduled, chip)
        result[scheduled.name] = known[key]
    return result


def _measured(spec: OperatorSpec, scheduled: ScheduledOperator, chip: ChipSpec) -> StepCycles:
    plan = scheduled.active.plan
    context = OperatorContext(
        spec,
        plan,
        tuple(f"in{i}" for i in range(len(spec.inputs))),
        tuple(f"extra{i}" for i in range(len(spec.epilogue_inputs))),
        "accumulator",
        "accumulator" if spec.epilogue is None else "result",
        ((0,) * len(spec.axes),) * len(spec.rotatable),
        whole_axes(spec, scheduled),
    )
    sub_task = _work_cycles(chip, sub_task_work(context, (0,) * len(plan.steps), plan.n_sub_tasks < MOSTLY))
    after = 0
    if spec.epilogue is not None:
        after = _work_cycles(chip, epilogue_nests(reduce(OperatorContext.after, scheduled.body, context)))
    return StepCycles(sub_task, after)


def _work_cycles(chip: ChipSpec, works: Iterable[tuple[VertexNest, Work]]) -> int:
    """Return the cycles of compute sets one after the other, launches included; 0 where one cannot be measured."""
    total = 0
    for nest, work in works:
        slowest = 0
        kinds = np.unique(np.column_stack([work.extents, work.initial[:, None]]), axis=0)
        for kind in kinds.tolist():
            task = Task(
                extents=tuple(kind[:-1]),
                inputs=tuple(_placed(operand) for _, operand in nest.operands[:-1]),
                output=_placed(nest.operands[-1][1]),
                combine=nest.combine,
                body=nest.body,
                reduction_axes=nest.reduction_axes,
                initial=bool(kind[-1]),
                selectors=nest.selectors,
                origin=(0,) * (len(kind) - 1),
            )
            measured = _cycles(simplified(apart(task)))
            if measured is None:
                return 0
            slowest = max(slowest, measured)
        total += slowest + chip.launch_cycles
    return total


def _placed(operand: TaskOperand) -> TaskOperand:
    return replace(operand, align_bytes=WIDE_BYTES, is_interleaved=True)


def _cycles(task: Task) -> int | None:
    try:
        return cycles_of(task)
    except UnsupportedOpError:
        return None
