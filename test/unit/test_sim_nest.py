"""The serpentine nest: every sub-task once, one axis advances by one between two, and it ends where geometry says."""

from itertools import pairwise

import pytest

from t10.core import geometry
from t10.core.plan import OperatorPlan
from t10.sim.nest import nest_states


def plan_with(steps: tuple[int, ...], loop_order: tuple[int, ...]) -> OperatorPlan:
    n = len(steps)
    rp = tuple(1 if s > 1 else 0 for s in steps)
    ones = (1,) * n
    return OperatorPlan(ones, steps, (ones,), rp, steps, loop_order, ((),) * n, tuple(range(n)))


@pytest.mark.parametrize(
    ("steps", "loop_order"), [((3, 1, 2), (0, 2)), ((3, 1, 2), (2, 0)), ((2, 2, 2), (1, 0, 2)), ((1, 1), ())]
)
def test_every_position_is_visited_once_by_single_steps(
    steps: tuple[int, ...], loop_order: tuple[int, ...]
) -> None:
    plan = plan_with(steps, loop_order)
    states = list(nest_states(plan))
    assert len({state.positions for state in states}) == len(states) == plan.n_sub_tasks
    for now, after in pairwise(states):
        moved = list(now.positions)
        moved[now.axis] += now.direction
        assert tuple(moved) == after.positions
    assert states[-1].axis == -1
    assert states[-1].positions == geometry.final_positions(plan)


def test_the_innermost_axis_advances_first_and_turns_around() -> None:
    states = list(nest_states(plan_with((2, 3), (0, 1))))
    assert [s.positions for s in states] == [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]
