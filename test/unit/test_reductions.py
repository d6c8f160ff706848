"""Partial sums of two, three and four cores, in chunks or whole, through small buffers: both simulators do as numpy."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest
from support import specs
from support.simulation import check_simulators, chip_of, plan_of, scheduled

from t10.chip import load_chip
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.geometry import partition_shape, window_lengths
from t10.core.graph import GraphOutput, View
from t10.core.loads import phase_loads
from t10.core.plan import PhaseTerm, Reduce, final_positions
from t10.core.reduction import Groups, all_rounds, groups
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.schedule import Arrival, Buffer
from t10.cost import IpuCostModel
from t10.cost.exchange import exchange_rates, phase_cycles
from t10.cost.reductions import different_groups, exchange_cycles
from t10.errors import SimTrap
from t10.plan import assemble
from t10.sim.memory import CoreMemory
from t10.sim.partition import Partition
from t10.sim.product import sum_of_products
from t10.sim.reduce import all_reduce, reduction_groups

CASES: dict[str, tuple[OperatorSpec, AxisSizes]] = {
    "two cores": (specs.matmul(6, 5, 8, "f32"), (1, 1, 2)),
    "chunks of eight and two": (specs.matmul(4, 5, 8, "f32"), (1, 1, 2)),
    "three cores": (specs.matmul(7, 5, 9, "f32"), (2, 1, 3)),
    "four cores, a bias": (specs.linear_relu(5, 7, 8), (1, 1, 4)),
    "three cores, a bias, three columns": (specs.linear_relu(5, 3, 9, "f32"), (2, 1, 3)),
    "one core with padding only": (specs.matmul(3, 5, 5, "f32"), (1, 1, 4)),
    "maxima": (specs.row_reduce(5, 9, "max", "f32"), (1, 4)),
}


def test_axes_that_nothing_depends_on_count_once_per_point() -> None:
    rows = specs.row_reduce(4, 6, "sum", "f32")
    spec = replace(rows, inputs=(specs.operand("x", "activation", "f32", (4,), specs.dims(0)),))
    check_simulators(
        scheduled(specs.one_operator_graph(spec), (plan_of(spec, (2, 1)),), chip_of(2)), chip_of(2)
    )


def test_every_member_of_an_all_reduce_ends_with_the_whole_sum() -> None:
    spec = specs.matmul(2, 3, 3, "f32")
    plan = replace(plan_of(spec, (1, 1, 3)), reduce="all")
    memory = CoreMemory(3, 64)
    memory.begin(Buffer("shift", 0, 32, 0, 0))
    memory.begin(Buffer("c", 32, 32, 0, 0))
    slots = memory.slots("c", "f32", 3, 6)
    slots[:] = np.array([[1], [10], [100]])
    groups = Groups(np.arange(3), np.array([[0, 1, 2]] * 3))
    all_reduce(memory, spec, plan, Partition(spec.output, 2, plan.lengths, slots), groups)
    assert (slots == 111).all()


def test_partial_sums_on_too_few_cores_are_a_trap() -> None:
    # Four windows of m, two of them with the same rows: each on one core, where two have partial sums of it.
    spec = specs.matmul(8, 4, 4)
    plan = plan_of(spec, (1, 1, 4), ((1, 1, 1), (1, 1, 1), (2, 1, 1)))
    assert reduction_groups(spec, plan, (0, 0, 0)).members.shape == (4, 2)
    apart = replace(plan, phases=((PhaseTerm((2,), 1, 4, 2),), (), ()))
    with pytest.raises(SimTrap, match="partial results lie on 1 cores, expected 2"):
        reduction_groups(spec, apart, (0, 0, 0))


def test_an_output_that_joins_results_is_found_in_all_of_them() -> None:
    parts = (
        specs.elementwise((5,), dtype="f32", name="a", a="x", b="y", o="p"),
        specs.elementwise((3,), dtype="f32", name="b", a="v", b="w", o="q"),
    )
    view = View("c", "concat", ("p", "q"), (8,), "f32", axis=0)
    graph = replace(specs.chain_graph("g", parts, (view,)), outputs=(GraphOutput("out", "c"),))
    plans = tuple(plan_of(spec, (2,)) for spec in parts)
    check_simulators(scheduled(graph, plans, chip_of(2)), chip_of(2))


def test_integer_products_are_exact_to_the_last_bit() -> None:
    largest = np.full((1, 1, 1, 1), 2**31 - 1, np.int32)
    assert sum_of_products(largest, largest, (2,)).tolist() == [[[[1]]]]


def test_padding_adds_nothing_to_products_of_sums() -> None:
    # c = sum over k of (a + 1) (b + 1): where a and b are padded with zeros, the product is one.
    spec = specs.matmul(3, 4, 5, "f32")
    ops = (
        ScalarOp("const", (), "f32", "1.0"),
        ScalarOp("arith.addf", (0, 2), "f32"),
        ScalarOp("arith.addf", (1, 2), "f32"),
        ScalarOp("arith.mulf", (3, 4), "f32"),
    )
    spec = replace(spec, body=ScalarFunction(2, ops, 5))
    for parts in (2, 3, 4):
        chip = chip_of(parts)
        check_simulators(
            scheduled(specs.one_operator_graph(spec), (plan_of(spec, (1, 1, parts)),), chip), chip
        )


def test_squares_of_f16_are_rounded_before_they_are_summed() -> None:
    # Above 2048 every second integer is an f16; products of two operands are not rounded, these are.
    ops = (ScalarOp("arith.mulf", (0, 0), "f16"), ScalarOp("arith.extf", (1,), "f32"))
    rows = specs.row_reduce(3, 7, "sum")
    output = replace(rows.output, dtype="f32")
    spec = replace(rows, body=ScalarFunction(1, ops, 2), output=output, epilogue=None)
    plans = (plan_of(spec, (3, 1)),)
    check_simulators(scheduled(specs.one_operator_graph(spec), plans, chip_of(3)), chip_of(3), low=50)


def never(*_: object) -> bool:
    return False


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_padding_of_what_is_read_in_place_does_not_count(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing writes what follows the columns of a; it holds NaNs. A copy with zeros there would take less.
    monkeypatch.setattr(assemble, "is_better_copied", never)
    first = specs.matmul(3, 5, 2, dtype, name="first", a="x", b="w", c="a")
    second = specs.matmul(3, 4, 5, dtype)
    for parts in (2, 3, 4):
        chip = chip_of(parts)
        made = scheduled(
            specs.chain_graph("g", (first, second)),
            (plan_of(first, (1, parts, 1)), plan_of(second, (1, 1, parts))),
            chip,
        )
        assert made.operators[1].arrivals[0] == Arrival(0, "in_place", "value:a")
        check_simulators(made, chip)


@pytest.mark.parametrize("mode", ["scatter", "all"])
@pytest.mark.parametrize("shift_buffer_bytes", [8192, 32])
@pytest.mark.parametrize("name", CASES)
def test_partial_sums_are_combined_once_each(name: str, shift_buffer_bytes: int, mode: Reduce) -> None:
    spec, f_op = CASES[name]
    chip = chip_of(prod(f_op), shift_buffer_bytes=shift_buffer_bytes)
    plan = replace(plan_of(spec, f_op), reduce=mode)
    check_simulators(scheduled(specs.one_operator_graph(spec), (plan,), chip), chip, low=-9)


@pytest.mark.parametrize("f_op", [(8, 1, 3), (4, 1, 5), (5, 1, 6), (3, 2, 4), (2, 3, 7), (1, 1, 16)])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1)])
def test_different_groups_take_what_all_groups_do(f_op: AxisSizes, order: AxisSizes) -> None:
    """Pairs of cores are whole in some groups, in no group, or in some groups and not in others."""
    chip, spec = load_chip("test-64"), specs.matmul(160, 96, 210, "f32")
    plan = replace(plan_of(spec, f_op), core_order=order)
    n_slots = prod(partition_shape(spec.output, window_lengths(plan, 2)))
    every = np.unique(groups(spec, plan, final_positions(plan)).members, axis=0)
    for one in all_rounds(Groups.one(f_op[2]), n_slots, chip.shift_buffer_bytes // 4, 4):
        rows = np.repeat(one.moves[None], len(every), axis=0)
        for column in (1, 3):
            rows[:, :, column] = every[:, one.moves[:, column]]
        moves = rows.reshape(-1, 6)[np.lexsort((rows.reshape(-1, 6)[:, 4], rows.reshape(-1, 6)[:, 3]))]
        loads = phase_loads(moves, np.zeros((0, 4), np.int32), 64, 4, exchange_rates(chip))
        assert exchange_cycles(chip, one, 4, cores=different_groups(spec, plan)) == phase_cycles(chip, loads)


@pytest.mark.parametrize("n_members", [2, 3, 4, 5, 6, 8, 12, 16])
def test_bounds_of_sums_on_all_cores_know_pairs(n_members: int) -> None:
    """Members are pairs where there is an even number of them; their bound is as close as that of single words."""
    cost = IpuCostModel(load_chip("test-64"))
    single = IpuCostModel(cost.chip.model_copy(update={"paired_bytes_per_cycle": 0}))
    spec = specs.matmul(40, 48, 210, "f32")
    plan = replace(plan_of(spec, (1, 1, n_members)), reduce="all")
    numbers = np.array([n_members]), np.array([40 * 48])
    (paired, least), (alone, least_alone) = (
        (each.combine_cycles(spec, plan), int(each.least.all_reduce_cycles_many(spec, *numbers)[0]))
        for each in (cost, single)
    )
    assert paired is not None
    assert alone is not None
    assert least <= paired <= alone
    assert (paired < alone) == (n_members > 2 and n_members % 2 == 0)
    if n_members % 2 == 0:
        assert paired - least == alone - least_alone
