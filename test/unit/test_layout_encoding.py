"""Layouts as the dialect spells them hold what the plan's geometry says, windows and padding included."""

from __future__ import annotations

from pathlib import Path

import pytest

from t10.chip import load_chip
from t10.core import geometry
from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.cost import IpuCostModel
from t10.dialect.layout import check_layout
from t10.dialect.mlir import ir
from t10.frontend.importer import import_model
from t10.passes.bridge.layouts import operand_layout
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run
from t10.plan.fronts import operator_fronts
from t10.plan.options import PlanOptions

MODELS = Path(__file__).parents[2] / "examples" / "models"
CHIP = load_chip("test-16")

Case = tuple[OperatorSpec, OperatorPlan, int, Operand]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    """Return every operand of every plan that the fronts of a small ResNet hold."""
    imported = import_model(MODELS / "resnet18_fp32.onnx")
    with imported.module.context, ir.Location.unknown():
        run(make("t10-fuse"), imported.module)
        graph = read_graph(imported.module).graph
    fronts = operator_fronts(graph, CHIP, IpuCostModel(CHIP), PlanOptions())
    return [
        (spec, each.plan, number, operand)
        for spec, front in zip(graph.operators, fronts, strict=True)
        for each in front
        for number, operand in enumerate((*spec.operands, spec.output))
    ]


def has_holes(spec: OperatorSpec, operand: Operand) -> bool:
    """Is a dim read with a stride wider than its window, so that sub-tensors are apart from each other?"""
    extents = [axis.extent for axis in spec.axes]
    for dim in operand.dims:
        stride = max((term.coefficient for term in dim.terms), default=1)
        window = 1 + sum(
            term.coefficient * (extents[term.axis] - 1) for term in dim.terms if term.coefficient < stride
        )
        if stride > window:
            return True
    return False


def test_every_layout_of_every_front_keeps_the_rules(cases: list[Case]) -> None:
    for spec, plan, number, operand in cases:
        check_layout(operand_layout(spec, plan, number), operand.shape)


def test_sub_tensors_are_as_long_as_the_plan_makes_them(cases: list[Case]) -> None:
    compared = 0
    for spec, plan, number, operand in cases:
        if not has_holes(spec, operand):
            layout = operand_layout(spec, plan, number)
            assert layout.sub_tensor(operand.shape) == geometry.partition_shape(operand, plan.lengths), (
                spec.name
            )
            compared += any(layout.halo)
    assert compared > 50
