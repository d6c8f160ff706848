"""All-reduce: every member ends with the same bits of the whole sum, and it costs what the planner says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from random import Random

import numpy as np
import pytest
from support import random_plans, random_specs, specs
from support.random_cases import Case, problems, small_chip

from t10.chip import ChipSpec, load_chip
from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.placed_costs import placed_costs
from t10.core.plan import CostedPlan, Cycles, OperatorPlan, final_positions
from t10.core.schedule import Buffer
from t10.cost import CostModel, IpuCostModel, operator_cycles, paper_cost_model
from t10.cost.operator import combine_cycles, output_chunk
from t10.plan import ForcedPartition, PlanOptions, align_pace, place, plan_module
from t10.plan.assemble import assemble, output_layout
from t10.plan.context import context_of
from t10.plan.memory.levels import Choice
from t10.plan.memory.room import DataRoom
from t10.plan.search.alternatives import alternatives, evaluate_plans
from t10.plan.search.operator import plan_operator
from t10.plan.verify import verify_module, verify_operator
from t10.report.traffic import reduce_bytes
from t10.sim.memory import CoreMemory
from t10.sim.partition import Partition
from t10.sim.plan_level import simulate
from t10.sim.reduce import all_reduce, reduction_groups
from t10.sim.shift import SHIFT_BUFFER

CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)
OPERATORS = (
    specs.matmul(4, 6, 64),
    specs.linear_relu(2, 8, 96),
    specs.bmm(2, 4, 4, 32),
    specs.conv2d(1, 8, 4, 4, 4, 3, 3, pad=1),
)


def split_sums(spec: OperatorSpec, chip: ChipSpec = CHIP) -> tuple[OperatorPlan, ...]:
    """Return the plans of an operator's front whose partial sums lie on several cores."""
    front = plan_operator(spec, chip, COST, PlanOptions())
    return tuple(priced.plan for priced in front if priced.plan.reduce == "scatter")


def all_reduced(graph: Graph, chip: ChipSpec, seed: int) -> Iterator[Case]:
    """Yield a graph with each operator in turn under a plan whose sums are combined on all members."""
    for step, spec in enumerate(graph.operators):
        for plan in split_sums(spec, chip)[:3]:
            rng = Random(seed)
            plans = [random_plans.random_plan(rng, each, chip.n_cores) for each in graph.operators]
            plans[step] = alternatives(spec, plan, chip)[0]
            module = random_plans.lay_out(rng, graph, tuple(plans), chip)
            yield Case(seed, chip, graph, module, random_specs.random_arrays(rng, graph))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_an_alternative_is_a_right_plan_and_its_alternative_is_the_plan(spec: OperatorSpec) -> None:
    plans = split_sums(spec)
    assert plans
    for plan in plans:
        (other,) = alternatives(spec, plan, CHIP)
        assert other == replace(plan, reduce="all")
        assert verify_operator(spec, other, CHIP.n_cores) == []
        assert alternatives(spec, other, CHIP) == (plan,)


def test_sums_on_one_core_have_no_alternative() -> None:
    spec = specs.matmul(16, 16, 4)
    plans = [priced.plan for priced in plan_operator(spec, CHIP, COST, PlanOptions())]
    whole = [plan for plan in plans if plan.reduce == "none"]
    assert whole
    assert all(alternatives(spec, plan, CHIP) == () for plan in whole)


def test_every_member_needs_room_for_an_element_of_all_others() -> None:
    plan = max(split_sums(OPERATORS[0]), key=lambda each: output_chunk(OPERATORS[0], each)[0])
    n_members, _ = output_chunk(OPERATORS[0], plan)
    small = CHIP.model_copy(update={"shift_buffer_bytes": 4 * (n_members - 1) - 1})
    assert alternatives(OPERATORS[0], plan, small) == ()
    just = CHIP.model_copy(update={"shift_buffer_bytes": 4 * (n_members - 1)})
    assert len(alternatives(OPERATORS[0], plan, just)) == 1


