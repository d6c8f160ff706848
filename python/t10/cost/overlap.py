"""What shifts take on chips that compute and transfer at once: what the steps beside them do not hide."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Ints
from t10.core.costs import Costs, part_cycles, rotates_output, shift_cycles, step_cycles
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.operator_body import rotating_operands
from t10.core.overlap import is_beside_step
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.cost.shifts import shift_period


def waiting_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan, *, is_apart: bool) -> int:
    """Return the cycles of all shifts of a plan's loops beyond those of the steps that they are made beside.

    `is_apart` as in `t10.cost.shifts.nest_shifts`.
    """
    positions = nest_positions(plan.loop_order, plan.steps)
    steps = _ordered_step_cycles(costs, spec, plan, positions)
    rotating, total = rotating_operands(plan), 0
    for place, axis in enumerate(plan.loop_order):
        moves = np.flatnonzero(positions[1:, place] != positions[:-1, place])
        here, there = positions[moves, place], positions[moves + 1, place]
        ahead: Ints = (there > here).astype(np.int64)
        period = shift_period(spec, plan, axis, rotating[axis], is_apart=is_apart)
        # Shifts ahead begin at position 0, those back at position 1.
        alike: Ints = (here - 1 + ahead) % period + 1 - ahead
        kinds, which = np.unique(2 * alike + ahead, return_inverse=True)
        each = [
            shift_cycles(costs, spec, plan, _shift(plan, axis, rotating[axis], kind))
            for kind in kinds.tolist()
        ]
        cycles = np.array(each, np.int64)[which.reshape(-1)]
        if is_beside_step(plan, axis):
            cycles = np.maximum(cycles - steps[moves], 0)
        total += int(cycles.sum())
    return total


def nest_positions(loop_order: AxisSizes, steps: AxisSizes) -> Ints:
    """Return the positions along the loops at every step, (steps, loops), as `t10.core.operator_body` has them."""
    n = int(np.prod([steps[axis] for axis in loop_order], dtype=np.int64))
    time, inside = np.arange(n, dtype=np.int64), n
    columns: list[Ints] = []
    for axis in loop_order:
        outside, inside = time // inside, inside // steps[axis]
        digit = time // inside % steps[axis]
        columns.append(np.where(outside % 2 == 1, steps[axis] - 1 - digit, digit))
    return np.stack(columns, axis=1) if columns else np.zeros((n, 0), np.int64)


def _ordered_step_cycles(costs: Costs, spec: OperatorSpec, plan: OperatorPlan, positions: Ints) -> Ints:
    """Return the cycles of every step, in their order."""
    parts = part_cycles(costs, spec, plan)
    if parts is not None:
        whole = np.zeros((len(positions), len(plan.steps)), np.int64)
        whole[:, list(plan.loop_order)] = positions
        return np.array([sum(parts[tuple(row)]) for row in whole.tolist()], np.int64)
    adds = np.zeros(len(positions), np.bool_)
    if spec.combine != "none":
        adds[:] = True
        if not rotates_output(spec, plan):
            outputs = [place for place, axis in enumerate(plan.loop_order) if axis in spec.output.axes]
            adds[np.unique(positions[:, outputs], axis=0, return_index=True)[1]] = False
    cycles = [
        step_cycles(costs, spec, plan, adds=each) if (adds == each).any() else 0 for each in (False, True)
    ]
    return np.array(cycles, np.int64)[adds.astype(np.int64)]


def _shift(plan: OperatorPlan, axis: int, operands: tuple[int, ...], kind: int) -> Shift:
    """Return the shift from a position, ahead where `kind`, twice that position, is odd."""
    here, ahead = divmod(kind, 2)
    positions = [0] * len(plan.steps)
    positions[axis] = here
    return Shift(operands, axis, tuple(positions), here + 1 if ahead else here - 1)
