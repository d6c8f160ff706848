"""Both cores of every pair take the same of an operand: an axis is cut into one part more where parts stay as long."""

from __future__ import annotations

import numpy as np
import pytest
from support import specs

from t10.chip import load_chip
from t10.cost import IpuCostModel, operator_cycles
from t10.plan.joint.candidates import in_pairs
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place

CHIP = load_chip("ipu-mk2")
PRODUCT = specs.matmul(198, 3072, 768)
"""Axes m, n, k; of those that are cut, n numbers cores fastest where m is cut and long."""


@pytest.mark.parametrize(
    ("f_op", "expected"),
    [
        ((3, 77, 6), (3, 78, 6)),  # 78 parts of 40 columns, too
        ((3, 78, 6), (3, 78, 6)),
        ((3, 9, 6), (3, 9, 6)),  # 9 parts have 352, 10 have 320
        ((19, 77, 1), (19, 77, 1)),  # 19 x 78 are more than there are cores
    ],
)
def test_one_part_more_where_parts_stay_as_long(f_op: tuple[int, ...], expected: tuple[int, ...]) -> None:
    assert in_pairs(PRODUCT, CHIP, np.array([f_op])).tolist() == [list(expected)]


def test_nothing_changes_without_pairs() -> None:
    alone = CHIP.model_copy(update={"paired_bytes_per_cycle": 0})
    assert in_pairs(PRODUCT, alone, np.array([(3, 77, 6)])).tolist() == [[3, 77, 6]]
    rows = specs.row_reduce(3072, 768, "sum")
    assert in_pairs(rows, CHIP, np.array([(77, 6)])).tolist() == [[77, 6]]


def test_sums_of_a_row_stay_side_by_side() -> None:
    """The axis that is summed numbers cores fastest there, and both operands have it."""
    assert in_pairs(specs.matmul(1, 3072, 768), CHIP, np.array([(1, 6, 77)])).tolist() == [[1, 6, 77]]


def test_axes_are_cut_in_no_more_parts_than_they_have_elements() -> None:
    assert in_pairs(specs.matmul(64, 7, 64), CHIP, np.array([(8, 7, 1)])).tolist() == [[8, 7, 1]]


def test_what_is_computed_takes_as_long() -> None:
    found: list[int] = []
    for f_op in ((3, 77, 6), (3, 78, 6)):
        ft = ((1, 1, 1),) * 3
        plan = place(PRODUCT, f_op, ft, align_pace(PRODUCT, f_op, ft))
        assert plan is not None
        found.append(operator_cycles(IpuCostModel(CHIP), PRODUCT, plan).compute)
    assert found[0] == found[1]
