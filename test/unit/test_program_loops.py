"""The loops of a program: every sub-task once, a shift of one axis by one between two, inner loops to and fro."""

from itertools import pairwise
from math import prod

import pytest

from t10.core.operator_body import loop_statements
from t10.core.program import Shift, SubTask


@pytest.mark.parametrize(
    ("steps", "loop_order"), [((3, 1, 2), (0, 2)), ((3, 1, 2), (2, 0)), ((2, 2, 2), (1, 0, 2)), ((1, 1), ())]
)
def test_every_position_is_visited_once_by_single_shifts(
    steps: tuple[int, ...], loop_order: tuple[int, ...]
) -> None:
    statements = loop_statements(loop_order, steps, tuple((axis,) for axis in range(len(steps))))
    sub_tasks = [s.positions for s in statements if isinstance(s, SubTask)]
    shifts = [s for s in statements if isinstance(s, Shift)]
    assert len(set(sub_tasks)) == len(sub_tasks) == prod(steps)
    assert [isinstance(s, Shift) for s in statements] == [i % 2 == 1 for i in range(len(statements))]
    for shift, (now, after) in zip(shifts, pairwise(sub_tasks), strict=True):
        assert shift.positions == now
        assert abs(shift.stop - now[shift.axis]) == 1
        moved = list(now)
        moved[shift.axis] += shift.direction
        assert tuple(moved) == after


def test_the_innermost_axis_advances_first_and_turns_around() -> None:
    statements = loop_statements((0, 1), (2, 3), ((), ()))
    assert statements == tuple(SubTask(p) for p in [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)])


def test_a_shift_past_the_last_position_goes_forward() -> None:
    """From 2 of 3 positions on, 0 comes next; of two positions each is before the other, and back is shorter told."""
    assert Shift((0,), 0, (2,), 0).direction == 1
    assert Shift((0,), 0, (0,), 1).direction == 1
    assert Shift((0,), 0, (2,), 1).direction == Shift((0,), 0, (1,), 0).direction == -1
