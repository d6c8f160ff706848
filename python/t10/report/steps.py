"""The steps of an operator in the order of their time, as the plan simulator charges them, and folded by repetition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t10.core import shift_rounds
from t10.core.costs import (
    fill_cycles,
    overlaps,
    part_cycles,
    rotates_output,
    shift_cycles,
    step_cycles,
)
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.overlap import is_beside_step
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement, SubTask
from t10.core.schedule import ScheduledOperator
from t10.cost import CostModel
from t10.cost.operator import combine_cycles, epilogue_cycles
from t10.report.table import KINDS_IN_TIME
from t10.report.traffic import reduce_bytes

NAMES = (*KINDS_IN_TIME, "fill", "sub-task", "epilogue")
"""What steps do: a kind of cycles, or what of computing."""
LONGEST_PATTERN = 64
"""Steps that are looked at as one pattern that repeats."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stretch in which all cores do one of `NAMES`: modelled cycles, and bytes into the busiest core."""

    name: str
    cycles: int
    n_bytes: int = 0

    @property
    def kind(self) -> str:
        """Return the kind of its cycles."""
        return self.name if self.name in KINDS_IN_TIME else "compute"


Folded = tuple[tuple[int, tuple[Step, ...]], ...]
"""Patterns of steps, each with how often it repeats."""


def operator_steps(
    spec: OperatorSpec, scheduled: ScheduledOperator, costs: CostModel
) -> tuple[Step, ...] | None:
    """Return the steps of an operator under the costs of where its buffers lie (`core.placed_costs`).

    None where they do not add up to the cycles of its plan: that is not of these costs.
    """
    planned = scheduled.active.cycles
    walk = _Walk(spec, scheduled, costs)
    steps = [Step("wait", planned.wait), *map(walk.step, scheduled.body)]
    kept = tuple(step for step in steps if step.cycles)
    sums = {kind: sum(step.cycles for step in kept if step.kind == kind) for kind in KINDS_IN_TIME}
    return kept if all(sums[kind] == getattr(planned, kind) for kind in KINDS_IN_TIME) else None


class _Walk:
    """Prices the statements of an operator's program one after the other."""

    def __init__(self, spec: OperatorSpec, scheduled: ScheduledOperator, costs: CostModel) -> None:
        self.spec, self.plan, self.costs = spec, scheduled.active.plan, costs
        self.arrivals = {each.operand: each for each in scheduled.arrivals}
        self.parts = part_cycles(costs, spec, self.plan)
        self.whole = {adds: step_cycles(costs, spec, self.plan, adds=adds) for adds in (False, True)}
        self.touched = set[AxisSizes]()
        self.n_done = self.last_cycles = 0

    def step(self, statement: Statement) -> Step:
        """Return the step of a statement; one without cycles where it takes no time."""
        spec, plan, costs = self.spec, self.plan, self.costs
        match statement:
            case Arrive(operand):
                arrival = self.arrivals[operand]
                return Step(arrival.kind, arrival.cycles, arrival.received_bytes)
            case Fill():
                return Step("fill", fill_cycles(costs, spec, plan))
            case SubTask(positions):
                return self._sub_task(positions)
            case Shift():
                n_bytes = shift_rounds.shift_bytes(spec, plan, statement)
                return Step("shift", self._shift_cycles(statement), n_bytes)
            case Reduce():
                return Step("reduce", combine_cycles(costs, spec, plan), reduce_bytes(spec, plan))
            case Epilogue():
                return Step("epilogue", epilogue_cycles(costs, spec, plan))

    def _sub_task(self, positions: AxisSizes) -> Step:
        spec = self.spec
        outputs = tuple(at for axis, at in enumerate(positions) if axis in spec.output.axes)
        adds = spec.combine != "none" and (rotates_output(spec, self.plan) or outputs in self.touched)
        self.touched.add(outputs)
        self.n_done += 1
        self.last_cycles = self.whole[adds] if self.parts is None else sum(self.parts[positions])
        return Step("sub-task", self.last_cycles)

    def _shift_cycles(self, statement: Shift) -> int:
        cycles = shift_cycles(self.costs, self.spec, self.plan, statement)
        is_between = 0 < self.n_done < self.plan.n_sub_tasks
        if is_between and overlaps(self.costs) and is_beside_step(self.plan, statement.axis):
            return max(cycles - self.last_cycles, 0)
        return cycles


def folded(steps: Sequence[Step]) -> Folded:
    """Return steps as patterns that repeat; those that do not are patterns of their own, together."""
    found: list[tuple[int, tuple[Step, ...]]] = []
    single: list[Step] = []
    at = 0
    while at < len(steps):
        length, count = _pattern(steps, at)
        if count == 1:
            single.append(steps[at])
            at += 1
            continue
        if single:
            found.append((1, tuple(single)))
            single = []
        found.append((count, tuple(steps[at : at + length])))
        at += length * count
    return (*found, (1, tuple(single))) if single else tuple(found)


def _pattern(steps: Sequence[Step], at: int) -> tuple[int, int]:
    """Return length and count of the pattern from a step on that repeats over most steps."""
    best = (1, 1)
    for length in range(1, min(LONGEST_PATTERN, (len(steps) - at) // 2) + 1):
        pattern, count = steps[at : at + length], 1
        while steps[at + length * count : at + length * (count + 1)] == pattern:
            count += 1
        if count > 1 and length * count > best[0] * best[1]:
            best = (length, count)
    return best
