"""The compute-shift program of an operator: the statements that every core executes in lock step, one after the other.

```
Arrive(0) Arrive(1)            operands are copied to their cores (those that lie in place already are not)
Fill                           the accumulators hold the neutral element of the combination
SubTask((0, 0, 0))             compute one box, from resident elements into the accumulators
Shift((0, 1), axis 2, to 1)    windows of operands 0 and 1 move one position along axis 2
SubTask((0, 0, 1))
Shift((1,), axis 2, to 0)      a weight that rotated in its idle buffer moves back to where it started
Reduce("scatter")              partial results of several cores are combined
Epilogue                       the result is made of the accumulated elements
```

The compute-shift level of the `rtensor` dialect is this program as MLIR. Source: compute-shift model §4, T10 §4.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Literal

from t10.core import geometry
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan

ReduceMode = Literal["scatter", "all"]
CACHE_ENTRIES = 4096


@dataclass(frozen=True, slots=True)
class Arrive:
    """Operand number `operand` (as in `OperatorSpec.operands`) is copied from where its value lies to its cores."""

    operand: int


@dataclass(frozen=True, slots=True)
class Fill:
    """The accumulators of all cores hold the neutral element of the operator's combination."""


@dataclass(frozen=True, slots=True)
class Shift:
    """The windows of rotatable operands `operands` move along `axis` to position `stop`, all in one exchange.

    `positions` are those of the windows before the shift, per axis. `stop` is a neighbour of `positions[axis]` on the
    circle of the axis's positions.
    """

    operands: tuple[int, ...]
    axis: int
    positions: AxisSizes
    stop: int

    @property
    def direction(self) -> int:
        """Return +1 if windows move to higher indices, -1 if they move to lower ones."""
        return -1 if self.stop == self.positions[self.axis] - 1 else 1


@dataclass(frozen=True, slots=True)
class SubTask:
    """Every core computes the box at loop positions `positions` (per axis, 0 where the axis has no loop)."""

    positions: AxisSizes


@dataclass(frozen=True, slots=True)
class Reduce:
    """Partial results of the cores that share output elements are combined.

    `scatter` leaves each core with one chunk of its partition, `all` with the whole of it.
    """

    mode: ReduceMode


@dataclass(frozen=True, slots=True)
class Epilogue:
    """The epilogue runs on the accumulated elements each core owns, into the result; without one they are copied."""


Statement = Arrive | Fill | Shift | SubTask | Reduce | Epilogue


def loop_positions(loop_order: AxisSizes, steps: AxisSizes, time: int) -> AxisSizes:
    """Return the loop positions at a time, per axis: the reflected mixed-radix code of `time` over `loop_order`.

    The outermost loop comes first in `loop_order`; from one time to the next one position changes, by one.
    """
    digits: dict[int, int] = {}
    for axis in reversed(loop_order):
        time, digits[axis] = divmod(time, steps[axis])
    positions = [0] * len(steps)
    outside = 0
    for axis in loop_order:
        # What stands outside a digit, read as one number, says which way its sweep runs.
        digit = digits[axis]
        positions[axis] = steps[axis] - 1 - digit if outside % 2 else digit
        outside = outside * steps[axis] + digit
    return tuple(positions)


@lru_cache(maxsize=CACHE_ENTRIES)
def loop_statements(
    loop_order: AxisSizes, steps: AxisSizes, rotating: tuple[tuple[int, ...], ...]
) -> tuple[Statement, ...]:
    """Return the sub-tasks of a loop nest and the shifts between them; `rotating` names operands per axis."""
    return tuple(_loop(loop_order, steps, rotating))


def _loop(
    loop_order: AxisSizes, steps: AxisSizes, rotating: tuple[tuple[int, ...], ...]
) -> Iterator[Statement]:
    before: AxisSizes = (0,) * len(steps)
    for time in range(prod(steps)):
        positions = loop_positions(loop_order, steps, time)
        for axis in loop_order:
            if positions[axis] != before[axis] and rotating[axis]:
                yield Shift(rotating[axis], axis, before, positions[axis])
        yield SubTask(positions)
        before = positions


def rotating_operands(plan: OperatorPlan) -> tuple[tuple[int, ...], ...]:
    """Return per axis the rotatable operands that rotate along it."""
    return tuple(
        tuple(number for number, row in enumerate(plan.ft) if row[axis] > 1) for axis in range(len(plan.f_op))
    )


def shifts_home(plan: OperatorPlan, operands: Sequence[int]) -> Iterator[Shift]:
    """Yield the shifts that bring `operands` from their last positions back to where they started."""
    positions = list(geometry.final_positions(plan))
    for axis in plan.loop_order:
        moving = tuple(number for number in operands if plan.ft[number][axis] > 1)
        if positions[axis] and moving:
            yield Shift(moving, axis, tuple(positions), 0)
            positions[axis] = 0


def has_partials(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether several cores hold partial results of one output element when the loops have ended."""
    return spec.combine != "none" and geometry.n_replicas(spec, plan, len(spec.inputs)) > 1


def operator_body(
    spec: OperatorSpec, plan: OperatorPlan, arriving: Sequence[int], resident: Sequence[int]
) -> tuple[Statement, ...]:
    """Return the program of an operator under a plan.

    `arriving` are the operands that are copied to their cores, `resident` the inputs that are weights and rotate in
    their idle buffers: they must lie where they did when the operator has ended.
    """
    body: list[Statement] = [Arrive(number) for number in sorted(arriving)]
    if spec.combine != "none":
        body.append(Fill())
    body.extend(loop_statements(plan.loop_order, plan.steps, rotating_operands(plan)))
    body.extend(shifts_home(plan, sorted(resident)))
    is_combined = has_partials(spec, plan)
    if is_combined:
        body.append(Reduce("all" if plan.reduce == "all" else "scatter"))
    if spec.epilogue is not None or is_combined or spec.acc_dtype != spec.output.dtype:
        body.append(Epilogue())
    return tuple(body)
