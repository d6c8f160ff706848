"""Compute steps priced by measurement: what a plan's own steps took on the instruction-set simulator.

A plan is searched with fitted costs; its steps are then few enough to run each of them once. What was measured replaces
what was fitted, in the plan's cycles and for the simulators that execute it; everything else is as the base model says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from t10.core.costs import shift_cycles
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.program import Shift
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.cost.ipu import IpuCostModel
from t10.cost.model import CostModel
from t10.cost.operator import epilogue_cycles, shift_bytes


@dataclass(frozen=True, slots=True)
class StepCycles:
    """Measured cycles of one operator's sub-task and epilogue, launches included; 0 for what was not measured.

    `shifts` are (axis, operands that advance along it together, cycles).
    """

    sub_task: int = 0
    epilogue: int = 0
    shifts: tuple[tuple[int, tuple[int, ...], int], ...] = ()


class MeasuredCostModel:
    """A cost model in which the steps of named operators take what was measured."""

    def __init__(self, base: IpuCostModel, steps: Mapping[str, StepCycles]) -> None:
        """Keep the model underneath and the measured steps by operator."""
        self.base = base
        self.steps = steps

    def __getattr__(self, name: str) -> Any:
        """Return everything else of the model underneath."""
        return getattr(self.base, name)

    def sub_task_cycles(self, spec: OperatorSpec, box: AxisSizes) -> int:
        """Return the cycles of an operator's compute step, measured where it was."""
        measured = self.steps.get(spec.name, StepCycles()).sub_task
        return measured or self.base.sub_task_cycles(spec, box)

    def epilogue_cycles(self, spec: OperatorSpec, n_slots: int, run: int) -> int:
        """Return the cycles of an operator's epilogue, measured where it was."""
        measured = self.steps.get(spec.name, StepCycles()).epilogue
        return measured or self.base.epilogue_cycles(spec, n_slots, run)

    def plan_shift_cycles(self, spec: OperatorSpec, statement: Shift) -> int:
        """Return the cycles of one of an operator's shifts; 0 where it was not measured."""
        key = (statement.axis, statement.operands)
        shifts = self.steps.get(spec.name, StepCycles()).shifts
        return next((cycles for axis, operands, cycles in shifts if (axis, operands) == key), 0)


def recosted(plan: ModulePlan, cost: CostModel) -> ModulePlan:
    """Return a plan whose cycles of compute steps and shifts are those of `cost`; everything else stays."""
    specs = {spec.name: spec for spec in plan.graph.operators}
    return replace(plan, operators=tuple(_repriced(specs[each.name], each, cost) for each in plan.operators))


def _repriced(spec: OperatorSpec, scheduled: ScheduledOperator, cost: CostModel) -> ScheduledOperator:
    plan = scheduled.active.plan
    compute = plan.n_sub_tasks * cost.sub_task_cycles(spec, plan.box)
    compute += epilogue_cycles(cost, spec, plan)
    shifts = [statement for statement in scheduled.body if isinstance(statement, Shift)]
    shift = sum(
        shift_cycles(cost, spec, statement, shift_bytes(spec, plan, statement.operands, statement.axis))
        for statement in shifts
    )
    cycles = replace(scheduled.active.cycles, compute=compute, shift=shift)
    return replace(scheduled, active=replace(scheduled.active, cycles=cycles))
