"""Statements priced by measurement: what a plan's own steps took on the simulators of what is emitted.

A plan is searched with fitted costs; its statements are then few enough to time each of them once. What was measured
replaces what was modelled, in the plan's cycles and for the simulator that executes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from t10.core.plan import Cycles
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, SubTask
from t10.core.schedule import ModulePlan, ScheduledOperator
from t10.cost.ipu import IpuCostModel


class MeasuredCostModel:
    """A cost model under which the statements of a plan's operators take what was measured."""

    def __init__(self, base: IpuCostModel, measured: Mapping[str, tuple[int, ...]]) -> None:
        """Keep the model underneath, and the cycles of every statement by operator."""
        self.base = base
        self.measured = measured

    def __getattr__(self, name: str) -> Any:
        """Return everything else of the model underneath."""
        return getattr(self.base, name)

    def statement_cycles(self, operator: str, number: int) -> int | None:
        """Return the cycles of a statement of an operator's body; None where they were not measured."""
        cycles = self.measured.get(operator, ())
        return cycles[number] if number < len(cycles) else None


def recosted(plan: ModulePlan, measured: Mapping[str, tuple[int, ...]]) -> ModulePlan:
    """Return a plan whose operators take what their statements were measured to take."""
    return replace(plan, operators=tuple(_recosted(each, measured[each.name]) for each in plan.operators))


def _recosted(scheduled: ScheduledOperator, measured: tuple[int, ...]) -> ScheduledOperator:
    kinds = {arrival.operand: arrival.kind for arrival in scheduled.arrivals}
    arrived: dict[int, int] = {}
    compute = shift = reduce = 0
    for statement, cycles in zip(scheduled.body, measured, strict=True):
        match statement:
            case Arrive(operand):
                arrived[operand] = cycles
            case Fill() | SubTask() | Epilogue():
                compute += cycles
            case Shift():
                shift += cycles
            case Reduce():
                reduce += cycles
            case _:
                assert_never(statement)
    arrivals = tuple(replace(a, cycles=arrived.get(a.operand, a.cycles)) for a in scheduled.arrivals)
    total = Cycles(
        compute=compute,
        shift=shift,
        reduce=reduce,
        relayout=sum(cycles for operand, cycles in arrived.items() if kinds[operand] == "relayout"),
        setup=sum(cycles for operand, cycles in arrived.items() if kinds[operand] == "setup"),
    )
    active = replace(scheduled.active, cycles=total)
    front = tuple(active if each.plan == active.plan else each for each in scheduled.pareto)
    return replace(scheduled, active=active, arrivals=arrivals, pareto=front)
