"""The front keeps exactly what nothing beats; searches are repeatable and agree with trying everything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import specs

from t10.chip import load_chip
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.operator import plan_operator
from t10.plan.search.pareto import front_indices, thinned

CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=30))
def test_front_is_what_nothing_else_beats(points: list[tuple[int, int]]) -> None:
    cycles, n_bytes = (np.array(column, np.int64) for column in zip(*points, strict=True))
    kept: list[int] = front_indices(cycles, n_bytes).tolist()
    front = [points[i] for i in kept]
    beaten = {p for p in points if any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    assert sorted(front) == sorted(set(points) - beaten)
    assert [p[0] for p in front] == sorted((p[0] for p in front), reverse=True)


def test_thinning_keeps_both_ends() -> None:
    cycles = np.arange(1000, 0, -1, dtype=np.int64)
    indices = np.arange(1000)
    kept = thinned(indices, cycles, 10)
    assert len(kept) <= 10
    assert (kept[0], kept[-1]) == (0, 999)


def test_thinning_to_one_keeps_the_fastest() -> None:
    assert thinned(np.array([4, 1, 2]), np.array([0, 20, 10, 0, 30]), 1).tolist() == [2]


def test_same_input_same_plans() -> None:
    first, second = (plan_operator(specs.matmul(64, 96, 80), CHIP, COST, PlanOptions()) for _ in range(2))
    assert first == second
    assert [p.cycles.total for p in first] == sorted((p.cycles.total for p in first), reverse=True)


def test_a_forced_partition_is_the_one_used() -> None:
    forced = ForcedPartition("matmul", (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    front = plan_operator(specs.matmul(2, 3, 6), CHIP, COST, PlanOptions(forced=(forced,)))
    assert len(front) == 1
    assert (front[0].plan.f_op, front[0].plan.rp, front[0].plan.steps) == ((2, 3, 1), (0, 0, 2), (1, 1, 3))


def test_a_forced_f_op_leaves_ft_to_the_search() -> None:
    front = plan_operator(
        specs.matmul(48, 48, 48), CHIP, COST, PlanOptions(forced=(ForcedPartition("matmul", (4, 4, 1)),))
    )
    assert {p.plan.f_op for p in front} == {(4, 4, 1)}
    assert len({p.plan.ft for p in front}) > 1


@pytest.mark.parametrize(
    ("forced", "message"),
    [
        (ForcedPartition("matmul", (4, 5, 1)), "needs 20 cores, expected at most 16"),
        (ForcedPartition("matmul", (4, 4)), "expected 3 factors"),
        (
            ForcedPartition("matmul", (2, 2, 1), ((1, 1, 4), (1, 1, 1), (1, 1, 1))),
            r"prod\(ft\[0\]\) = 4 does not divide the 2 cores",
        ),
    ],
)
def test_a_wrong_forced_partition_is_refused(forced: ForcedPartition, message: str) -> None:
    with pytest.raises(InfeasiblePlanError, match=message):
        plan_operator(specs.matmul(48, 48, 48), CHIP, COST, PlanOptions(forced=(forced,)))


@pytest.mark.slow
def test_an_operator_larger_than_the_chip_is_refused_with_numbers() -> None:
    with pytest.raises(
        InfeasiblePlanError, match=r"operator 'matmul': needs at least [\d,]+ bytes per core, 610,240 are"
    ):
        plan_operator(specs.matmul(4096, 4096, 4096), load_chip("test-4"), COST, PlanOptions())
