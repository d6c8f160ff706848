"""A whole model's plan: it fits, every operand arrives, lifetimes cover readers, equal input gives equal plans."""

from __future__ import annotations

from math import prod

import pytest
from support import specs

from t10.chip import load_chip
from t10.core import movement
from t10.core.dtypes import size_bytes
from t10.core.graph import Graph, View
from t10.core.placed_costs import placed_costs
from t10.core.schedule import Buffer, ModulePlan, moment
from t10.cost import IpuCostModel, operator_cycles
from t10.errors import InfeasiblePlanError
from t10.plan import PlanOptions, plan_module
from t10.plan.memory.liveness import liveness
from t10.plan.options import ForcedPartition, Reading
from t10.plan.schedule import sum_of_cycles

CHIP = load_chip("test-16")


def heads_graph() -> Graph:
    """Two projections, heads split off by views, their product: operands read through reshape and transpose."""
    views = (
        View("q3", "reshape", ("q",), (16, 4, 8), "f16"),
        View("qt", "transpose", ("q3",), (4, 16, 8), "f16", permutation=(1, 0, 2)),
        View("k3", "reshape", ("k",), (16, 4, 8), "f16"),
        View("kt", "transpose", ("k3",), (4, 16, 8), "f16", permutation=(1, 0, 2)),
    )
    ops = (
        specs.linear_relu(16, 32, 32, name="project_q", a="x", b="wq", c="q"),
        specs.linear_relu(16, 32, 32, name="project_k", a="x", b="wk", c="k"),
        specs.bmm(4, 16, 16, 8, name="scores", a="qt", b="kt", c="s"),
    )
    return specs.chain_graph("heads", ops, views)


GRAPHS = (
    specs.mlp_graph(32, (64, 128, 64)),
    specs.mlp_graph(2, (1024, 2048, 1024)),
    specs.softmax_graph(64, 48),
    specs.layer_norm_graph(32, 96),
    heads_graph(),
    specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1)),
    specs.one_operator_graph(specs.gather(24, 16, 100)),
    specs.one_operator_graph(specs.max_pool2d(1, 8, 7, 7, 3, pad=1)),
)


@pytest.fixture(scope="module", params=GRAPHS, ids=lambda graph: f"{graph.name}{len(graph.operators)}")
def plan(request: pytest.FixtureRequest) -> ModulePlan:
    return plan_module(request.param, CHIP)


def buffers_by_name(plan: ModulePlan) -> dict[str, Buffer]:
    found = {buffer.name: buffer for buffer in plan.buffers}
    assert len(found) == len(plan.buffers)
    return found


@pytest.mark.sampled(2)
def test_peak_is_within_capacity(plan: ModulePlan) -> None:
    moments = range(moment(len(plan.operators) - 1, "finish") + 1)
    used = [
        {b.address_bytes: b.size_bytes for b in plan.buffers if b.first_moment <= now <= b.last_moment}
        for now in moments
    ]
    assert plan.peak_bytes == CHIP.reserved_bytes + max(sum(each.values()) for each in used)
    assert plan.capacity_bytes == CHIP.sram_bytes
    ends = [b.address_bytes + b.size_bytes for b in plan.buffers]
    assert plan.peak_bytes <= max(ends) == plan.end_bytes <= CHIP.data_end_bytes
    assert min(b.address_bytes for b in plan.buffers) >= plan.reserved_bytes == CHIP.reserved_bytes


def test_every_operand_arrives_once_in_a_buffer_large_enough(plan: ModulePlan) -> None:
    buffers = buffers_by_name(plan)
    for step, (spec, scheduled) in enumerate(zip(plan.graph.operators, plan.operators, strict=True)):
        assert [arrival.operand for arrival in scheduled.arrivals] == list(range(len(spec.operands)))
        for arrival in scheduled.arrivals:
            elements = movement.operand_elements(spec, scheduled.active.plan, arrival.operand)
            dtype = movement.operand_of(spec, arrival.operand).dtype
            buffer = buffers[arrival.buffer]
            assert buffer.size_bytes >= prod(elements.shape[1:]) * size_bytes(dtype)
            assert buffer.first <= step <= buffer.last


def test_values_live_until_their_last_reader(plan: ModulePlan) -> None:
    buffers = buffers_by_name(plan)
    for step, spec in enumerate(plan.graph.operators):
        readers = [
            i
            for i, other in enumerate(plan.graph.operators)
            for operand in other.operands
            if spec.output.name in plan.graph.sources_of(operand.name)
        ]
        is_result = any(spec.output.name in plan.graph.sources_of(o.value) for o in plan.graph.outputs)
        buffer = buffers[f"value:{spec.output.name}"]
        assert buffer.first == step
        assert buffer.last >= max([step, *readers])
        assert not is_result or buffer.last == len(plan.graph.operators) - 1


