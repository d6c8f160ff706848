"""What a plan is priced at is what its program takes where nothing is short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.specs import (
    conv2d,
    gather,
    layer_norm_graph,
    linear_relu,
    matmul,
    mlp_graph,
    one_operator_graph,
    row_reduce,
    softmax_graph,
)

from t10.chip import ChipSpec, load_chip
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.graph import Graph
from t10.core.placed_costs import StepLies
from t10.core.plan import CostedPlan
from t10.core.program import ReduceMode
from t10.core.schedule import ModulePlan
from t10.core.tile import OVERREAD_BYTES
from t10.core.vertex_nest import Lie
from t10.cost import IpuCostModel, operator_cycles
from t10.emit.lower import lowered_parts
from t10.passes.program_room import ProgramRoom
from t10.plan.memory.buffers import requests_of
from t10.plan.memory.wishes import Wishes
from t10.plan.schedule import as_placed, plan_module, restore_module, sum_of_cycles
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed
from t10.plan.search.placement import place
from t10.profile.steps import timed
from t10.sim.plan_level import simulate

CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)


def pinned(spec: OperatorSpec, f_op: AxisSizes, mode: ReduceMode = "scatter") -> CostedPlan:
    """Return the plan of an operator that is cut like this and rotates nothing, with its price."""
    ft = ((1,) * len(f_op),) * len(spec.rotatable)
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    assert plan is not None
    is_whole = mode == "all"
    if plan.reduce != "none":
        plan = replace(plan, reduce=mode)
    table = np.array([f_op], np.int64), np.array([ft], np.int64)
    return costed(plan, evaluate(spec, COST, *table, np.array([is_whole])), 0)


def placed(spec: OperatorSpec, priced: CostedPlan) -> ModulePlan:
    """Return a model of one operator, its buffers placed beside its program."""
    module = ProgramRoom(CHIP, COST)(restore_module(one_operator_graph(spec), CHIP, COST, (priced,), (0,)))
    return as_placed(module, CHIP, COST)


def priced_and_timed(spec: OperatorSpec, priced: CostedPlan) -> tuple[dict[str, int], dict[str, int]]:
    """Return the cycles of a plan's statements by kind: its price, and what they take as emitted and placed."""
    module = placed(spec, priced)
    by_operator = timed(lowered_parts(module, CHIP, COST), module, CHIP)
    cycles = module.operators[0].active.cycles
    took = {"compute": 0, "shift": 0, "reduce": 0, "arrive": 0}
    kinds = {
        "Fill": "compute",
        "SubTask": "compute",
        "Epilogue": "compute",
        "Shift": "shift",
        "Reduce": "reduce",
        "Arrive": "arrive",
    }
    for statement, each in zip(module.operators[0].body, by_operator[spec.name], strict=True):
        if (kind := kinds.get(type(statement).__name__)) is not None:
            took[kind] += each
    arrive = cycles.relayout + cycles.setup
    return {"compute": cycles.compute, "shift": cycles.shift, "reduce": cycles.reduce, "arrive": arrive}, took


@pytest.mark.parametrize(
    ("spec", "f_op"),
    [
        (matmul(64, 24, 64), (2, 1, 8)),
        (matmul(33, 26, 64), (2, 1, 8)),
        (linear_relu(64, 24, 64), (2, 1, 8)),
        (linear_relu(16, 94, 64), (2, 1, 8)),
        (linear_relu(24, 16, 60), (3, 1, 5)),
        (linear_relu(16, 30, 64), (4, 2, 2)),
        (conv2d(1, 32, 7, 14, 16, 1, 1), (1, 1, 1, 5, 2, 1, 1)),
        (gather(128, 1024, 16), (13, 1, 1)),
        (row_reduce(24, 9, "max"), (1, 8)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["scatter", "all"])
def test_a_plan_takes_its_price(spec: OperatorSpec, f_op: AxisSizes, mode: ReduceMode) -> None:
    priced, took = priced_and_timed(spec, pinned(spec, f_op, mode))
    assert took == priced


def test_wishes_weigh_what_is_lost_without_them() -> None:
    """A plan that is priced without one grant takes as many cycles more as its wish weighs, but for the one of ties."""
    spec = matmul(64, 256, 64)
    plan = pinned(spec, (1, 2, 2))
    module = placed(spec, plan)
    wishes = Wishes(COST).of(module.graph, module.operators, requests_of(module, CHIP))
    shift = [wish.weight for wish in wishes if "shift" in wish.names]
    best = StepLies(Lie.best(3), Lie.best(2), Lie.best(2))
    least = operator_cycles(COST.lying(best), spec, plan.plan)

    def lost(lies: StepLies) -> int:
        now = operator_cycles(COST.lying(lies), spec, plan.plan)
        return now.reduce - least.reduce + now.compute - least.compute

    together = lost(replace(best, combine=replace(best.combine, apart=frozenset())))
    assert together > 0
    assert 1 + together in shift
    products = {wish.names: wish.weight for wish in wishes if "shift" not in wish.names}
    assert max(products.values()) > 1
    for pair in Lie.best(3).apart:
        worse = replace(best, sub_task=replace(best.sub_task, apart=best.sub_task.apart - {pair}))
        assert 1 + lost(worse) in products.values()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize(
    "graph",
    [mlp_graph(32, (64, 128, 64)), softmax_graph(64, 48), layer_norm_graph(32, 96)],
    ids=lambda graph: graph.name,
)
def test_a_placed_plan_takes_its_price_where_operands_share_memory_elements(
    graph: Graph, is_full: bool
) -> None:
    """Operands that are one buffer, results in the place of operands; and, in full memory, whatever is not granted."""
    plan, chip = plan_module(graph, CHIP, cost=COST), CHIP
    if is_full:
        size = max(plan.end_bytes, plan.peak_bytes) + OVERREAD_BYTES
        chip = CHIP.model_copy(update={"sram_bytes": size // 8 * 8})
        plan = plan_module(graph, chip)
    costs = IpuCostModel(chip)
    took = timed(lowered_parts(plan, chip, costs), plan, chip)
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        assert sum(took[spec.name]) == scheduled.active.cycles.total
    if graph.name == "layer_norm":
        pairs = zip(plan.graph.operators, plan.operators, strict=True)
        assert any(
            each.active.cycles.compute > operator_cycles(costs, spec, each.active.plan).compute
            for spec, each in pairs
        )
    assert simulated_cycles(plan, chip, costs) == sum_of_cycles(plan)


def simulated_cycles(plan: ModulePlan, chip: ChipSpec, costs: IpuCostModel) -> int:
    """Return the cycles of a plan as the plan simulator counts them."""
    rng = np.random.default_rng(0)
    values = {
        value.name: rng.random(value.shape).astype(np.float16)
        for value in (*plan.graph.inputs, *plan.graph.weights)
    }
    weights = {value.name: values[value.name] for value in plan.graph.weights}
    inputs = {value.name: values[value.name] for value in plan.graph.inputs}
    return sum(each.cycles for each in simulate(plan, chip, costs, weights, inputs).timeline)


def test_a_bound_is_not_above_what_the_plan_takes_where_its_buffers_lie() -> None:
    module = plan_module(mlp_graph(32, (64, 128, 64)), CHIP, cost=COST)
    assert module.optimality is not None
    loose = replace(module, optimality=replace(module.optimality, bound_cycles=10 * sum_of_cycles(module)))
    lying = as_placed(loose, CHIP, COST)
    assert lying.optimality is not None
    assert lying.optimality.bound_cycles <= lying.optimality.cycles == sum_of_cycles(lying)
