"""Windows that move to and fro in steps smaller than themselves: both simulators give exactly what numpy does.

Along k one operand is cut in three and the other in two, so that the pace is smaller than the second one's window: a
shift replaces part of it, at the end when it moves forward and at the beginning when it moves back.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from support import specs
from support.simulation import Rows, check_simulators, chip_of, plan_of, scheduled

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.program import Shift
from t10.core.schedule import ModulePlan
from t10.plan.verify import verify_module

CASES: dict[str, tuple[AxisSizes, AxisSizes, Rows, AxisSizes]] = {
    # Extents, F_op, ft per operand, loop order: outermost first.
    "a turns along m and k, b along k": ((8, 12, 12), (2, 6, 1), ((2, 1, 3), (1, 1, 2), (1, 1, 1)), (0, 2)),
    "b turns along n and k, a along k": ((12, 8, 12), (6, 2, 1), ((1, 1, 2), (1, 2, 3), (1, 1, 1)), (1, 2)),
    "k is swept three times": ((12, 9, 12), (2, 9, 1), ((3, 1, 3), (1, 1, 2), (1, 1, 1)), (0, 2)),
    "m is swept three times": ((24, 6, 12), (2, 6, 1), ((2, 1, 3), (1, 1, 2), (1, 1, 1)), (2, 0)),
}


def module(name: str, idle_level: int, chip: ChipSpec) -> ModulePlan:
    """Return the schedule of a matmul under a chosen loop order; its weight is b."""
    extents, f_op, ft, loop_order = CASES[name]
    spec = specs.matmul(extents[0], extents[1], extents[2], "f32")
    plan = replace(plan_of(spec, f_op, ft), loop_order=loop_order)
    made = scheduled(specs.one_operator_graph(spec), (plan,), chip, (idle_level,))
    assert verify_module(made, chip) == []
    return made


def partial_shifts(spec: OperatorSpec, plan: OperatorPlan, made: ModulePlan) -> set[int]:
    """Return the directions of shifts that replace part of a window."""
    return {
        statement.direction
        for statement in made.operators[0].body
        if isinstance(statement, Shift)
        for number in statement.operands
        if plan.rp[statement.axis] < plan.lengths[statement.axis] // plan.ft[number][statement.axis]
    }


@pytest.mark.parametrize("shift_buffer_bytes", [8192, 24])
@pytest.mark.parametrize("idle_level", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_windows_that_move_to_and_fro(name: str, idle_level: int, shift_buffer_bytes: int) -> None:
    chip = chip_of(prod(CASES[name][1]), shift_buffer_bytes=shift_buffer_bytes)
    made = module(name, idle_level, chip)
    spec, plan = made.graph.operators[0], made.operators[0].active.plan
    assert max(plan.steps) >= 3
    assert 1 in partial_shifts(spec, plan, made)
    assert (-1 in partial_shifts(spec, plan, made)) == (plan.loop_order[-1] == 2)
    check_simulators(made, chip)


@pytest.mark.parametrize("shift_buffer_bytes", [8192, 16, 8])
def test_operands_of_two_types_pass_through_the_buffer_together(shift_buffer_bytes: int) -> None:
    # Six bytes of a (f16) and eight of the sums (f32) move along m.
    spec = specs.matmul(2, 4, 6, "f16")
    plan = plan_of(spec, (1, 2, 2), ((2, 1, 1), (1, 1, 1), (2, 1, 1)))
    chip = chip_of(plan.n_cores, shift_buffer_bytes=shift_buffer_bytes)
    made = scheduled(specs.one_operator_graph(spec), (plan,), chip, (0,))
    shifts = [each for each in made.operators[0].body if isinstance(each, Shift)]
    assert {0, 2} <= {number for each in shifts for number in each.operands}
    check_simulators(made, chip)
