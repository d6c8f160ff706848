"""Planner, native search and simulator ask one cost model: the bundled ones, a user's formula, a user's loop."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from support import specs
from support.simulation import random_values

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel, CustomCostModel, IpuCostModel, UserCost, paper_cost_model
from t10.plan import plan_module
from t10.plan.options import PlanOptions
from t10.plan.search.operator import plan_operator
from t10.sim.plan_level import simulate

CHIP = load_chip("test-16").model_copy(update={"sram_bytes": 96 * 1024})


def wide(spec: OperatorSpec, boxes: Any) -> Any:
    """Return cycles of an imagined vector unit of 32 lanes, in arithmetic that can be traced."""
    del spec
    return 50 + -(-boxes.prod(axis=1) // 32)


def wide_by_row(spec: OperatorSpec, boxes: Any) -> Any:
    """Return the same, in a way that only Python can execute."""
    del spec
    return np.array([50 - (-prod(box) // 32) for box in boxes.tolist()], np.int64)


def custom(function: Any) -> CostModel:
    """Return the default model with products priced by `function`."""
    return CustomCostModel(IpuCostModel(CHIP), (UserCost("wide", "contraction", function),))


COSTS = (paper_cost_model(CHIP), custom(wide))
GRAPHS = (
    specs.mlp_graph(32, (64, 128, 64)),
    specs.softmax_graph(64, 48),
    specs.layer_norm_graph(32, 96),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
    specs.one_operator_graph(specs.gather(24, 16, 100)),
    specs.one_operator_graph(specs.max_pool2d(1, 8, 7, 7, 3, pad=1)),
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: cost.name)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: f"{graph.name}-{len(graph.operators)}")
def test_simulated_cycles_are_those_of_the_model_that_was_planned_with(graph: Graph, cost: CostModel) -> None:
    plan = plan_module(graph, CHIP, cost=cost)
    given = random_values((*graph.inputs, *graph.weights))
    result = simulate(plan, CHIP, cost, given, given)
    assert result.cycles == sum(scheduled.active.cycles.total for scheduled in plan.operators)


@pytest.mark.parametrize("spec", [specs.matmul(48, 64, 32), specs.bmm(4, 16, 24, 32)])
def test_a_traced_cost_and_the_same_called_back_give_one_front(spec: OperatorSpec) -> None:
    fronts = [plan_operator(spec, CHIP, custom(function), PlanOptions()) for function in (wide, wide_by_row)]
    assert fronts[0] == fronts[1]
    assert fronts[0] != plan_operator(spec, CHIP, IpuCostModel(CHIP), PlanOptions())
