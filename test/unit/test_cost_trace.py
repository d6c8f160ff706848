"""Traced cost functions: formula, native interpreter and the function itself agree to the bit on random shapes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from support import specs
from support.random_specs import random_operator

from t10.chip import load_chip
from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec
from t10.cost import CostModel, IpuCostModel, _batch_function, paper_cost_model
from t10.cost.formula import BLOCK_ROWS, Formula, Opcode
from t10.cost.model import ChunkCosts
from t10.cost.program import CostCallable, CostFunction, cost_function, cost_program
from t10.cost.trace import TraceError, trace_table
from t10.errors import T10Error

CHIP = load_chip("ipu-mk2")
OTHER_CORE = load_chip("ipu-mk2:n_workers=4")
MODELS = (
    IpuCostModel(CHIP).least,
    IpuCostModel(OTHER_CORE),
    paper_cost_model(CHIP),
    paper_cost_model(CHIP, hides_arithmetic=False),
)
KINDS = (
    specs.matmul(64, 48, 80),
    specs.linear_relu(64, 48, 80),
    specs.matmul(8, 8, 8, "i32"),
    specs.bmm(4, 16, 24, 32, "f32"),
    specs.conv2d(1, 32, 14, 14, 16, 3, 3, pad=1),
    specs.max_pool2d(1, 8, 7, 7, 3, pad=1),
    specs.row_reduce(32, 64, "sum"),
    specs.row_reduce(32, 64, "max", "f32"),
    specs.elementwise((32, 64)),
    specs.map_unary((32, 64)),
    specs.gather(16, 64, 100),
)
ROWS = 700
"""More than two blocks of the interpreter, and not a multiple of one."""


def native(function: CostFunction, table: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what native code computes for the rows of an integer table."""
    return _batch_function.evaluate(function, np.ascontiguousarray(table.T, np.float64))


def table_of(rng: np.random.Generator, *highest: int, lowest: int = 1) -> np.ndarray[Any, Any]:
    """Return random integers, one column per bound."""
    return np.stack([rng.integers(lowest, high + 1, ROWS) for high in highest], axis=1)


def epilogue_cycles(cost: CostModel, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints) -> Ints:
    """Return what a model says of epilogues."""
    if isinstance(cost, ChunkCosts):
        return cost.chunk_cycles_many(spec, n_slots, runs, n_members)
    return cost.epilogue_cycles_many(spec, n_slots, runs)


def check_model(cost: CostModel, spec: OperatorSpec) -> None:
    """Assert that every function of an operator is traced and gives the numbers of the model itself."""
    rng = np.random.default_rng(1)
    program = cost_program(cost, spec)
    # Axes of one point have one point in every box.
    boxes = table_of(rng, *(3 * extent if extent > 1 else 1 for extent in spec.extents))
    slots = np.concatenate([table_of(rng, 100_000, lowest=0), table_of(rng, 5000, 1472)], axis=1)
    shifts = table_of(rng, 1 << 20, lowest=0)
    reductions = np.concatenate([table_of(rng, 1472), table_of(rng, 30_000, lowest=0)], axis=1)
    wanted = (
        (program.sub_task, boxes, cost.sub_task_cycles_many(spec, boxes)),
        (program.epilogue, slots, epilogue_cycles(cost, spec, *slots.T)),
        (program.shift, shifts, cost.shift_cycles_many(shifts[:, 0])),
        (program.reduce, reductions, cost.reduce_cycles_many(spec, *reductions.T)),
    )
    for function, table, cycles in wanted:
        assert isinstance(function, Formula)
        np.testing.assert_array_equal(function.evaluate(table), cycles)
        np.testing.assert_array_equal(native(function, table), cycles)


@pytest.mark.parametrize("cost", MODELS, ids=lambda cost: cost.name)
@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: f"{spec.kind}-{spec.inputs[0].dtype}")
def test_bundled_models_are_traced_and_native_code_gives_their_numbers(
    spec: OperatorSpec, cost: CostModel
) -> None:
    check_model(cost, spec)


@pytest.mark.slow
@pytest.mark.parametrize("cost", MODELS[:3], ids=lambda cost: cost.name)
def test_so_it_is_for_random_operators(cost: CostModel) -> None:
    rng = Random(7)
    for _ in range(25):
        check_model(cost, random_operator(rng))


