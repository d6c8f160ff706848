"""Steps that cross the ends of windows take what their parts do: planned, executed and searched."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random

import numpy as np
import pytest
from support import specs
from support.random_plans import aligned_plan, random_ft, random_partition, random_placement
from support.random_specs import random_operator
from support.simulation import chip_of, plan_of, random_values, scheduled

from t10.codelets.image import assembled
from t10.core.arrays import Floats, Ints
from t10.core.contiguous_parts import box_begins, is_cut, sub_task_parts
from t10.core.costs import nest_cycles
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import OperatorPlan
from t10.core.sub_task_nest import whole_axes
from t10.cost import IpuCostModel, operator_cycles
from t10.cost._batch_function import read
from t10.cost.program import CostCallable, cost_program
from t10.emit.lower import lower
from t10.errors import UnsupportedOpError
from t10.plan.schedule import as_placed
from t10.plan.search.evaluate import evaluate, placed_plan
from t10.plan.search.exact import ExactPrices
from t10.plan.search.part_bound import MOST_CORES, least_part_cycles
from t10.sim.device import run_device
from t10.sim.plan_level import simulate

CHIP = chip_of(16)
FAR = float(1 << 40)
PLANS = 12
Rows = tuple[AxisSizes, ...]
THREE_AGAINST_TWO: tuple[tuple[AxisSizes, str, AxisSizes, Rows], ...] = (
    ((32, 48, 96), "f16", (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1))),
    ((32, 48, 96), "f32", (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1))),
    ((50, 50, 50), "f16", (3, 5, 1), ((1, 1, 5), (1, 1, 3), (1, 1, 1))),
    ((33, 50, 47), "f16", (2, 3, 2), ((1, 1, 3), (1, 1, 2), (1, 1, 1))),
)
"""Products whose inputs rotate at different paces, some over padding: extents m, n, k, F_op, ft."""


def executed(spec: OperatorSpec, plan: OperatorPlan) -> tuple[int, int, int]:
    """Return the cycles of an operator as planned, on the plan simulator and on the instruction-set simulator."""
    graph, cost = specs.one_operator_graph(spec), IpuCostModel(CHIP)
    placed = as_placed(scheduled(graph, (plan,), CHIP), CHIP, cost)
    program = lower(placed, CHIP, cost)
    image = assembled(program.codelets, CHIP.tile_memory)
    weights, inputs = random_values(graph.weights), random_values(graph.inputs)
    ran = run_device(program, CHIP, image, weights, inputs)
    simulated = simulate(placed, CHIP, cost, weights, inputs)
    for name, due in simulated.outputs.items():
        np.testing.assert_array_equal(ran.outputs[name], due)
    compute = sum(phase.cycles for phase in simulated.timeline if phase.kind == "compute")
    due = placed.operators[0].active.cycles
    # What is filled only since a core's first terms are padding has no price yet.
    found = [phase for phase in ran.timeline if phase.modelled_cycles or phase.kind != "compute"]
    assert sum(phase.modelled_cycles for phase in found) == sum(phase.cycles for phase in found)
    assert due.shift == sum(phase.cycles for phase in found if phase.kind == "shift")
    return due.compute, compute, sum(phase.cycles for phase in found if phase.kind == "compute")


@pytest.mark.parametrize(("extents", "dtype", "f_op", "ft"), THREE_AGAINST_TWO)
def test_steps_take_what_their_parts_are_priced_at(
    extents: AxisSizes, dtype: str, f_op: AxisSizes, ft: Rows
) -> None:
    m, n, k = extents
    spec = specs.matmul(m, n, k, dtype)
    plan = plan_of(spec, f_op, ft)
    assert is_cut(spec, plan)
    planned, simulated, ran = executed(spec, plan)
    assert planned == simulated == ran


def cut_plans(seed: int, n: int) -> Iterator[tuple[OperatorSpec, OperatorPlan]]:
    """Yield random plans whose steps cross the ends of windows."""
    rng = Random(seed)
    while n:
        spec = random_operator(rng, largest=4000)
        # How long a look-up takes depends on the indices.
        if spec.selectors:
            continue
        f_op = random_partition(rng, spec, CHIP.n_cores)
        plan = aligned_plan(rng, spec, f_op, random_ft(rng, spec, f_op))
        # One plan in some 200 is cut, whatever its phases: the others need not be placed.
        placed = random_placement(rng, spec, plan, CHIP.n_cores) if is_cut(spec, plan) else None
        if placed is not None:
            n -= 1
            yield spec, placed


def test_random_plans_take_what_they_are_priced_at() -> None:
    n_known = 0
    for spec, plan in cut_plans(3, PLANS):
        try:
            planned, simulated, ran = executed(spec, plan)
        except UnsupportedOpError:
            continue
        n_known += 1
        assert planned == simulated == ran, f"{plan} of {spec}"
    assert n_known > PLANS // 2


@pytest.mark.slow
def test_a_search_is_told_what_parts_take_and_no_bound_is_above_it() -> None:
    cost, n_placed = IpuCostModel(CHIP), 0
    for spec, plan in cut_plans(4, 2 * PLANS):
        placed = placed_plan(spec, plan.f_op, plan.ft)
        if placed is None:
            continue
        n_placed += 1
        rows = np.array([plan.f_op], np.int64), np.array([plan.ft], np.int64)
        arrays, least = evaluate(spec, cost, *rows), evaluate(spec, cost.least, *rows)
        due = operator_cycles(cost, spec, placed)
        assert (int(arrays.compute[0]), int(arrays.shift[0])) == (due.compute, due.shift)
        bound = read(cost_program(cost.least, spec, is_bound=True).sub_task)
        assert least_part_cycles(spec, placed, bound) <= due.compute, f"{plan} of {spec}"
        found = ExactPrices(spec, cost).price(plan.f_op, plan.ft, 0.0, 0.0, 0.0, FAR)
        assert found == int((arrays.compute + arrays.reduce + arrays.shift - least.shift)[0])
        assert int(least.compute[0]) <= due.compute, f"{plan} of {spec}"
    assert n_placed > PLANS // 2


@pytest.mark.parametrize(("extents", "dtype", "f_op", "ft"), THREE_AGAINST_TWO)
def test_parts_are_bounded_closer_than_boxes_and_dropped_by_that(
    extents: AxisSizes, dtype: str, f_op: AxisSizes, ft: Rows
) -> None:
    m, n, k = extents
    spec, cost = specs.matmul(m, n, k, dtype), IpuCostModel(CHIP)
    bound = read(cost_program(cost.least, spec, is_bound=True).sub_task)
    placed = placed_plan(spec, f_op, ft)
    assert placed is not None
    closer = least_part_cycles(spec, placed, bound)
    exact = nest_cycles(cost, spec, placed)
    assert cost.least.sub_task_cycles(spec, placed.box) * placed.n_sub_tasks < closer <= exact
    prices = ExactPrices(spec, cost, bound)
    # Nothing is known of parts yet: they are counted, and remembered.
    assert prices.price(f_op, ft, 0.0, 0.0, 0.0, closer - 1) >= exact
    prices.known.clear()
    assert closer <= prices.price(f_op, ft, 0.0, 0.0, 0.0, closer - 1) <= exact
    assert not any(part[0] == "nest" for part in prices.known)
    assert (
        ExactPrices(spec, cost, bound, counts_parts=[False]).price(f_op, ft, 0.0, 0.0, 0.0, closer - 1)
        >= exact
    )


def test_bounds_see_the_parts_that_cores_have() -> None:
    """A bound is the sum over all parts of the slowest core's, of one core of each that begin at the same place."""
    for spec, plan in cut_plans(5, 2 * PLANS):
        roots = 1 / (1 + np.arange(len(spec.axes)))

        def cycles(boxes: Ints, roots: Floats = roots) -> Floats:
            return (boxes**roots).prod(axis=1)

        begins = box_begins(plan, (0,) * len(plan.steps))
        _, cores = np.unique(begins, axis=0, return_index=True)
        assert len(cores) <= MOST_CORES
        whole, due = whole_axes(spec, plan, has_zeros=True), 0.0
        for positions in product(*map(range, plan.steps)):
            for part in sub_task_parts(spec, plan, positions, whole, cores):
                due += cycles(part.extents).max()
        found = least_part_cycles(spec, plan, read(CostCallable(len(roots), cycles)))
        assert found == pytest.approx(due), f"{plan} of {spec}"
