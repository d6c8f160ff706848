"""Layouts as the dialect spells them hold what the plan's geometry says, windows and padding included."""

from __future__ import annotations

from dataclasses import replace
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
from t10.plan.fronts.operator_fronts import operator_fronts
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


def test_every_layout_of_every_front_keeps_the_rules(cases: list[Case]) -> None:
    for spec, plan, number, operand in cases:
        check_layout(operand_layout(spec, plan, number), operand.shape)


def test_sub_tensors_are_as_long_as_the_plan_makes_them(cases: list[Case]) -> None:
    compared = 0
    for spec, plan, number, operand in cases:
        # As a value whose extents are what the windows span, padding included.
        whole = tuple(f * length for f, length in zip(plan.f_op, plan.lengths, strict=True))
        spanned = tuple(
            extent if dim.is_simple else geometry.dim_extent(dim, whole)
            for dim, extent in zip(operand.dims, operand.shape, strict=True)
        )
        layout = operand_layout(spec, plan, number)
        if any(layout.halo):
            layout = replace(layout, padded=tuple(map(max, layout.padded or spanned, spanned)))
            assert layout.sub_tensor(spanned) == geometry.partition_shape(operand, plan.lengths), spec.name
            compared += 1
    assert compared > 50