def test_the_checker_refuses_an_all_reduce_whose_landing_places_do_not_fit() -> None:
    graph = specs.one_operator_graph(OPERATORS[0])
    most = max(split_sums(OPERATORS[0]), key=lambda each: output_chunk(OPERATORS[0], each)[0])
    (plan,) = alternatives(OPERATORS[0], most, CHIP)
    assert output_chunk(OPERATORS[0], plan)[0] > 3
    small = CHIP.model_copy(update={"shift_buffer_bytes": 8})
    module = random_plans.lay_out(Random(1), graph, (plan,), small)
    assert {violation.rule for violation in verify_module(module, small)} == {"size"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("buffer_bytes", [64, 8192])
def test_models_with_all_reduced_operators_compute_what_numpy_does(
    spec: OperatorSpec, buffer_bytes: int
) -> None:
    chip = CHIP.model_copy(update={"shift_buffer_bytes": buffer_bytes})
    cases = list(all_reduced(specs.one_operator_graph(spec), chip, 3))
    assert cases
    for case in cases:
        assert problems(case) == []


def test_row_statistics_are_read_where_they_were_summed() -> None:
    """One core per column of two rows: the mean is on all cores of its row, where the columns are centred."""
    graph, chip = specs.layer_norm_graph(2, 8), small_chip(16)
    f_op = {spec.name: (2, 8) if len(spec.axes) == 2 else (2,) for spec in graph.operators}
    plans: list[OperatorPlan] = []
    for spec in graph.operators:
        ft = tuple((1,) * len(spec.axes) for _ in spec.rotatable)
        order = tuple(range(len(spec.axes)))
        plan = place(spec, f_op[spec.name], ft, align_pace(spec, f_op[spec.name], ft), order)
        assert plan is not None
        plans.append(next(iter(alternatives(spec, plan, chip)), plan))
    assert [plan.reduce for plan in plans].count("all") == 2
    module = DataRoom(chip)(
        assemble(
            context_of(graph, chip, COST),
            tuple((CostedPlan(plan, Cycles(), 0, 0),) for plan in plans),
            tuple(Choice(0, 0) for _ in plans),
            None,
        )
    )
    arrival = module.operators[1].arrivals[1]
    assert (arrival.kind, arrival.buffer) == ("in_place", "value:mu")
    assert verify_module(module, chip) == []
    arrays = random_specs.random_arrays(Random(1), graph)
    weights = {tensor.name: arrays[tensor.name] for tensor in graph.weights}
    inputs = {tensor.name: arrays[tensor.name] for tensor in graph.inputs}
    found, due = (
        simulate(each, chip, COST, weights, inputs).outputs for each in (module, plan_module(graph, chip))
    )
    assert {name: array.tobytes() for name, array in found.items()} == {
        name: array.tobytes() for name, array in due.items()
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("buffer_bytes", [64, 8192])
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_every_copy_of_a_sum_has_the_same_bits(spec: OperatorSpec, buffer_bytes: int) -> None:
    """Adding in the order of ranks, not in the order of arrival: floats do not associate."""
    for plan in split_sums(spec):
        (plan,) = alternatives(spec, plan, CHIP)
        lengths = geometry.window_lengths(plan, len(spec.inputs))
        n_slots = prod(geometry.partition_shape(spec.output, lengths))
        memory = CoreMemory(CHIP.n_cores, CHIP.sram_bytes, 0)
        memory.begin(Buffer(SHIFT_BUFFER, 0, buffer_bytes, 0, 0))
        memory.begin(Buffer("accumulator", 8192, 4 * n_slots, 0, 0))
        slots = memory.slots("accumulator", "f32", plan.n_cores, n_slots)
        slots[:] = np.random.default_rng(5).standard_normal(slots.shape)
        groups = reduction_groups(spec, plan, final_positions(plan))
        due = slots[groups.members[:, 0]]
        for member in groups.members.T[1:]:
            due = due + slots[member]
        operand = replace(spec.output, dtype="f32")
        n_bytes = all_reduce(memory, spec, plan, Partition(operand, len(spec.inputs), lengths, slots), groups)
        assert slots.tobytes() == due.tobytes()
        assert n_bytes == (groups.members.shape[1] - 1) * n_slots * 4


@pytest.mark.parametrize("cost", [COST, paper_cost_model(CHIP)], ids=lambda cost: cost.name)
@pytest.mark.parametrize("spec", OPERATORS, ids=lambda spec: spec.name)
def test_prices_of_all_reduces_are_the_closed_forms(spec: OperatorSpec, cost: CostModel) -> None:
    scattered = split_sums(spec)
    plans = tuple(alternatives(spec, plan, CHIP)[0] for plan in scattered)
    priced = evaluate_plans(spec, cost, (*plans, *scattered))
    before = evaluate_plans(spec, cost, scattered)
    for row, plan in enumerate((*plans, *scattered)):
        due = operator_cycles(cost, spec, plan)
        found = (int(priced.compute[row]), int(priced.shift[row]), int(priced.reduce[row]))
        assert found == (due.compute, due.shift, due.reduce)
    n = len(plans)
    assert (priced.relayout[:n] == before.relayout).all()
    assert (priced.active_bytes[:n] >= before.active_bytes).all()
    assert (priced.active_bytes[n:] == before.active_bytes).all()


def test_an_all_reduced_plan_can_be_pinned() -> None:
    spec = OPERATORS[0]
    (plan,) = alternatives(spec, split_sums(spec)[0], CHIP)
    pinned = PlanOptions(forced=(ForcedPartition(spec.name, plan.f_op, plan=plan),))
    module = plan_module(specs.one_operator_graph(spec), CHIP, pinned)
    (scheduled,) = module.operators
    assert scheduled.active.plan == plan
    assert scheduled.active.cycles.reduce == combine_cycles(COST, spec, plan)
    assert scheduled.pareto[-1].cycles.reduce == combine_cycles(COST, spec, plan)
    assert verify_module(module, CHIP) == []


@pytest.mark.parametrize("cost", [COST, paper_cost_model(CHIP)], ids=lambda cost: cost.name)
def test_an_all_reduce_of_one_element_each_is_one_phase_and_grows_with_members_and_elements(
    cost: CostModel,
) -> None:
    spec = OPERATORS[0]
    assert cost.all_reduce_cycles(spec, 1, 100) == 0
    assert cost.all_reduce_cycles(spec, 2, 1) == cost.reduce_cycles(spec, 2, 2)
    members = np.array([2, 3, 8, 16, 2, 2, 2], np.int64)
    # Of a single element, one part is added more slowly than two are: the code for parts of words takes longer.
    slots = np.array([4, 4, 4, 4, 100, 3000, 9000], np.int64)
    many = cost.all_reduce_cycles_many(spec, members, slots)
    assert many.tolist() == [
        cost.all_reduce_cycles(spec, int(m), int(n)) for m, n in zip(members, slots, strict=True)
    ]
    assert (np.diff(many[:4]) > 0).all()
    assert (np.diff(many[4:]) > 0).all()


def test_the_simulator_charges_and_moves_what_the_planner_says() -> None:
    spec = OPERATORS[1]
    for case in all_reduced(specs.one_operator_graph(spec), CHIP, 9):
        plan = case.plan.operators[0].active.plan
        weights = {t.name: case.arrays[t.name] for t in case.graph.weights}
        inputs = {t.name: case.arrays[t.name] for t in case.graph.inputs}
        result = simulate(case.plan, CHIP, COST, weights, inputs)
        phases = [record for record in result.timeline if record.kind == "reduce"]
        cost = placed_costs(COST, case.plan, CHIP.tile_memory)[spec.name]
        assert [record.cycles for record in phases] == [combine_cycles(cost, spec, plan)]
        n_members, n_slots = output_chunk(spec, plan)
        assert reduce_bytes(spec, plan) == (n_members - 1) * n_slots * 4
        assert sum(record.n_bytes for record in phases) == plan.n_cores * reduce_bytes(spec, plan)


def test_a_result_left_whole_says_so() -> None:
    spec = OPERATORS[0]
    plan = split_sums(spec)[0]
    assert output_layout(spec, plan).scatter == output_chunk(spec, plan)[0] > 1
    assert output_layout(spec, replace(plan, reduce="all")).scatter == 1
