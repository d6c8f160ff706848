"""Partial sums of two, three and four cores, in chunks or whole, through small buffers: both simulators do as numpy."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from support import specs
from support.simulation import check_simulators, chip_of, plan_of, scheduled

from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import Reduce

CASES: dict[str, tuple[OperatorSpec, AxisSizes]] = {
    "two cores": (specs.matmul(6, 5, 8, "f32"), (1, 1, 2)),
    "three cores": (specs.matmul(7, 5, 9, "f32"), (2, 1, 3)),
    "four cores, a bias": (specs.linear_relu(5, 7, 8), (1, 1, 4)),
    "three cores, a bias, three columns": (specs.linear_relu(5, 3, 9, "f32"), (2, 1, 3)),
    "one core with padding only": (specs.matmul(3, 5, 5, "f32"), (1, 1, 4)),
    "maxima": (specs.row_reduce(5, 9, "max", "f32"), (1, 4)),
}


@pytest.mark.parametrize("mode", ["scatter", "all"])
@pytest.mark.parametrize("shift_buffer_bytes", [8192, 32])
@pytest.mark.parametrize("name", CASES)
def test_partial_sums_are_combined_once_each(name: str, shift_buffer_bytes: int, mode: Reduce) -> None:
    spec, f_op = CASES[name]
    chip = chip_of(prod(f_op), shift_buffer_bytes=shift_buffer_bytes)
    plan = replace(plan_of(spec, f_op), reduce=mode)
    check_simulators(scheduled(specs.one_operator_graph(spec), (plan,), chip), chip, low=-9)
