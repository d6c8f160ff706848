"""The order of sub-tasks: a serpentine loop nest over the rotating axes; every step advances one axis by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from t10.core.expression import AxisSizes
from t10.core.plan import OperatorPlan


@dataclass(frozen=True, slots=True)
class NestState:
    """A sub-task: `positions` count the shifts along every axis; then `axis` advances by `direction` (-1: the end)."""

    positions: AxisSizes
    axis: int
    direction: int


def nest_states(plan: OperatorPlan) -> Iterator[NestState]:
    """Yield every sub-task in order; the last has axis -1."""
    positions = [0] * len(plan.steps)
    directions = [1] * len(plan.steps)
    while True:
        axis = _next_axis(plan, positions, directions)
        yield NestState(tuple(positions), axis, directions[axis] if axis >= 0 else 0)
        if axis < 0:
            return
        positions[axis] += directions[axis]


def _next_axis(plan: OperatorPlan, positions: list[int], directions: list[int]) -> int:
    """Return the innermost axis that can still advance; axes inside it turn around."""
    for axis in reversed(plan.loop_order):
        if 0 <= positions[axis] + directions[axis] < plan.steps[axis]:
            return axis
        directions[axis] = -directions[axis]
    return -1