def wild(t: Any) -> Any:
    """Return something that uses all that can be traced."""
    a, b, c = t.T
    quotient, rest = divmod(a, b)
    where: Any = np.where
    last = where((c > 7) & ~(a == b) | (b >= 100), np.minimum(a, b), np.maximum(c, 3) - a)
    chosen: Any = np.select([a < 5, a <= 50], [b * 2, -c], default=11)
    folded: Any = t[:, [0, 2]].prod(axis=1) + t.sum(axis=1) + np.max(t, axis=1) - t[..., 1:].min(axis=-1)
    wide = (-(-t // np.array([16, 16, 8]))).prod(axis=1)
    rounded: Any = (
        np.ceil(a / 7).astype(np.int64) + np.floor(np.sqrt(b)) + np.abs(a - c) % 5 + np.trunc(-a / 3)
    )
    flags: Any = (
        np.logical_or(a != 3, np.logical_not(c)) * 2 + np.zeros_like(a) + np.ones_like(a, dtype=float)
    )
    limited: Any = np.clip(c, 2, 40) + a.clip(3) + (b**2) // 9 + np.full_like(a, 4)
    return quotient + rest + last + chosen + folded + wide + rounded + flags + limited - 2 * -(-a // b)


def test_everything_that_can_be_traced_is_what_numpy_does() -> None:
    formula = trace_table(wild, 3)
    table = table_of(np.random.default_rng(3), 200, 150, 90)
    np.testing.assert_array_equal(formula.evaluate(table), wild(table))
    np.testing.assert_array_equal(native(formula, table), wild(table))


def test_columns_of_one_number_are_constants() -> None:
    formula = trace_table(wild, 3, {1: 7})
    assert len(formula.instructions) < len(trace_table(wild, 3).instructions)
    table = table_of(np.random.default_rng(5), 200, 150, 90)
    table[:, 1] = 7
    np.testing.assert_array_equal(formula.evaluate(table), wild(table))


def test_formulas_of_many_rows_are_evaluated_in_blocks() -> None:
    formula = trace_table(wild, 3)
    table = table_of(np.random.default_rng(7), 200, 150, 90)
    many = np.concatenate([table] * 4)
    assert len(many) > 2 * BLOCK_ROWS
    np.testing.assert_array_equal(formula.evaluate(many), wild(many))


LEAST_ROWS = 200
"""More than one block of the interpreter of intervals, and not a multiple of one."""


def check_bound(formula: Formula, rng: np.random.Generator, *highest: int, lowest: int = 0) -> None:
    """Assert that a formula is nowhere in a box of numbers below the bound of the box."""
    spread = [np.minimum(np.exp(rng.random(LEAST_ROWS) * np.log(high + 1.0)), high) for high in highest]
    low = np.stack(spread, axis=1).astype(np.int64) - 1 + lowest
    width = rng.integers(0, 4, low.shape) * rng.integers(0, 3, low.shape) ** 4
    high = np.minimum(low + width, np.array(highest))
    bound = _batch_function.least(
        formula, np.ascontiguousarray(low.T, np.float64), np.ascontiguousarray(high.T, np.float64)
    )
    assert (bound >= 0).all()
    for number in range(8):
        inside = low + (rng.random(low.shape) * (high - low + 1)).astype(np.int64)
        inside = (low, high)[number] if number < 2 else inside
        found = np.maximum(formula.evaluate(inside), 0)
        assert (found >= bound).all(), (inside[found < bound][:1], found[found < bound][:1])
    points = _batch_function.least(
        formula, np.ascontiguousarray(low.T, np.float64), np.ascontiguousarray(low.T, np.float64)
    )
    np.testing.assert_array_equal(points, np.maximum(formula.evaluate(low), 0))


def test_no_number_in_a_box_is_below_its_bound() -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        check_bound(trace_table(wild, 3), rng, 200, 150, 90, lowest=1)
        check_bound(trace_table(wild, 3, {0: 5}), rng, 200, 150, 90, lowest=1)


@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: f"{spec.kind}-{spec.inputs[0].dtype}")
def test_nor_is_any_cost_of_an_operator(spec: OperatorSpec) -> None:
    rng = np.random.default_rng(9)
    program = cost_program(MODELS[0], spec)
    for function, highest in (
        (program.sub_task, tuple(3 * extent if extent > 1 else 1 for extent in spec.extents)),
        (program.epilogue, (100_000, 5000, 1472)),
        (program.reduce, (1472, 30_000, 10_000)),
    ):
        assert isinstance(function, Formula)
        check_bound(function, rng, *highest, lowest=1)


def test_what_is_always_so_needs_no_instruction() -> None:
    def always(t: Any) -> Any:
        where: Any = np.where
        a, b = t.T
        certain = np.logical_and(a * 0 == 0, np.logical_not(b != b))
        unlikely = np.logical_or(a < a, np.logical_not(np.logical_not(b % 1 != 0)))
        return where(np.logical_and(certain, np.logical_not(unlikely)), a // 1 + (b - b) + 0 // a, b)

    assert trace_table(always, 2).instructions == ()


def test_integer_division_is_exact_up_to_large_numbers_and_zero_by_zero() -> None:
    def quotients(t: Any) -> Any:
        return t[:, 0] // t[:, 1] + -(-t[:, 0] // t[:, 1]) + t[:, 0] % t[:, 1] - t[:, 0] // 6 - t[:, 0] // 16

    formula = trace_table(quotients, 2)
    rng = np.random.default_rng(5)
    divisors = rng.integers(2, 1 << 20, ROWS)
    exact = divisors * rng.integers(1, (1 << 50) // divisors)
    edge = np.array([0, 0, 0, 0, 1 << 50, (1 << 50) - 1])
    for dividends in (exact - 1, exact, exact + 1):
        table = np.stack([np.append(dividends, edge), np.append(divisors, [1, 2, 3, 4, 7, 7])], axis=1)
        np.testing.assert_array_equal(native(formula, table), quotients(table))
    with np.errstate(divide="ignore"):
        nothing = np.array([[5, 0], [0, 0]])
        np.testing.assert_array_equal(native(formula, nothing), quotients(nothing))


def test_equal_operations_are_recorded_once_and_unneeded_ones_not_at_all() -> None:
    def wasteful(t: Any) -> Any:
        a, b = t[:, 0], t[:, 1]
        _ = a % b
        return (a + b) * (b + a) + -(-a // 1) * 1 + 0

    formula = trace_table(wasteful, 2)
    assert [Opcode(code) for code, *_ in formula.instructions] == [Opcode.ADD, Opcode.MUL, Opcode.ADD]


REFUSED: tuple[Callable[[Any], Any], ...] = (
    lambda t: t[:, 0] if t[0, 0] > 3 else t[:, 1],
    lambda t: np.log2(t[:, 0]),
    lambda t: t[::-1, 0],
    lambda t: np.array([int(row[0]) for row in t]),
    lambda t: t[:, 0].cumsum(),
    lambda t: (t[:, 0] / 2) // 3,
    lambda t: t[:, 0] & 3,
    lambda t: t * t[:, 0],
    lambda t: np.add(t[:, 0], 1, where=t[:, 0] > 2),
)


@pytest.mark.parametrize("function", REFUSED)
def test_what_a_formula_cannot_say_is_refused(function: Callable[[Any], Any]) -> None:
    with pytest.raises((TraceError, AttributeError)):
        trace_table(function, 2)


def by_row(t: Any) -> Any:
    """Return something that only plain numpy can do."""
    return np.array([100 + int(row[0]) // (1 + int(row[1])) for row in t])


def test_what_cannot_be_traced_is_called_back_from_native_code() -> None:
    function = cost_function(by_row, ((1, 50), (1, 60)))
    assert isinstance(function, CostCallable)
    table = table_of(np.random.default_rng(2), 50, 60)
    np.testing.assert_array_equal(native(function, table), by_row(table))


def test_a_function_that_knows_the_number_of_rows_is_not_believed_as_a_formula() -> None:
    assert isinstance(cost_function(lambda t: t[:, 0] + len(t), ((1, 50),)), CostCallable)
    assert isinstance(cost_function(lambda t: t[:, 0] + np.ones(len(t)), ((1, 50),)), Formula)


def test_errors_of_a_called_function_come_through_native_code() -> None:
    def broken(t: Any) -> Any:
        raise ZeroDivisionError(f"at {len(t)} rows")

    with pytest.raises(ZeroDivisionError, match="at 700 rows"):
        native(CostCallable(1, broken), np.ones((ROWS, 1)))
    with pytest.raises(T10Error, match=r"shape \(3,\) for 700 candidates"):
        native(CostCallable(1, lambda _: np.zeros(3)), np.ones((ROWS, 1)))


def test_constants_and_inputs_alone_are_formulas() -> None:
    table = table_of(np.random.default_rng(2), 50, 60)
    assert native(trace_table(lambda _: 7, 2), table).tolist() == [7.0] * ROWS
    assert native(trace_table(lambda t: t[:, 1], 2), table).tolist() == table[:, 1].tolist()
    none = trace_table(lambda t: t.prod(axis=1), 0)
    assert none.evaluate(np.zeros((3, 0), np.int64)).tolist() == [1.0] * 3
    assert native(none, np.zeros((3, 0))).tolist() == [1.0] * 3


def test_malformed_formulas_are_refused() -> None:
    with pytest.raises(T10Error, match="not defined"):
        Formula(1, (), ((int(Opcode.ADD), 0, 1, 0),), 1)
    with pytest.raises(T10Error, match="not defined"):
        Formula(1, (), (), 4)
    with pytest.raises(ValueError, match="2 columns, found 1"):
        _batch_function.evaluate(trace_table(lambda t: t[:, 0], 2), np.ones((1, 4)))
