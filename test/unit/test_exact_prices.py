"""Prices that a search asks for part by part are those that candidates are evaluated by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from random import Random
from zlib import crc32

import numpy as np
import pytest
from support import specs
from support.random_specs import random_operator, with_position

from t10.chip import load_chip
from t10.core.arrays import Bools, Ints, different_rows
from t10.core.epilogue_nest import wraps
from t10.core.expression import AxisSizes, OperatorSpec
from t10.cost import IpuCostModel, operator_cycles
from t10.cost._batch_function import read
from t10.cost.program import cost_program
from t10.plan.options import PlanOptions
from t10.plan.search.evaluate import evaluate, placed_plan
from t10.plan.search.exact import ExactPrices
from t10.plan.search.operator import search_operator
from t10.plan.search.temporal import TemporalSpace

CHIP = load_chip("test-16")
Plan = tuple[AxisSizes, tuple[AxisSizes, ...]]
OPERATORS, PLANS = 60, 12
FAR = 1 << 40


@dataclass(frozen=True, slots=True)
class AnyCosts(IpuCostModel):
    """A model whose answers are any numbers, another one for every question: what is asked otherwise differs."""

    def step_cycles_many(self, spec: OperatorSpec, boxes: Ints, windows: Ints, adds: Bools) -> Ints:
        return _any("step", spec, boxes, *windows.transpose(1, 0, 2), adds[:, None].astype(np.int64))

    def fill_cycles_many(self, spec: OperatorSpec, n_slots: Ints) -> Ints:
        return _any("fill", spec, n_slots[:, None])

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        return _any("end", spec, windows, n_members[:, None])

    def reduce_cycles_many(self, spec: OperatorSpec, n_members: Ints, n_slots: Ints) -> Ints:
        columns = (n_members[:, None], n_slots[:, None])
        return np.where(n_members > 1, _any("reduce", spec, *columns), 0)


def _any(question: str, spec: OperatorSpec, *columns: Ints) -> Ints:
    """Return a number for every row of some columns, below 2^20."""
    rows = np.concatenate(columns, axis=1).tolist()
    found = [crc32(f"{question} {spec.name} {row}".encode()) % (1 << 20) for row in rows]
    return np.array(found, np.int64).reshape(len(rows))


def plans(rng: Random, spec: OperatorSpec, n: int) -> Iterator[Plan]:
    """Yield random F_op on the chip, each with ft that it allows."""
    space = TemporalSpace.of(spec)
    for _ in range(n):
        f_op = [1] * len(spec.axes)
        for axis in rng.sample(range(len(spec.axes)), len(spec.axes)):
            most = min(CHIP.n_cores // prod(f_op), spec.extents[axis])
            if spec.axes[axis].is_splittable:
                f_op[axis] = rng.choice([f for f in (1, 2, 3, 4, 8, 16) if f <= most])
        every = space.partitions(tuple(f_op), 0.0)
        yield tuple(f_op), tuple(tuple(row) for row in every[rng.randrange(len(every))].tolist())


def priced(spec: OperatorSpec, cost: IpuCostModel, plan: Plan) -> tuple[float, int]:
    """Return what a search is told of a plan, and what evaluation says of the same: of shifts, what bounds lack."""
    f_op, ft = plan
    found = ExactPrices(spec, cost).price(f_op, ft, 0.0, 0.0, 0.0, float(FAR))
    arrays = evaluate(spec, cost, np.array([f_op], np.int64), np.array([ft], np.int64))
    least = evaluate(spec, cost.least, np.array([f_op], np.int64), np.array([ft], np.int64))
    return found, int((arrays.compute + arrays.reduce + arrays.shift - least.shift)[0])


@pytest.mark.slow
def test_a_search_is_told_what_evaluation_says_whatever_steps_take() -> None:
    rng, cost = Random(8), AnyCosts(CHIP)
    made = [random_operator(rng) for _ in range(OPERATORS)]
    made += [specs.linear_relu(24, 40, 36), specs.matmul(16, 48, 32), specs.conv2d(1, 8, 12, 12, 16, 3, 3)]
    n_rotating = n_shared = 0
    for spec in made:
        for plan in plans(rng, spec, PLANS):
            found, wanted = priced(spec, cost, plan)
            assert found == wanted, f"{plan} of {spec}"
            n_rotating += prod(max(factors) for factors in zip(*plan[1], strict=True)) > 1
            n_shared += prod(plan[0][axis] for axis in spec.reduction_axes) > prod(plan[1][-1])
    assert n_rotating > OPERATORS
    assert n_shared > OPERATORS


@pytest.mark.parametrize(
    "spec", [specs.linear_relu(8, 24, 16), specs.row_reduce(12, 32, "sum")], ids=lambda spec: spec.name
)
def test_a_search_is_told_what_evaluation_says_of_counted_steps(spec: OperatorSpec) -> None:
    rng, cost = Random(9), IpuCostModel(CHIP)
    for plan in plans(rng, spec, PLANS):
        found, wanted = priced(spec, cost, plan)
        assert found == wanted


def test_a_search_is_told_what_plans_take_whose_epilogues_depend_on_positions() -> None:
    """Windows wrap or do not; no bound is above the price of what is cut there."""
    rng, cost, n_wrapping = Random(11), IpuCostModel(CHIP), 0
    for _ in range(OPERATORS // 5):
        spec = with_position(rng, random_operator(rng))
        for plan in plans(rng, spec, PLANS):
            placed = placed_plan(spec, *plan)
            if placed is None or not wraps(spec, placed.ft[-1]):
                continue
            n_wrapping += 1
            found, wanted = priced(spec, cost, plan)
            assert found == wanted, f"{plan} of {spec}"
            rows = np.array([plan[0]], np.int64), np.array([plan[1]], np.int64)
            compute, least = (int(evaluate(spec, each, *rows).compute[0]) for each in (cost, cost.least))
            assert least <= compute == operator_cycles(cost, spec, placed).compute, f"{plan} of {spec}"
    assert n_wrapping > 2


def test_a_price_above_the_most_is_a_bound_of_it() -> None:
    rng, cost = Random(10), AnyCosts(CHIP)
    spec = specs.linear_relu(24, 40, 36)
    n_cut = 0
    for plan in plans(rng, spec, 4 * PLANS):
        exact = ExactPrices(spec, cost).price(*plan, 0.0, 0.0, 0.0, float(FAR))
        most = rng.random() * 2 * exact
        found = ExactPrices(spec, cost).price(*plan, 0.0, 0.0, 0.0, most)
        assert found == exact or most < found <= exact
        n_cut += found < exact
    assert n_cut > 0


def test_a_search_prices_few_plans_exactly_that_end_up_behind_the_front() -> None:
    found = search_operator(specs.linear_relu(96, 512, 384), CHIP, IpuCostModel(CHIP), PlanOptions())
    assert found.statistics.n_exact < 2 * len(found.front)


def test_different_rows_are_the_first_of_each() -> None:
    rng = np.random.default_rng(3)
    for shape in ((0, 3), (1, 1), (200, 3)):
        rows = rng.integers(0, 4, shape)
        _, first = np.unique(rows, axis=0, return_index=True)
        assert different_rows(rows).tolist() == np.sort(first).tolist()


@pytest.mark.slow
def test_plans_take_no_less_than_their_bounds() -> None:
    """Steps where their windows lie, in parts or not, and shifts; what knows the bounds says the same price."""
    rng, cost = Random(12), IpuCostModel(CHIP)
    made = [specs.conv2d(1, 8, 12, 12, 16, 3, 3), specs.matmul(16, 48, 32), specs.linear_relu(24, 40, 36)]
    n_waiting = n_in_parts = 0
    for spec in [*made, *(random_operator(rng) for _ in range(OPERATORS // 5))]:
        prices = ExactPrices(spec, cost, read(cost_program(cost.least, spec, is_bound=True).sub_task))
        for f_op, ft in plans(rng, spec, PLANS):
            if placed_plan(spec, f_op, ft) is None:
                continue
            # What is known of parts is known once some were counted.
            found = ExactPrices(spec, cost).price(f_op, ft, 0.0, 0.0, 0.0, float(FAR))
            prices.price(f_op, ft, 0.0, 0.0, 0.0, float(FAR))
            rows = np.array([f_op], np.int64), np.array([ft], np.int64)
            steps, waits = prices.bounds(*rows)[0].tolist()
            assert steps + waits <= found, f"{f_op}, {ft} of {spec}"
            shift, least = (int(evaluate(spec, each, *rows).shift[0]) for each in (cost, cost.least))
            assert waits <= shift - least, f"{f_op}, {ft} of {spec}"
            prices.known.clear()
            assert prices.price(f_op, ft, 0.0, 0.0, waits, float(FAR)) == found
            # What is known of its steps by then is a bound, whichever of them are counted first.
            prices.known.clear()
            most = rng.random() * found
            cut = prices.price(f_op, ft, 0.0, 0.0, waits, most)
            assert cut == found or most < cut <= found, f"{f_op}, {ft} of {spec}"
            n_waiting += waits > 0
            n_in_parts += bool(prices.least) and steps > 0
    assert n_waiting > 2
    assert n_in_parts > 2
