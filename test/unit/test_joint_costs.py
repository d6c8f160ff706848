"""What choices of whole models are said to cost is what their assembled plans cost, in cycles and in bytes."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import count, product
from math import prod
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from support import specs
from support.draw import drawn
from support.joint_graphs import (
    GRAPHS,
    Planning,
    alive_bytes,
    gram_graph,
    joined_graph,
    planning,
    residual_graph,
)
from support.random_cases import CORE_COUNTS, small_chip
from support.random_specs import random_graph
from support.simulation import executed, random_values

from t10.chip import load_chip
from t10.core.graph import Graph
from t10.cost import IpuCostModel
from t10.driver import compile
from t10.frontend.importer import import_proto
from t10.plan import PlanOptions, plan_module
from t10.plan.context import context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.algorithm1 import base_bytes
from t10.plan.joint import choose, costs, edges, states
from t10.plan.joint.candidates import counted_best, listed_by_front
from t10.plan.joint.edges import Edge, begun_by
from t10.plan.joint.marginals import Marginals
from t10.plan.joint.selection import Selection
from t10.plan.joint.solve import MOST_WORK, Solution, solve
from t10.plan.movement import arrivals
from t10.plan.options import Method
from t10.plan.schedule import sum_of_cycles
from t10.plan.search.alternatives import evaluate_plans
from t10.plan.verify import verify_module

CHIP = load_chip("test-16")
LARGER = load_chip("test-64")
"""So many cores that bounds leave some of them out."""
N_CHOICES = 12
N_RANDOM, N_SHARES, N_DRAWN = 120, 4, 2
FEW = PlanOptions(gap=0.0, max_front=3)


@pytest.fixture(params=GRAPHS, ids=lambda graph: f"{graph.name}{len(graph.operators)}")
def graph(request: pytest.FixtureRequest) -> Graph:
    found: Graph = request.param
    return found


def test_what_another_process_counts_of_candidates_is_what_this_one_counts() -> None:
    cost, options = IpuCostModel(CHIP), PlanOptions()
    graph = residual_graph()
    fronts, context = operator_fronts(graph, CHIP, cost, options), context_of(graph, CHIP, cost)
    here, there = (
        Marginals(context, fronts, options, listed_by_front(context, fronts, options), through_views=True)
        for _ in range(2)
    )
    n_counted = 0
    for step, (one, other) in enumerate(zip(here.by_step, there.by_step, strict=True)):
        assert one is not None
        assert other is not None
        values = here.of(step) - one.cycles
        one.moved = None
        one.least(cost, values, 4, None)
        sent = pickle.loads(pickle.dumps(other.portable()))
        other.learn(*counted_best(cost, sent, values, 4, None))
        for name in ("cycles", "is_counted"):
            assert (getattr(one, name) == getattr(other, name)).all()
            assert (getattr(one.listed, name) == getattr(other.listed, name)).all()
        n_counted += int((other.is_counted & (other.fixed_cycles > 0)).sum())
    assert n_counted > 0


def test_operators_have_so_many_states_that_tables_can_be_counted() -> None:
    graph = residual_graph()
    cost, options = IpuCostModel(CHIP), PlanOptions()
    fronts, context = operator_fronts(graph, CHIP, cost, options), context_of(graph, CHIP, cost)
    few = [front[:2] for front in fronts]
    many = [front[:1] * 400 for front in fronts]
    found = states.within_tables(context, many, few)
    maker_by_value = {spec.output.name: step for step, spec in enumerate(graph.operators)}
    for step, spec in enumerate(graph.operators):
        for operand in spec.operands:
            sources = graph.sources_of(operand.name)
            scope = {step, *(maker_by_value[each] for each in sources if each in maker_by_value)}
            assert prod(len(found[each]) for each in scope) <= states.WISHED_CELLS
    assert any(len(each) > len(other) for each, other in zip(found, few, strict=True))


@pytest.mark.slow
def test_a_settled_choice_costs_what_its_plan_costs(graph: Graph) -> None:
    made = planning(graph, CHIP)
    for number in range(N_CHOICES):
        rows = made.random_rows(number)
        made.settled(rows)
        assert made.planner.selection(made.room_bytes).cycles(rows) == sum_of_cycles(made.assembled(rows))


@pytest.mark.parametrize("name", ["test-2x4", "test-4x16", "test-ring", "test-mesh"])
def test_states_number_their_cores_as_they_are_priced(name: str) -> None:
    """Partial sums pass links or do not, as cores are numbered."""
    made = planning(specs.mlp_graph(16, (128, 128, 128)), load_chip(name))
    for spec, found in zip(made.context.graph.operators, made.planner.states, strict=True):
        prices = evaluate_plans(spec, made.context.cost, [state.plan for state in found])
        assert [state.cycles.reduce for state in found] == prices.reduce.tolist()


@pytest.mark.sampled(3)
def test_settling_twice_changes_nothing(graph: Graph) -> None:
    made = planning(graph, CHIP)
    selection = made.planner.selection(made.room_bytes)
    rows = made.random_rows(0)
    chosen = selection.states_of(rows).tolist()
    levels = [int(row) - selection.rows_of(o).start for o, row in enumerate(rows)]
    made.planner.pair_costs.settle([(chosen, levels)])
    assert not made.planner.pair_costs.settle([(chosen, levels)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_pieces", [8, arrivals.BOUND_PIECES])
def test_prices_are_bounds_of_what_they_settle_to(
    graph: Graph, n_pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", n_pieces)
    made = planning(graph, LARGER)
    costs_of_model = made.planner.pair_costs
    edges = [edge.cycles.copy() for _, edge in costs_of_model.edges]
    rows = [priced.table.cycles.copy() for priced in costs_of_model.rows]
    for number in range(N_CHOICES):
        made.settled(made.random_rows(number))
    assert all(
        (before <= edge.cycles).all() for before, (_, edge) in zip(edges, costs_of_model.edges, strict=True)
    )
    assert all(
        (before <= priced.table.cycles).all()
        for before, priced in zip(rows, costs_of_model.rows, strict=True)
    )


def test_bounds_of_few_pieces_leave_something_to_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 8)
    made = planning(specs.layer_norm_graph(32, 96), LARGER)
    before = sum(int(edge.cycles.sum()) for _, edge in made.planner.pair_costs.edges)
    for number in range(N_CHOICES):
        made.settled(made.random_rows(number))
    assert sum(int(edge.cycles.sum()) for _, edge in made.planner.pair_costs.edges) > before


@pytest.mark.parametrize(
    "graph", [specs.layer_norm_graph(32, 96), residual_graph()], ids=lambda graph: graph.name
)
def test_rough_bounds_come_closer_until_the_same_is_chosen(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With every bound at 0, all pairs of states are counted in turn.
    few = states.Breadth(of_front=states.WIDE.of_front, of_candidates=4, following=4, leading=2)
    monkeypatch.setattr(states, "FULL", few)
    made = planning(graph, CHIP, FEW)
    due = made.planner.best(made.room_bytes)
    moved: Callable[..., tuple[int, int]] = vars(costs.JointCosts)["_moved"]

    def partly_moved(
        self: costs.JointCosts, step: int, number: int, state: int, layouts: Any, counted: costs.Counted
    ) -> tuple[int, int]:
        cycles, begins = moved(self, step, number, state, layouts, "exact")
        return {
            "rough": (0, 0),
            "fine": (cycles // 2, begins // 2),
            "loads": (cycles * 3 // 4, begins),
            "exact": (cycles, begins),
        }[counted]

    monkeypatch.setattr(costs.JointCosts, "_moved", partly_moved)
    made = planning(graph, CHIP, FEW)
    found = made.planner.best(made.room_bytes)
    assert due is not None
    assert found is not None
    assert found.cycles == found.bound_cycles == due.cycles


@pytest.mark.slow
def test_a_bound_is_closed_as_far_as_what_lies_worse_asks_for() -> None:
    graph = specs.one_operator_graph(specs.conv2d(1, 16, 14, 14, 8, 3, 3, pad=1))
    exact, rough = (planning(graph, CHIP, replace(FEW, gap=gap)) for gap in (0.0, 0.9))
    room = exact.room_bytes
    due, found = exact.planner.best(room), rough.planner.best(room)
    assert due is not None
    assert found is not None
    closed = rough.planner.closer_bound(room, found.cycles)
    assert found.bound_cycles < closed == due.cycles
    # What lies so badly that any bound is close asks for nothing.
    assert rough.planner.closer_bound(room, 100 * found.cycles) <= due.cycles


def test_tables_that_would_be_too_large_are_left_out_and_stay_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "MOST_CELLS", 4)
    made = planning(joined_graph(), CHIP)
    for number in range(N_CHOICES):
        rows = made.random_rows(number)
        made.settled(rows)
        assert made.planner.selection(made.room_bytes).cycles(rows) <= sum_of_cycles(made.assembled(rows))


@pytest.mark.parametrize("most_cells", [1000, 24, 12])
def test_phases_begin_where_any_operand_moves(most_cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator reads two others: all three are looked at or, where these are too many, what one does in any case."""
    monkeypatch.setattr(edges, "MOST_BEGUN", most_cells)
    n_states = [4, 2, 3]
    often = 298 * np.array([[0, 0, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1]])
    rarely = 298 * np.array([[0, 1, 0], [0, 1, 1]])
    whole = np.maximum(often[:, None, :], rarely[None, :, :])
    made = [Edge(2, n, (n,), table, table > 0, table) for n, table in enumerate((often, rarely))]
    begun = begun_by([((0, 2), made[0]), ((1, 2), made[1])], n_states)
    found = begun.cycles([n_states[each] for each in begun.scope])
    if most_cells == 12:
        assert begun.scope == (0, 2)
        assert np.array_equal(found, whole.min(axis=1))
        assert (found[0, 1], often[0, 1]) == (298, 0)
    else:
        assert begun.scope == (0, 1, 2)
        assert np.array_equal(found, whole)


