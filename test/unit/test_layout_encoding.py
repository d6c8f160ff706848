"""Layouts as the dialect spells them hold what the plan's geometry says, windows and padding included."""

from __future__ import annotations

from pathlib import Path

import pytest

from t10.chip import load_chip
from t10.core import geometry
from t10.core.expression import Operand, OperatorSpec
from t10.core.plan import OperatorPlan, final_positions
from t10.cost import IpuCostModel
from t10.dialect.layout import check_layout
from t10.dialect.mlir import ir
from t10.frontend.importer import import_model
from t10.passes.bridge.layouts import operand_layout, padded_view
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
        view = padded_view(spec, operand)
        sides = zip(view.low, operand.shape, view.high, strict=True)
        check_layout(operand_layout(spec, plan, number), tuple(map(sum, sides)))


def test_windows_are_those_of_the_plan_where_they_begin_and_where_they_end(cases: list[Case]) -> None:
    n_rotating = 0
    for spec, plan, number, operand in cases:
        layout = operand_layout(spec, plan, number)
        slot = min(number, len(spec.inputs))
        own = sorted(operand.axes)
        begin = (0,) * len(plan.f_op)
        positions = begin if number < len(spec.inputs) else final_positions(plan)
        found = geometry.window_starts(layout.plan, 0, layout.at or begin)
        assert (found[:, own] == geometry.window_starts(plan, slot, positions)[:, own]).all(), spec.name
        lengths = geometry.window_lengths(layout.plan, 0), geometry.window_lengths(plan, slot)
        assert all(lengths[0][axis] == lengths[1][axis] for axis in own), spec.name
        n_rotating += layout.rotates
    assert n_rotating > 50
