"""Partial sums of two, three and four cores, in chunks or whole, through small buffers: both simulators do as numpy."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from support import specs
from support.simulation import check_simulators, chip_of, plan_of, scheduled

from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import Reduce
from t10.sim.product import sum_of_products

CASES: dict[str, tuple[OperatorSpec, AxisSizes]] = {
    "two cores": (specs.matmul(6, 5, 8, "f32"), (1, 1, 2)),
    "chunks of eight and two": (specs.matmul(4, 5, 8, "f32"), (1, 1, 2)),
    "three cores": (specs.matmul(7, 5, 9, "f32"), (2, 1, 3)),
    "four cores, a bias": (specs.linear_relu(5, 7, 8), (1, 1, 4)),
    "three cores, a bias, three columns": (specs.linear_relu(5, 3, 9, "f32"), (2, 1, 3)),
    "one core with padding only": (specs.matmul(3, 5, 5, "f32"), (1, 1, 4)),
    "maxima": (specs.row_reduce(5, 9, "max", "f32"), (1, 4)),
}


def test_axes_that_nothing_depends_on_count_once_per_point() -> None:
    rows = specs.row_reduce(4, 6, "sum", "f32")
    spec = replace(rows, inputs=(specs.operand("x", "activation", "f32", (4,), specs.dims(0)),))
    check_simulators(
        scheduled(specs.one_operator_graph(spec), (plan_of(spec, (2, 1)),), chip_of(2)), chip_of(2)
    )


def test_integer_products_are_exact_to_the_last_bit() -> None:
    largest = np.full((1, 1, 1, 1), 2**31 - 1, np.int32)
    assert sum_of_products(largest, largest, (2,)).tolist() == [[[[1]]]]


@pytest.mark.parametrize("mode", ["scatter", "all"])
@pytest.mark.parametrize("shift_buffer_bytes", [8192, 32])
@pytest.mark.parametrize("name", CASES)
def test_partial_sums_are_combined_once_each(name: str, shift_buffer_bytes: int, mode: Reduce) -> None:
    spec, f_op = CASES[name]
    chip = chip_of(prod(f_op), shift_buffer_bytes=shift_buffer_bytes)
    plan = replace(plan_of(spec, f_op), reduce=mode)
    check_simulators(scheduled(specs.one_operator_graph(spec), (plan,), chip), chip, low=-9)
