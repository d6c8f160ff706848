"""Rotating pace: the paper's examples, what cannot be aligned and why, and the loop order that costs least."""

from __future__ import annotations

import itertools
from random import Random

import pytest
from support import specs
from support.random_plans import random_plan
from support.random_specs import random_operator

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost import IpuCostModel
from t10.cost.operator import advance_bytes
from t10.errors import InfeasiblePlanError
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place


def test_three_against_two_rotates_at_the_smaller_partition() -> None:
    # A is cut 3x along k, B 2x: 6/3 = 2 and 6/2 = 3 elements per partition; one pace, the smaller, three steps.
    pace = align_pace(specs.matmul(2, 3, 6), (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    assert (pace.lengths, pace.rp, pace.steps, pace.loop_order) == ((1, 1, 6), (0, 0, 2), (1, 1, 3), (2,))


def test_lengths_are_padded_so_that_every_factor_divides() -> None:
    pace = align_pace(specs.matmul(2, 3, 7), (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    assert (pace.lengths[2], pace.rp[2], pace.steps[2]) == (12, 4, 3)


def test_nothing_rotates_without_temporal_factors() -> None:
    pace = align_pace(specs.matmul(8, 8, 8), (2, 2, 2), ((1, 1, 1),) * 3)
    assert (pace.rp, pace.steps, pace.loop_order) == ((0, 0, 0), (1, 1, 1), ())


@pytest.mark.parametrize(
    ("spec", "f_op", "ft", "reason"),
    [
        (
            specs.matmul(8, 8, 8),
            (2, 2, 1),
            ((1, 1, 3), (1, 1, 1), (1, 1, 1)),
            r"prod\(ft\[0\]\) = 3 does not divide the 2 cores",
        ),
        (specs.matmul(8, 8, 8), (2, 2, 1), ((1, 2, 1), (1, 1, 1), (1, 1, 1)), "is not indexed by axis n"),
        (specs.matmul(8, 8, 8), (2, 2), ((1, 1, 1),) * 3, "expected 3 factors"),
        (specs.matmul(8, 8, 8), (2, 2, 2), ((1, 1, 1),) * 2, "expected 3 rows of 3"),
        (
            specs.conv2d(1, 4, 8, 8, 2, 3, 3),
            (1, 4, 1, 1, 1, 1, 1),
            ((1, 1, 1, 1, 1, 3, 1), (1,) * 7, (1,) * 7),
            "along axis kh.*cannot rotate",
        ),
        (
            specs.conv2d(1, 4, 8, 8, 4, 3, 3),
            (1, 2, 1, 1, 4, 1, 1),
            ((1, 1, 2, 1, 1, 1, 1), (1,) * 7, (1, 1, 4, 1, 1, 1, 1)),
            r"axis h is cut \[2, 4\] times.*whole blocks",
        ),
    ],
)
def test_what_cannot_be_aligned_says_why(
    spec: OperatorSpec, f_op: tuple[int, ...], ft: tuple[tuple[int, ...], ...], reason: str
) -> None:
    with pytest.raises(InfeasiblePlanError, match=reason) as caught:
        align_pace(spec, f_op, ft)
    assert caught.value.operator == spec.name


def test_loop_order_is_the_cheapest_of_all() -> None:
    # A rotates along m and k, B along k and n: three nested loops with different bytes per shift.
    spec = specs.matmul(24, 40, 48)
    f_op, ft = (6, 6, 1), ((2, 1, 3), (1, 2, 3), (1, 1, 1))
    pace = align_pace(spec, f_op, ft)
    plan = place(spec, f_op, ft, pace)
    assert plan is not None
    cost = IpuCostModel(load_chip("test-64"))

    def shift_cycles(order: tuple[int, ...]) -> int:
        total, sweeps = 0, 1
        for axis in order:
            total += cost.shift_cycles(advance_bytes(spec, plan, axis)) * (pace.steps[axis] - 1) * sweeps
            sweeps *= pace.steps[axis]
        return total

    assert sorted(pace.loop_order) == [0, 1, 2]
    assert shift_cycles(pace.loop_order) == min(map(shift_cycles, itertools.permutations((0, 1, 2))))


@pytest.mark.parametrize("seed", range(60))
def test_what_moves_most_bytes_is_outermost(seed: int) -> None:
    rng = Random(seed)
    spec = random_operator(rng)
    plan = random_plan(rng, spec, 24)
    rotating = [axis for axis, n in enumerate(plan.steps) if n > 1]
    expected = sorted(rotating, key=lambda axis: (-advance_bytes(spec, plan, axis), axis))
    assert list(align_pace(spec, plan.f_op, plan.ft).loop_order) == expected


def test_windows_longer_than_the_pace_count_what_moves() -> None:
    # Along n 4 x 6 elements of B move, along k 4 x 1 of A and 4 x 4 of B, whose window there is 6 long.
    spec, f_op, ft = specs.matmul(4, 24, 12), (4, 3, 1), ((1, 1, 3), (1, 2, 2), (1, 1, 1))
    assert align_pace(spec, f_op, ft).loop_order == (1, 2)


def test_sums_that_turn_count_in_their_own_type() -> None:
    # Along m 6 x 6 sums of 4 bytes move, along k 12 x 4 elements of A of 2 bytes.
    spec, f_op, ft = specs.matmul(12, 12, 16, "f16"), (1, 2, 2), ((1, 1, 2), (1, 1, 1), (2, 1, 1))
    assert align_pace(spec, f_op, ft).loop_order == (0, 2)
