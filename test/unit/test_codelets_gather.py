"""Look-ups of rows: every type, width and share of workers; indices that are negative, elsewhere, or wild."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.gather.family import GatherFamily
from t10.core.codelet import Compiled
from t10.core.expression import AxisSizes, Selector
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

GATHER = GatherFamily()
SIZE = 50
FIRST, HERE = 20, 7
SLOTS_PER_VECTOR, SLOTS_PER_APART_VECTOR, SLOTS_PER_SUM = 2.0, 1.0, 3.0


def operand(dtype: str, *strides: int, align: int = 8) -> TaskOperand:
    return TaskOperand(dtype, strides, align)


def index_of(dtype: str) -> ScalarFunction:
    """The index; negative ones count from the end of a table of `SIZE` rows."""
    return ScalarFunction(2, (
        ScalarOp("const", (), dtype, "0"), ScalarOp("const", (), dtype, str(SIZE)),
        ScalarOp("arith.cmpi", (0, 2), "i1", "slt"), ScalarOp("arith.addi", (0, 3), dtype),
        ScalarOp("arith.select", (4, 5, 0), dtype), ScalarOp("arith.index_cast", (6,), "index")), 7)  # fmt: skip


def look_up(
    n: int, width: int, dtype: str, index: str = "i64", *, initial: bool = True, align: int = 8,
    apart: bool = False, row: int = 0,
) -> Task:  # fmt: skip
    """A task on rows `FIRST` to `FIRST + HERE` of the table."""
    row = row or width
    inputs = (operand(index, 1, 0, 0), operand(dtype, 0, row, 1, align=align))
    output = operand(dtype, row, 0, 1, align=align)
    pairs = frozenset({(1, 2)}) if apart else frozenset[tuple[int, int]]()
    return Task((n, HERE, width), inputs, output, "sum", ScalarFunction(2, (), 1), (1,), initial,
                (Selector(1, index_of(index)),), (0, FIRST, 0), pairs)  # fmt: skip


def compiled(task: Task) -> Compiled:
    found = GATHER.compile(task)
    assert found is not None
    return found


def indices(n: int, seed: int = 0) -> np.ndarray:
    """Rows that are here, that are elsewhere, negative ones, and numbers that no table has."""
    rng = np.random.default_rng(seed)
    found = rng.integers(-SIZE, SIZE, n)
    found[::3] = rng.integers(FIRST, FIRST + HERE, len(found[::3]))
    found[1::7] = 2**32 + FIRST
    found[2::11] = -(2**40)
    return found


def check(task: Task, rows: np.ndarray | None = None) -> int:
    rows = indices(task.extents[0]) if rows is None else rows
    run = run_task(task, compiled(task), inputs=(rows, None))
    run.check()
    return run.cycles


@pytest.mark.parametrize("width", [2, 4, 6, 8, 10, 64, 100])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i64", "i8"])
def test_rows_of_any_type(dtype: str, width: int) -> None:
    if dtype == "i8":
        width *= 2
    check(look_up(17, width, dtype))


@pytest.mark.parametrize("width", [2, 6, 8, 10, 64])
@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_rows_are_added(dtype: str, width: int) -> None:
    check(look_up(17, width, dtype, initial=False))


def test_indices_of_32_bits() -> None:
    check(look_up(17, 16, "f16", "i32"), np.arange(17, 34))


@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("width", [8, 10, 12])
def test_copies_between_memory_elements(width: int, apart: bool) -> None:
    task = look_up(15, width, "f16", apart=apart, row=12)
    assert bool(compiled(task).codelet.apart) == apart
    check(task)


def test_words_that_are_not_aligned_to_eight_bytes() -> None:
    check(look_up(15, 9, "f32"))
    check(look_up(15, 8, "f32", align=4))
    check(look_up(15, 8, "f16", align=4, initial=False))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_are_shared_in_pieces(n: int) -> None:
    check(look_up(n, 96, "f16"))
    check(look_up(n, 96, "f32", initial=False))


def test_rows_in_two_dimensions() -> None:
    inputs = (operand("i32", 3, 1, 0, 0), operand("f32", 0, 0, 8, 1))
    task = Task((5, 3, HERE, 8), inputs, operand("f32", 64, 16, 0, 1), "sum", ScalarFunction(2, (), 1), (2,), True,
                (Selector(2, index_of("i32")),), (0, 0, FIRST, 0))  # fmt: skip
    rows = np.arange(15, 30)
    run_task(task, compiled(task), inputs=(rows, None)).check()


@pytest.mark.parametrize(
    ("apart", "initial", "slots"),
    [(False, True, SLOTS_PER_VECTOR), (True, True, SLOTS_PER_APART_VECTOR), (False, False, SLOTS_PER_SUM)],
)
def test_slots_per_vector(apart: bool, initial: bool, slots: float) -> None:
    """poplibs: 2 per vector copied, 3 per vector added."""
    rows = np.full(6, FIRST)
    short, long = (check(look_up(6, n, "f32", apart=apart, initial=initial), rows) for n in (128, 256))
    assert (long - short) / 6 / 64 == slots


def test_what_is_no_row_is_left_to_scalar_loops() -> None:
    """Halves at odd places, an index per element, and a table that is computed with."""
    odd = look_up(9, 7, "f16", row=7)
    strides: AxisSizes = (8, 0, 1)
    inputs = (operand("i32", *strides), operand("f32", 0, 8, 1))
    per_element = Task((5, HERE, 8), inputs, operand("f32", 8, 0, 1), "sum", ScalarFunction(2, (), 1), (1,), True,
                       (Selector(1, index_of("i32")),), (0, FIRST, 0))  # fmt: skip
    for task, rows in ((odd, indices(9)), (per_element, indices(40).astype(np.int32))):
        assert GATHER.compile(task) is None
        run_task(task, compile_task(task), inputs=(rows, None)).check()


def test_sums_of_short_rows_take_few_slots() -> None:
    """What all rows share is in registers: poplibs' estimate is 36 slots a row, 24 of them for loads and stores."""
    index = ScalarFunction(2, (ScalarOp("arith.index_cast", (0,), "index"),), 2)
    task = Task((126, 200, 32), (operand("i32", 1, 0, 0), operand("f16", 0, 32, 1)), operand("f16", 32, 0, 1), "sum",
                ScalarFunction(2, (), 1), (1,), False, (Selector(1, index),), (0, -100, 0))  # fmt: skip
    run = run_task(task, compiled(task))
    run.check()
    assert run.cycles <= 6 * (21 * 38.5 + 28)


def test_tables_of_any_size_share_a_codelet() -> None:
    assert compiled(look_up(17, 16, "f16")).codelet == compiled(look_up(23, 64, "f16")).codelet


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [look_up(17, 10, "f16"), look_up(17, 10, "f16", initial=False), look_up(3, 96, "f32"),
             look_up(9, 9, "f32"), look_up(15, 10, "f16", apart=True, row=12), look_up(17, 8, "i64"),
             look_up(17, 8, "f32", "i32")]  # fmt: skip
    check_cpp_references([(task, compiled(task)) for task in tasks], tmp_path)
