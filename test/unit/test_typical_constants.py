"""Operators that differ in scales and zero points only are searched once; whatever costs depend on tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support import specs
from support.quantised_bodies import SIGNED, quantised

from t10.chip import load_chip
from t10.codelets.count import counted_cycles
from t10.core.canonical import canonical
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand
from t10.cost import IpuCostModel
from t10.cost.custom import CustomCostModel, UserCost
from t10.plan import PlanOptions
from t10.plan.fronts.canonical import searched_as
from t10.plan.fronts.operator_fronts import operator_fronts, solve
from t10.plan.fronts.typical_constants import with_typical_constants

CHIP = load_chip("test-4")
COST = IpuCostModel(CHIP)
FIRST, SECOND = (0.0127, 3.0), (0.0391, -11.0)
LONG = (0.0127, 113.0)
"""A zero point that no single instruction loads."""
Made = Callable[[float, float | None], OperatorSpec]


def body(scale: float, zero: float | None) -> ScalarFunction:
    return quantised(zero, SIGNED, "arith.sitofp", scale=scale)


def volume(spec: OperatorSpec, boxes: Any) -> Any:
    """Return a cost function of somebody's own."""
    return boxes.prod(axis=1)


def mapped(scale: float, zero: float | None) -> OperatorSpec:
    return replace(specs.map_unary((6, 8), "math.exp", "f32"), body=body(scale, zero))


def product(scale: float, zero: float | None) -> OperatorSpec:
    return replace(specs.matmul(4, 8, 6, "f32"), epilogue=body(scale, zero))


@pytest.mark.parametrize("made", [mapped, product])
def test_scales_and_zero_points_are_neutral_and_change_no_front(made: Made) -> None:
    first, second = made(*FIRST), made(*SECOND)
    assert searched_as(first, COST) == searched_as(second, COST)
    fronts = [
        list(solve(spec, CHIP, COST, PlanOptions()))
        for spec in (canonical(first), canonical(second), searched_as(first, COST))
    ]
    assert fronts[0] == fronts[1] == fronts[2]


@pytest.mark.parametrize("other", [(0.25, 3.0), (0.0127, None), (0.0127, 0.0), (0.0127, 1.0), LONG])
def test_constants_that_code_depends_on_tell_operators_apart(other: tuple[float, float | None]) -> None:
    assert searched_as(mapped(*FIRST), COST) != searched_as(mapped(*other), COST)


@pytest.mark.parametrize("constants", [FIRST, SECOND, LONG, (0.0127, 64.0), (0.0127, None)])
def test_code_takes_the_same_cycles(constants: tuple[float, float | None]) -> None:
    old = mapped(*constants)
    new = with_typical_constants(old)
    assert old.body != new.body
    cycles: list[int | None] = []
    for function in (old.body, new.body):
        operand = TaskOperand("f32", (1,), 8)
        task = Task((61,), (operand,), operand, "none", function)
        cycles.append(counted_cycles(task))
    assert cycles[0] == cycles[1] is not None


def test_equal_constants_stay_equal_and_different_ones_different() -> None:
    def both(first: float, second: float) -> ScalarFunction:
        ops = [ScalarOp("const", (), "f32", repr(first)), ScalarOp("arith.mulf", (0, 1), "f32")]
        ops += [ScalarOp("const", (), "f32", repr(second)), ScalarOp("arith.divf", (2, 3), "f32")]
        return ScalarFunction(1, tuple(ops), 4)

    def found(first: float, second: float) -> OperatorSpec:
        spec = replace(specs.map_unary((6, 8), "math.exp", "f32"), body=both(first, second))
        return searched_as(spec, COST)

    assert found(0.3, 0.3) == found(0.7, 0.7)
    assert found(0.3, 0.9) == found(0.7, 0.1)
    assert found(0.3, 0.9) != found(0.7, 0.7)
    # A number and its negative differ only in sign.
    assert found(0.3, -0.3) != found(0.3, 0.9)


def test_branches_on_data_and_limits_keep_their_constants() -> None:
    sine = ScalarFunction(
        1,
        (
            ScalarOp("const", (), "f32", "0.0127"),
            ScalarOp("arith.mulf", (0, 1), "f32"),
            ScalarOp("math.sin", (2,), "f32"),
        ),
        3,
    )
    limit = ScalarFunction(
        1, (ScalarOp("const", (), "f32", "0.0127"), ScalarOp("arith.maximumf", (0, 1), "f32")), 2
    )
    for function in (sine, limit):
        spec = replace(specs.map_unary((6, 8), "math.exp", "f32"), body=function)
        assert with_typical_constants(spec) == spec


def test_costs_of_somebodys_own_see_all_constants() -> None:
    spec = mapped(*FIRST)
    own = CustomCostModel(COST, (UserCost("own", "elementwise", volume),))
    assert searched_as(spec, own).body == spec.body


def test_layers_share_one_front() -> None:
    first = mapped(*FIRST)
    second = replace(
        mapped(*SECOND),
        name="second",
        inputs=(replace(first.inputs[0], name="o"),),
        output=replace(first.output, name="p"),
    )
    graph = specs.chain_graph("layers", (first, second))
    fronts = operator_fronts(graph, CHIP, COST, PlanOptions())
    assert fronts[0] is fronts[1]
