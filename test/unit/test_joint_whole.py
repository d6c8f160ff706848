"""The joint choice against every combination of plans of tiny models, listed without the planner's enumerations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from support import specs
from support.joint_graphs import planning
from support.simulation import chip_of

import t10
from t10.chip import ChipSpec
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan, OperatorPlan
from t10.cost import IpuCostModel, operator_cycles
from t10.plan import PlanOptions
from t10.plan.assemble import assemble
from t10.plan.context import context_of
from t10.plan.joint import states
from t10.plan.memory.levels import Choice
from t10.plan.schedule import sum_of_cycles
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import natural_core_order, place

LEVELS = (0, 1)


def rows_graph(m: int, n: int) -> Graph:
    """Return |x| and the sums of its rows, added."""
    ops = (
        specs.map_unary((m, n), "math.absf", name="abs", x="x", o="a"),
        specs.row_reduce(m, n, "sum", name="sum", x="a", o="s"),
        specs.elementwise((m, n), "arith.addf", name="add", a="a", b="s", o="y", b_axes=(0,)),
    )
    return specs.chain_graph("rows", ops)


def product_graph(m: int, n: int, k: int) -> Graph:
    """Return the largest of every row of a product."""
    ops = (
        specs.matmul(m, n, k, name="product", a="x", b="w", c="p"),
        specs.row_reduce(m, n, "max", name="max", x="p", o="y"),
    )
    return specs.chain_graph("product", ops)


def centred_graph(m: int, n: int, k: int) -> Graph:
    """Return a product less the largest of every row."""
    ops = (
        specs.matmul(m, n, k, name="product", a="x", b="w", c="p"),
        specs.row_reduce(m, n, "max", name="max", x="p", o="q"),
        specs.elementwise((m, n), "arith.subf", name="sub", a="p", b="q", o="y", b_axes=(0,)),
    )
    return specs.chain_graph("centred", ops)


CASES = (
    (rows_graph(6, 32), 4),
    (rows_graph(4, 6), 4),
    (product_graph(12, 20, 8), 6),
    (product_graph(3, 8, 64), 6),
    (centred_graph(4, 3, 9), 4),
    (specs.mlp_graph(3, (16, 4, 12)), 4),
)
"""Graphs and numbers of cores."""
GAINING = (0, 2, 3, 5)
"""Cases of `CASES` in which the fastest plans are no plans of the fronts and follow none."""
MOST_REGRET = 1.1
LINKS: tuple[dict[str, int], ...] = ({}, {"sync_cycles": 20, "latency_any_cycles": 10})


def every_plan(spec: OperatorSpec, n_cores: int) -> Iterator[OperatorPlan]:
    """Yield all plans without rotation: however axes are cut and cores are numbered, sums scattered or whole."""
    ft = tuple((1,) * len(spec.axes) for _ in spec.rotatable)
    for f_op in product(*(range(1, axis.extent + 1 if axis.is_splittable else 2) for axis in spec.axes)):
        lengths = [-(-axis.extent // f) for axis, f in zip(spec.axes, f_op, strict=True)]
        has_empty = any((f - 1) * n >= a.extent for a, f, n in zip(spec.axes, f_op, lengths, strict=True))
        if has_empty or prod(f_op) > n_cores:
            continue
        cut = [axis for axis, f in enumerate(f_op) if f > 1]
        rest = [axis for axis, f in enumerate(f_op) if f == 1]
        for order in permutations(cut):
            plan = place(spec, f_op, ft, align_pace(spec, f_op, ft), (*rest, *order))
            assert plan is not None
            yield plan
            if plan.reduce == "scatter":
                yield replace(plan, reduce="all")


def is_natural(spec: OperatorSpec, plan: OperatorPlan) -> bool:
    """Return whether cores are numbered as a search numbers them."""
    return plan.core_order == natural_core_order(spec, plan.f_op, plan.lengths)


def least_cycles(graph: Graph, chip: ChipSpec) -> tuple[int, int]:
    """Return the cycles of the fastest combination of plans and idle levels: of natural ones, and of all."""
    cost = IpuCostModel(chip)
    context = context_of(graph, chip, cost)
    fronts = tuple(
        tuple(
            CostedPlan(plan, operator_cycles(cost, spec, plan), 0, 0)
            for plan in every_plan(spec, chip.n_cores)
        )
        for spec in graph.operators
    )
    naturals = [
        [is_natural(spec, each.plan) for each in front]
        for spec, front in zip(graph.operators, fronts, strict=True)
    ]
    levels = [LEVELS if owned else (0,) for owned in context.owned]
    least: dict[bool, int] = {}
    for numbers in product(*(range(len(front)) for front in fronts)):
        kind = all(known[number] for known, number in zip(naturals, numbers, strict=True))
        for chosen in product(*levels):
            choices = tuple(Choice(*each) for each in zip(numbers, chosen, strict=True))
            cycles = sum_of_cycles(assemble(context, fronts, choices, None))
            least[kind] = min(cycles, least.get(kind, cycles))
    return least[True], min(least.values())


def chosen_cycles(graph: Graph, chip: ChipSpec) -> int:
    """Return the cycles of the joint choice before its buffers have places, which no choice knows."""
    made = planning(graph, chip, PlanOptions(gap=0.0))
    found = made.planner.best(made.room_bytes)
    assert found is not None
    assert found.bound_cycles == found.cycles
    return found.cycles


@pytest.mark.slow
@pytest.mark.parametrize("links", LINKS, ids=["slow", "fast"])
@pytest.mark.parametrize(("graph", "n_cores"), CASES, ids=lambda each: getattr(each, "name", each))
def test_no_combination_of_plans_without_rotation_is_faster(
    graph: Graph, n_cores: int, links: dict[str, int]
) -> None:
    chip = chip_of(n_cores, **links)
    chosen, (natural, least) = chosen_cycles(graph, chip), least_cycles(graph, chip)
    assert chosen <= natural
    # Other numberings of cores are states only where a plan follows another.
    assert chosen <= MOST_REGRET * least


@pytest.mark.parametrize("number", GAINING)
def test_without_candidates_and_plans_ahead_of_readers_some_combination_is_faster(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, n_cores = CASES[number]
    chip = chip_of(n_cores)
    best = chosen_cycles(graph, chip)
    few = replace(states.WIDE, of_candidates=0, leading=0, of_each_size=False)
    monkeypatch.setattr(states, "FULL", few)
    assert chosen_cycles(graph, chip) > best


def test_plans_on_fewer_cores_that_lead_and_follow_are_states_of_few_operators(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The product runs on 10 cores, where all others lie: none of the first 8 and 12 states of its neighbours."""
    model = onnx.parser.parse_model("""<ir_version: 9, opset_import: ["" : 17]>
        g (float[20, 30] x) => (float[50, 20] y) <float[30, 50] w> {
            s = Softmax (x)
            m = MatMul (s, w)
            t = Transpose <perm = [1, 0]> (m)
            r = ReduceSum (t)
            y = Mul (t, r)
        }""")
    weights = np.linspace(-1, 1, 1500, dtype=np.float32).reshape(30, 50)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    best = t10.compile(path, "test-16", program=False).report().total_cycles
    monkeypatch.setattr(states, "FULL", replace(states.FULL, following=8, leading=12))
    assert t10.compile(path, "test-16", program=False).report().total_cycles > best
