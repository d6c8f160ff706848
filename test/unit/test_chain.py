"""Following a producer's layout: the plans that do so really find their operand in place, and it is never slower."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from support import specs
from support.simulation import chip_of, plan_of

from t10.chip import load_chip
from t10.core import movement
from t10.core.expression import Axis, OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.cost import IpuCostModel
from t10.plan import ForcedPartition, PlanOptions, plan_module
from t10.plan.assemble import assemble, output_layout
from t10.plan.context import context_of
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.greedy.chain import followed
from t10.plan.memory.levels import Choice, level_table
from t10.plan.memory.room import DataRoom
from t10.plan.schedule import as_placed, sum_of_cycles
from t10.plan.search.placement import natural_core_order
from t10.plan.search.producer_layouts import following_plan

MATMUL = specs.matmul(16, 12, 24, name="matmul", c="y")
ADD = specs.elementwise((16, 12), name="add", a="y", b="z", o="out")
ROWS = specs.row_reduce(16, 12, "sum", name="rows", x="y")


def lies_in_place(spec: OperatorSpec, plan: OperatorPlan, number: int, made_by: OperatorPlan) -> bool:
    """Compare, slot by slot, what an operand wants with what its producer leaves."""
    home = movement.layout_map(MATMUL, output_layout(MATMUL, made_by), prod(MATMUL.output.shape))
    wanted = movement.operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
    return wanted.shape == home.elements.shape and bool((wanted == home.elements).all())


@pytest.mark.parametrize("spec", [ADD, ROWS], ids=lambda spec: spec.name)
@pytest.mark.parametrize("f_op", [(4, 3, 1), (4, 3, 2), (2, 2, 8), (1, 4, 4), (16, 2, 3), (16, 1, 2)])
def test_a_following_plan_finds_its_operand_in_place(spec: OperatorSpec, f_op: tuple[int, ...]) -> None:
    made_by = plan_of(MATMUL, f_op)
    plan = following_plan(spec, 0, MATMUL, made_by)
    assert plan is not None
    assert plan.n_cores == made_by.n_cores
    assert lies_in_place(spec, plan, 0, made_by)


@pytest.mark.parametrize(
    ("f_op", "ft"),
    [
        ((4, 1, 3), None),  # 4 rows in 3 chunks are no slices
        ((4, 2, 2), ((1, 1, 1), (1, 1, 1), (2, 1, 1))),  # a result that rotated lies in windows
    ],
)
def test_chunks_that_are_no_slices_cannot_be_followed(
    f_op: tuple[int, ...], ft: tuple[tuple[int, ...], ...] | None
) -> None:
    assert following_plan(ADD, 0, MATMUL, plan_of(MATMUL, f_op, ft)) is None


def test_axes_that_may_not_be_split_are_not() -> None:
    whole = replace(ROWS, axes=(ROWS.axes[0], Axis("c", 12, "reduction", is_splittable=False)))
    assert following_plan(whole, 0, MATMUL, plan_of(MATMUL, (4, 3, 1))) is None
    assert following_plan(whole, 0, MATMUL, plan_of(MATMUL, (4, 1, 1))) is not None


def test_cores_that_share_a_sum_stand_behind_the_dim_they_slice() -> None:
    assert natural_core_order(MATMUL, (4, 3, 2), (4, 4, 12)) == (0, 2, 1)
    # Rows of one element cannot be sliced: the columns are.
    assert natural_core_order(MATMUL, (16, 3, 2), (1, 4, 12)) == (0, 1, 2)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("chip_name", ["test-16", "test-64", "ipu-mk2"])
@pytest.mark.parametrize(
    "graph",
    [specs.softmax_graph(64, 48), specs.layer_norm_graph(32, 96), specs.mlp_graph(32, (64, 64))],
    ids=lambda g: g.name,
)
def test_following_is_never_slower(chip_name: str, graph: Graph) -> None:
    chip = load_chip(chip_name)
    cost = IpuCostModel(chip)
    fronts = operator_fronts(graph, chip, cost, PlanOptions())
    planned = plan_module(graph, chip)
    levels = [
        1 if level_table(spec, front, owned, chip.n_cores, cost).has_levels else 0
        for spec, front, owned in zip(
            graph.operators, fronts, context_of(graph, chip, cost).owned, strict=True
        )
    ]
    choices = tuple(Choice(len(front) - 1, level) for front, level in zip(fronts, levels, strict=True))
    alone = DataRoom(chip)(assemble(context_of(graph, chip, cost), fronts, choices, None))
    # Both take what they do where their buffers lie.
    assert sum_of_cycles(planned) <= sum_of_cycles(as_placed(alone, chip, cost))


THREE = tuple(
    specs.map_unary((16, 24), "math.absf", name=name, x=x, o=o)
    for name, x, o in [("first", "x", "y"), ("mid", "y", "z"), ("last", "z", "out")]
)


def after_following(
    operators: tuple[OperatorSpec, ...],
    plans: tuple[OperatorPlan, ...],
    active_bytes: tuple[int, ...],
    free_bytes: list[int],
) -> list[OperatorPlan]:
    """Return the plans of three operators after some have followed, of fronts that held one plan each."""
    chip = chip_of(16)
    context = context_of(specs.chain_graph("three", operators), chip, IpuCostModel(chip))
    fronts = tuple((CostedPlan(plan, Cycles(), 0, n),) for plan, n in zip(plans, active_bytes, strict=True))
    after = followed(context, fronts, (Choice(0, 0),) * 3, np.array(free_bytes), PlanOptions())
    return [front[choice.plan].plan for front, choice in zip(*after, strict=True)]


@pytest.mark.parametrize(
    ("free_bytes", "expected"),
    [
        # On eight cores instead of sixteen, operands and results take 96 bytes instead of 48.
        ([0, 95, 48], [(4, 2), (4, 4), (4, 4)]),
        ([0, 96, 47], [(4, 2), (4, 4), (4, 4)]),
        ([0, 96, 48], [(4, 2), (4, 2), (4, 4)]),
        ([0, 96, 143], [(4, 2), (4, 2), (4, 4)]),
        ([0, 96, 144], [(4, 2), (4, 2), (4, 2)]),
    ],
)
def test_an_operator_follows_where_what_that_takes_is_free(
    free_bytes: list[int], expected: list[tuple[int, ...]]
) -> None:
    plans = (plan_of(THREE[0], (4, 2)), plan_of(THREE[1], (4, 4)), plan_of(THREE[2], (4, 4)))
    found = after_following(THREE, plans, (192, 96, 96), free_bytes)
    assert [plan.f_op for plan in found] == expected


def test_an_operator_does_not_follow_where_that_gains_nothing() -> None:
    # Cores 1 and 2 hold each other's parts of the two operands: one of them must be fetched, whichever plan it is.
    operators = (
        specs.map_unary((16, 24), "math.absf", name="one", o="a"),
        specs.map_unary((16, 24), "math.absf", name="other", o="b"),
        specs.elementwise((16, 24)),
    )
    orders = [(0, 1), (1, 0)]
    for order in orders:
        plans = tuple(
            replace(plan_of(spec, (2, 2)), core_order=its)
            for spec, its in zip(operators, (*orders, order), strict=True)
        )
        assert after_following(operators, plans, (192,) * 3, [1024] * 3) == list(plans)


def test_a_forced_operator_does_not_follow() -> None:
    graph = specs.softmax_graph(16, 12)
    forced = ForcedPartition("exp", (2, 2))
    plan = plan_module(graph, chip_of(16), PlanOptions(forced=(forced,)))
    assert {s.name: s.active.plan.f_op for s in plan.operators}["exp"] == (2, 2)