def surplus_bytes(made: Planning, number: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return by how much the bytes of a random choice are overestimated, at every moment."""
    rows = made.random_rows(number)
    counted = made.planner.selection(made.room_bytes).used_bytes(rows) + base_bytes(made.context)
    return counted - alive_bytes(made.assembled(rows), made.chip)


def test_bytes_are_those_alive_at_every_moment(graph: Graph) -> None:
    made = planning(graph, CHIP)
    # A result takes over one operand. Which it will be is only known of the first that can be, and not if all
    # operands are one value.
    is_exact = graph.name not in ("squared", "residual")
    for number in range(N_CHOICES):
        surplus = surplus_bytes(made, number)
        assert (surplus >= 0).all()
        assert not (surplus.any() and is_exact)


@pytest.mark.slow
@pytest.mark.parametrize("share", drawn(range(N_SHARES), N_DRAWN))
def test_random_graphs_cost_and_hold_what_was_said(share: int) -> None:
    n_exact = 0
    for seed in range(share, N_RANDOM, N_SHARES):
        rng = Random(seed)
        chip = small_chip(rng.choice(CORE_COUNTS))
        made = planning(random_graph(rng), chip)
        for number in range(3):
            rows = made.random_rows(number)
            made.settled(rows)
            plan = made.assembled(rows)
            assert made.planner.selection(made.room_bytes).cycles(rows) == sum_of_cycles(plan), seed
            surplus = surplus_bytes(made, number)
            assert (surplus >= 0).all(), seed
            n_exact += not surplus.any()
    assert n_exact > 0.9 * 3 * N_RANDOM / N_SHARES


def test_equal_layers_share_states_and_prices() -> None:
    made = planning(specs.mlp_graph(16, (48,) * 10), CHIP)
    deeper = planning(specs.mlp_graph(16, (48,) * 13), CHIP)
    # The first reads the input, the last is read by nobody; those between repeat once states have settled, which they
    # do from either end: producers offer plans to readers, and readers to producers.
    kinds = [
        (
            len({id(each) for each in costs_of_model.states}),
            len({id(edge) for _, edge in costs_of_model.edges}),
            len({id(priced) for priced in costs_of_model.rows}),
        )
        for costs_of_model in (made.planner.pair_costs, deeper.planner.pair_costs)
    ]
    assert kinds[0] == kinds[1]
    assert max(kinds[0]) <= 7
    for number in range(4):
        rows = made.random_rows(number)
        made.settled(rows)
        assert made.planner.selection(made.room_bytes).cycles(rows) == sum_of_cycles(made.assembled(rows))


def every_rows(made: Planning) -> list[np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    selection = made.planner.selection(made.room_bytes)
    return [
        np.array(rows, np.int64)
        for rows in product(*(selection.rows_of(o) for o in range(selection.n_operators)))
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "graph",
    [
        specs.mlp_graph(16, (48, 64, 32)),
        specs.softmax_graph(24, 40),
        specs.layer_norm_graph(24, 40),
        gram_graph(),
    ],
    ids=lambda graph: graph.name,
)
def test_no_plan_of_a_small_model_undercuts_the_bound(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Assemble every choice; room is what some choices need, eighths of the way from the least to the most."""
    few = states.Breadth(of_front=states.WIDE.of_front, of_candidates=0, following=1, leading=0)
    monkeypatch.setattr(states, "FULL", few)
    made = planning(graph, CHIP, FEW)
    plans = [made.assembled(rows) for rows in every_rows(made)]
    assert 1 < len(plans) < 2000
    needs = [int(alive_bytes(plan, CHIP).max()) - base_bytes(made.context) for plan in plans]
    for eighths in (0, 1, 3, 8):
        room_bytes = min(needs) + (max(needs) - min(needs)) * eighths // 8
        least = min(sum_of_cycles(p) for p, need in zip(plans, needs, strict=True) if need <= room_bytes)
        found = made.planner.best(room_bytes)
        assert found is not None
        assert found.bound_cycles == found.cycles == least
    assert made.planner.best(min(needs) - 1) is None


@pytest.mark.sampled(6)
@pytest.mark.parametrize("method", ["exact", "greedy"])
def test_every_graph_is_planned_right_by_either_method(graph: Graph, method: Method) -> None:
    plan = plan_module(graph, CHIP, PlanOptions(reconcile=method))
    assert verify_module(plan, CHIP) == []
    result = executed(plan, CHIP, random_values((*graph.inputs, *graph.weights)))
    assert result.cycles == sum_of_cycles(plan)
    assert result.peak_bytes == plan.peak_bytes


def test_a_choice_of_algorithm_1_is_taken_where_it_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that ends within the gap may come back with a choice that is slower."""

    def poor(selection: Selection, *others: object) -> Solution:
        del others
        rows = np.array([selection.rows_of(step).start for step in range(selection.n_operators)])
        return Solution(rows, selection.cycles(rows), 1)

    monkeypatch.setattr(choose, "solve", poor)
    found = plan_module(residual_graph(), CHIP).optimality
    assert found is not None
    assert found.priced_cycles == min(found.literal_cycles, found.aware_cycles)


def test_no_clock_ends_the_search_unless_a_time_limit_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = count(step=3600)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(hours)))
    seen: list[bool] = []
    work_left: list[int] = []

    def watched(*arguments: Any) -> Solution | None:
        *_, is_over, work = arguments
        seen.append(is_over())
        work_left.append(work)
        return solve(*arguments)

    monkeypatch.setattr(choose, "solve", watched)
    plan_module(joined_graph(), CHIP)
    assert seen
    assert not any(seen)
    # What one round has used up is gone for the next.
    assert work_left == sorted(work_left, reverse=True)
    assert work_left[0] == MOST_WORK
    seen.clear()
    plan_module(joined_graph(), CHIP, PlanOptions(time_limit_seconds=1.0))
    assert all(seen)


@pytest.mark.parametrize("n", [16, 70])
def test_readers_of_very_many_operators_have_no_table(n: int) -> None:
    """The entries of one are more than 64 bits count, or its dims more than arrays have."""
    text = f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[{n}, 3] x, float[3, 3] w) => (float[{n}, 3] y) {{
            {", ".join(f"s{i}" for i in range(n))} = Split <axis: int = 0, num_outputs: int = {n}> (x)
            {" ".join(f"r{i} = MatMul (s{i}, w)" for i in range(n))}
            c = Concat <axis: int = 0> ({", ".join(f"r{i}" for i in range(n))})
            y = Softmax (c)
        }}"""
    imported = import_proto(onnx.parser.parse_model(text), source="many")
    x, w = (np.random.default_rng(n).standard_normal(shape).astype(np.float32) for shape in ((n, 3), (3, 3)))
    found = compile(imported, "test-4").run({"x": x, "w": w})["y"]
    raised = np.exp((x @ w) - (x @ w).max(axis=1, keepdims=True))
    np.testing.assert_allclose(found, raised / raised.sum(axis=1, keepdims=True), rtol=2e-5, atol=1e-6)
