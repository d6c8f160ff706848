"""The compute-shift program that follows from an operator's plan (compute-shift model §4, T10 §4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from t10.core import geometry
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import CostedPlan, OperatorPlan, final_positions
from t10.core.program import Arrive, Epilogue, Fill, Reduce, Shift, Statement, SubTask
from t10.core.schedule import Arrival, ScheduledOperator, ValueLayout

CACHE_ENTRIES = 4096


def scheduled_operator(
    spec: OperatorSpec,
    active: CostedPlan,
    arrivals: tuple[Arrival, ...],
    output_layout: ValueLayout,
    pareto: tuple[CostedPlan, ...] = (),
) -> ScheduledOperator:
    """Return an operator with the program that follows from its plan and from how its operands arrive."""
    body = operator_body(
        spec,
        active.plan,
        arriving=[arrival.operand for arrival in arrivals if arrival.kind != "in_place"],
        resident=[a.operand for a in arrivals if a.is_resident and a.operand < len(spec.inputs)],
    )
    return ScheduledOperator(spec.name, active, arrivals, output_layout, body, pareto)


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
    positions = list(final_positions(plan))
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
