"""Following a reader: the producer's plans that do so really leave the result as the reader takes it."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support import specs
from support.simulation import plan_of

from t10.core import movement
from t10.core.expression import OperatorSpec
from t10.plan.assemble import output_layout
from t10.plan.search.reader_layouts import leading_plans

MATMUL = specs.matmul(16, 12, 24, name="matmul", c="y")
ADD = specs.elementwise((16, 12), name="add", a="y", b="z", o="out")
ROWS = specs.row_reduce(16, 12, "sum", name="rows", x="y")


@pytest.mark.parametrize(
    ("reader", "f_op", "cuts"),
    [
        (ADD, (4, 3), {(4, 3, 1), (2, 3, 2), (1, 3, 4), (4, 1, 3)}),
        (ADD, (16, 1), {(16, 1, 1), (8, 1, 2), (4, 1, 4), (2, 1, 8), (1, 1, 16)}),
        (ROWS, (8, 1), {(8, 1, 1), (4, 1, 2), (2, 1, 4), (1, 1, 8)}),
        (ROWS, (2, 4), {(2, 4, 1), (1, 4, 2)}),
    ],
)
def test_a_leading_plan_leaves_its_result_in_place(
    reader: OperatorSpec, f_op: tuple[int, ...], cuts: set[tuple[int, ...]]
) -> None:
    plan = plan_of(reader, f_op)
    wanted = movement.operand_elements(reader, plan, 0).reshape(plan.n_cores, -1)
    found = list(leading_plans(MATMUL, reader, 0, plan))
    for made_by in found:
        home = movement.layout_map(MATMUL, output_layout(MATMUL, made_by), prod(MATMUL.output.shape))
        assert np.array_equal(wanted, home.elements)
    assert {made_by.f_op for made_by in found} <= cuts
    assert (*f_op, 1) in {made_by.f_op for made_by in found}
    assert len(found) > 1


def test_a_leading_plan_has_parts_as_long_as_its_reader() -> None:
    """A line of sums is cut in whole blocks of 16, rows of a product are not."""
    product, sums = specs.matmul(330, 12, 24, c="y"), specs.row_reduce(330, 12, "sum", x="y")
    plan = plan_of(sums, (2, 1))
    found = list(leading_plans(product, sums, 0, plan))
    assert [(each.f_op, each.lengths[0]) for each in found] == [((2, 1, 1), 176)]
    assert plan_of(product, (2, 1, 1)).lengths[0] == 165
    wanted = movement.operand_elements(sums, plan, 0).reshape(plan.n_cores, -1)
    for made_by in found:
        home = movement.layout_map(product, output_layout(product, made_by), prod(product.output.shape))
        assert np.array_equal(wanted, home.elements)


def test_an_operand_of_several_cores_cannot_be_led_to() -> None:
    product = specs.matmul(16, 8, 12, name="reader", a="y")
    assert list(leading_plans(MATMUL, product, 0, plan_of(product, (4, 1, 3))))
    assert not list(leading_plans(MATMUL, product, 0, plan_of(product, (4, 2, 3))))
