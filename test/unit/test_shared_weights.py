"""A weight that several operators read is kept once where they can use it in one layout."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support import specs
from support.joint_graphs import alive_bytes, planning
from support.simulation import check_simulators, chip_of

from t10.core.graph import Graph, GraphOutput, View
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan import PlanOptions
from t10.plan.context import context_of
from t10.plan.fit.model_bound import least_plans, model_bound
from t10.plan.greedy.algorithm1 import base_bytes
from t10.plan.options import ForcedPartition
from t10.plan.schedule import plan_module, sum_of_cycles
from t10.plan.verify import verify_module

CHIP = chip_of(4, sram_bytes=64 * 1024)
WIDTH = 224
"""Weights of this width and height take 25 KiB of a core, spread out; two copies do not fit."""
N_CHOICES = 6
LEVEL = ForcedPartition("first", (1, 4, 1), idle_level=0)


def twice_graph(width: int = WIDTH) -> Graph:
    """Return relu(relu(x w) w)."""
    ops = tuple(
        specs.linear_relu(4, width, width, name=name, a=a, b="w", c=c)
        for name, a, c in (("first", "x", "p"), ("second", "p", "y"))
    )
    return specs.chain_graph("twice", ops)


def tied_graph() -> Graph:
    """Return rows of a table, and their products with all of its rows."""
    product = specs.matmul(4, 560, 88, name="product", a="rows", b="w", c="y")
    a, b = product.inputs
    product = replace(product, inputs=(a, replace(b, shape=(560, 88), dims=specs.dims(1, 2))))
    return specs.chain_graph("tied", (specs.gather(4, 88, 560, name="rows", table="w", o="rows"), product))


@pytest.mark.parametrize(("graph", "low"), [(twice_graph(), -1), (tied_graph(), 0)], ids=("twice", "tied"))
def test_one_copy_serves_two_operators_where_two_do_not_fit(graph: Graph, low: int) -> None:
    plan = plan_module(graph, CHIP)
    assert [a.buffer for op in plan.operators for a in op.arrivals if a.operand == 1] == ["idle:w", "idle:w"]
    assert list(verify_module(plan, CHIP)) == []
    check_simulators(plan, CHIP, low)


def test_the_least_memory_counts_a_shared_weight_once() -> None:
    graph, cost = twice_graph(), IpuCostModel(CHIP)
    least = least_plans(graph, CHIP, cost, PlanOptions())
    assert model_bound(graph, CHIP, cost, least).n_bytes <= CHIP.sram_bytes


def test_where_there_is_room_for_copies_the_faster_way_is_taken() -> None:
    graph, roomy = twice_graph(), CHIP.model_copy(update={"sram_bytes": 3 * CHIP.sram_bytes})
    spread = plan_module(graph, roomy, PlanOptions(forced=(LEVEL,)))
    assert [a.kind for a in spread.operators[1].arrivals][1] == "setup"
    assert sum_of_cycles(plan_module(graph, roomy)) < sum_of_cycles(spread)


def test_a_choice_with_a_shared_weight_costs_and_takes_what_its_plan_does() -> None:
    roomy = CHIP.model_copy(update={"sram_bytes": 3 * CHIP.sram_bytes})
    for level in (0, 1):
        made = planning(twice_graph(), roomy, shared_level=level)
        for number in range(N_CHOICES):
            rows = made.random_rows(number)
            made.settled(rows)
            selection, plan = made.planner.selection(made.room_bytes), made.assembled(rows)
            assert selection.cycles(rows) == sum_of_cycles(plan)
            counted = selection.used_bytes(rows) + base_bytes(made.context)
            assert (counted >= alive_bytes(plan, roomy)).all()


def test_what_reads_a_weight_twice_or_through_a_slice_keeps_it_spread_out() -> None:
    graph = twice_graph()
    cut = View("cut", "slice", ("w",), (WIDTH, 8), "f16", offsets=(0, 0), strides=(1, 1))
    last = specs.matmul(4, 8, WIDTH, name="last", a="y", b="cut", c="z")
    through = replace(
        graph, operators=(*graph.operators, last), views=(cut,), outputs=(GraphOutput("z", "z"),)
    )
    returned = replace(graph, outputs=(*graph.outputs, GraphOutput("w", "w")))
    cost = IpuCostModel(CHIP)
    shared = [context_of(each, CHIP, cost).shared_weights.get("w") for each in (graph, through, returned)]
    assert shared == [(0, 1), None, None]
    with pytest.raises(InfeasiblePlanError):
        plan_module(returned, CHIP)
