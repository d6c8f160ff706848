"""What the planner predicts is what the plan simulator measures, kind by kind, to the cycle."""

from __future__ import annotations

from collections import Counter

import pytest
from support import specs
from support.run_costs import RowByRow
from support.simulation import executed, random_values

from t10.chip import load_chip
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.plan import plan_module
from t10.plan.verify import verify_module
from t10.sim.plan_level import simulate
from t10.sim.result import SimResult

KINDS = ("compute", "shift", "reduce", "relayout", "setup")
GRAPHS = (
    specs.mlp_graph(32, (64, 128, 64)),
    specs.mlp_graph(8, (256, 512, 256)),
    specs.mlp_graph(96, (160, 160), "f32"),
    specs.softmax_graph(64, 48),
    specs.layer_norm_graph(32, 96),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
    specs.one_operator_graph(specs.conv2d(2, 8, 7, 7, 8, 3, 3, stride=2, pad=1)),
    specs.one_operator_graph(specs.gather(24, 16, 100)),
    specs.one_operator_graph(specs.max_pool2d(1, 8, 7, 7, 3, pad=1)),
    specs.one_operator_graph(specs.bmm(4, 24, 24, 16)),
)


def predicted(plan: ModulePlan) -> Counter[str]:
    found: Counter[str] = Counter()
    for scheduled in plan.operators:
        for kind in KINDS:
            found[kind] += getattr(scheduled.active.cycles, kind)
    return +found


def simulated(result: SimResult) -> Counter[str]:
    found: Counter[str] = Counter()
    for phase in result.timeline:
        found[phase.kind] += phase.cycles
    return +found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("sram_kib", [624, 96])
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: f"{graph.name}-{len(graph.operators)}")
def test_simulated_cycles_equal_predicted_ones(graph: Graph, sram_kib: int) -> None:
    chip = load_chip("test-16").model_copy(update={"sram_bytes": sram_kib * 1024})
    plan = plan_module(graph, chip)
    assert not verify_module(plan, chip)
    result = executed(plan, chip, random_values((*graph.inputs, *graph.weights)))
    assert simulated(result) == predicted(plan)
    assert result.cycles == sum(predicted(plan).values())


def test_so_are_those_of_epilogues_priced_by_their_runs() -> None:
    chip = load_chip("test-16").model_copy(update={"sram_bytes": 96 * 1024})
    cost, graph = RowByRow(chip), specs.mlp_graph(32, (64, 128, 64))
    plan = plan_module(graph, chip, cost=cost)
    values = random_values((*graph.inputs, *graph.weights))
    found = simulated(simulate(plan, chip, cost, values, values))
    assert found == predicted(plan)
    assert found["compute"] != simulated(executed(plan, chip, values))["compute"]