def test_arrivals_in_place_lie_where_they_are_wanted(plan: ModulePlan) -> None:
    specs_by_name = {spec.name: spec for spec in plan.graph.operators}
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    layouts |= {s.output_layout.value: s.output_layout for s in plan.operators}
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        for arrival in scheduled.arrivals:
            if arrival.kind != "in_place":
                continue
            layout = layouts[arrival.buffer.split(":", 1)[1]]
            operand = movement.operand_of(spec, arrival.operand)
            home = movement.layout_map(specs_by_name[layout.operator], layout, prod(operand.shape))
            wanted = movement.operand_elements(spec, scheduled.active.plan, arrival.operand)
            assert (wanted.reshape(len(wanted), -1) == home.elements).all()


def test_cycles_are_the_closed_forms_plus_arrivals(plan: ModulePlan) -> None:
    costs = placed_costs(IpuCostModel(CHIP), plan, CHIP.tile_memory)
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        run, cycles = operator_cycles(costs[spec.name], spec, scheduled.active.plan), scheduled.active.cycles
        assert (cycles.compute, cycles.reduce) == (run.compute, run.reduce)
        assert cycles.shift >= run.shift
        arrived = sum(arrival.cycles for arrival in scheduled.arrivals)
        assert cycles.relayout + cycles.setup == arrived


def test_active_plan_is_on_the_front(plan: ModulePlan) -> None:
    for scheduled in plan.operators:
        assert scheduled.active.plan in {p.plan for p in scheduled.pareto}


def test_every_weight_has_an_idle_layout_and_a_buffer(plan: ModulePlan) -> None:
    buffers = buffers_by_name(plan)
    assert {layout.value for layout in plan.weight_layouts} == {w.name for w in plan.graph.weights}
    for weight in plan.graph.weights:
        buffer = buffers[f"idle:{weight.name}"]
        assert (buffer.first, buffer.last) == (0, len(plan.operators) - 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("graph", GRAPHS[:3], ids=lambda graph: f"{graph.name}{len(graph.operators)}")
def test_same_input_same_plan(graph: Graph) -> None:
    assert plan_module(graph, CHIP) == plan_module(graph, CHIP)


def test_elementwise_chain_stays_where_it_is() -> None:
    plan = plan_module(specs.softmax_graph(64, 48), CHIP)
    kinds = [arrival.kind for scheduled in plan.operators for arrival in scheduled.arrivals]
    # x lies as its first reader wants it, and arrives for the other; all else is used where it was made.
    assert kinds.count("in_place") >= len(kinds) - 1


@pytest.mark.slow
@pytest.mark.slow
def test_tight_memory_spreads_weights_and_sets_them_up() -> None:
    """At first weights that rotate where they rest are enough; with a little less memory they are not."""
    layers = specs.mlp_graph(512, (128,) * 6)
    roomy = tight = plan_module(layers, CHIP)
    assert n_setups(roomy) == 0
    while n_setups(tight) == 0:
        tighter = CHIP.model_copy(update={"sram_bytes": tight.capacity_bytes * 4 // 5})
        tight = plan_module(layers, tighter, PlanOptions(gap=0.05))
    assert tight.peak_bytes <= tight.capacity_bytes < roomy.peak_bytes
    assert sum_of_cycles(tight) > sum_of_cycles(roomy)


def n_setups(plan: ModulePlan) -> int:
    """Return how many weights are brought before an operator runs."""
    return sum(arrival.kind == "setup" for s in plan.operators for arrival in s.arrivals)


@pytest.mark.slow
def test_a_model_that_does_not_fit_names_operator_and_bytes() -> None:
    layers = specs.mlp_graph(64, (1024,) * 8)
    small = CHIP.model_copy(update={"sram_bytes": 400_000})
    with pytest.raises(
        InfeasiblePlanError, match=r"operator 'linear\d': needs about [\d,]+ bytes per core while"
    ):
        plan_module(layers, small)


@pytest.mark.parametrize("reading", ["literal", "aware", "best"])
def test_both_readings_of_algorithm_one_give_plans_that_fit(reading: Reading) -> None:
    plan = plan_module(specs.mlp_graph(64, (1024,) * 4), CHIP, PlanOptions(reading=reading))
    assert plan.peak_bytes <= plan.capacity_bytes


def test_a_shared_weight_rests_whole_where_that_is_faster() -> None:
    first = specs.linear_relu(16, 32, 32, name="first", a="x", b="w", c="y")
    second = specs.linear_relu(16, 32, 32, name="second", a="y", b="w", c="z")
    graph = specs.chain_graph("shared", (first, second))
    assert not liveness(graph).owner_by_weight
    plan = plan_module(graph, CHIP)
    assert {layout.kind for layout in plan.weight_layouts if layout.value == "w"} == {"operand"}
    spread = ForcedPartition("first", plan.operators[0].active.plan.f_op, idle_level=0)
    pinned = plan_module(graph, CHIP, PlanOptions(forced=(spread,)))
    assert {layout.kind for layout in pinned.weight_layouts} == {"linear"}
    assert sum_of_cycles(plan) < sum_of_cycles(pinned)


def test_progress_is_reported() -> None:
    stages: set[str] = set()

    def progress(stage: str, done: int, total: int) -> None:
        assert 0 <= done <= total
        stages.add(stage)

    plan_module(specs.softmax_graph(16, 16), CHIP, progress=progress)
    assert stages == {"search", "reconcile", "schedule"}
