"""Vector reductions: every shape, combination, remainder and accumulation, on the simulator and as C++."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.body.select import Unselectable
from t10.codelets.compile import compile_task
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.reduce.family import ReduceFamily
from t10.codelets.reduce.generator import Generator, slots_of_step
from t10.codelets.reduce.numbers import Numbers
from t10.codelets.reduce.shape import Shape, shapes
from t10.codelets.reduce.structure import structure
from t10.codelets.sequence import in_sequence
from t10.core.codelet import Compiled
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, Combine
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

REDUCE = ReduceFamily()
HALF, SINGLE = 3e-3, 2e-5
SUM_SLOTS_PER_VECTOR = 1.0
Op = tuple[str, tuple[int, ...], str] | tuple[str, tuple[int, ...], str, str]


def operand(dtype: str, *strides: int, align: int = 8) -> TaskOperand:
    return TaskOperand(dtype, strides, align)


def compiled(task: Task) -> Compiled:
    found = REDUCE.compile(task)
    assert found is not None
    return found


def check(task: Task, shape: str = "", **kwargs: object) -> int:
    """Run a task, compare, and return its cycles; `shape` is the one expected."""
    code = compiled(task)
    assert shape in code.codelet.name
    is_half = "f16" in {o.dtype for o in task.operands}
    run = run_task(task, code, **kwargs)  # pyright: ignore[reportArgumentType]: forwarded
    run.check(rtol=HALF if is_half else SINGLE, atol=HALF * 4 if is_half else SINGLE)
    return run.cycles


def chain(n_inputs: int, *ops: Op) -> ScalarFunction:
    """A body of operations whose last one is the result."""
    made = tuple(ScalarOp(op[0], op[1], op[2], op[3] if len(op) == 4 else "") for op in ops)
    return ScalarFunction(n_inputs, made, n_inputs + len(made) - 1)


WIDENED = chain(1, ("arith.extf", (0,), "f32"))
SQUARED_DISTANCE = chain(
    2, ("arith.extf", (0,), "f32"), ("arith.subf", (2, 1), "f32"), ("arith.mulf", (3, 3), "f32")
)
EXPONENTIAL = chain(2, ("arith.extf", (0,), "f32"), ("arith.subf", (2, 1), "f32"), ("math.exp", (3,), "f32"))
PRODUCT = chain(2, ("arith.mulf", (0, 1), "f32"))
WIDENED_PRODUCT = chain(
    2, ("arith.extf", (0,), "f32"), ("arith.extf", (1,), "f32"), ("arith.mulf", (2, 3), "f32")
)


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("combine", ["sum", "max", "min", "prod"])
@pytest.mark.parametrize("n", [2, 3, 5, 16, 63, 64, 65, 66, 67, 130])
def test_rows_of_any_length(n: int, combine: Combine, dtype: str) -> None:
    row = -(-n // 4) * 4
    for initial in (True, False):
        task = Task(
            (7, n), (operand(dtype, row, 1),), operand(dtype, 1, 0), combine, identity(), (1,), initial
        )
        check(task, "rows" if n >= 16 else "")


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("combine", ["sum", "max"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 30, 31, 33])
def test_columns_of_any_number(n: int, combine: Combine, dtype: str) -> None:
    row = -(-n // 4) * 4
    for initial in (True, False):
        task = Task(
            (9, n), (operand(dtype, row, 1),), operand(dtype, 0, 1), combine, identity(), (0,), initial
        )
        check(task)


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i16", "i8", "i1"])
@pytest.mark.parametrize("combine", ["sum", "max", "min", "and", "or"])
def test_strided_and_misaligned_points(combine: Combine, dtype: str) -> None:
    align = 4 if "32" in dtype else 2
    if dtype.startswith("f") and combine in ("and", "or"):
        return
    for initial in (True, False):
        task = Task(
            (5, 9), (operand(dtype, 27, 3),), operand(dtype, 1, 0), combine, identity(), (1,), initial
        )
        check(task, "points")
        check(
            Task(
                (5, 9),
                (operand(dtype, 9, 1, align=align),),
                operand(dtype, 2, 0),
                combine,
                identity(),
                (1,),
                initial,
            )
        )


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_pooling_windows(dtype: str) -> None:
    """Images of 12 x 14 with 24 channels innermost, windows of 3 x 3 every second pixel."""
    x = (12 * 14 * 24, 2 * 14 * 24, 2 * 24, 14 * 24, 24, 1)
    out = (5 * 6 * 24, 6 * 24, 24, 0, 0, 1)
    for combine in ("max", "sum"):
        check(
            Task(
                (2, 5, 6, 3, 3, 24), (operand(dtype, *x),), operand(dtype, *out), combine, identity(), (3, 4)
            ),
            "columns",
        )


def test_pooling_with_channels_outermost() -> None:
    x = (12 * 14, 2 * 14, 2, 14, 1)
    task = Task(
        (6, 5, 6, 3, 3), (operand("f16", *x),), operand("f16", 30, 6, 1, 0, 0), "max", identity(), (3, 4)
    )
    assert check(task, "rows") <= 5_868


def test_large_windows_are_loops() -> None:
    x = (40 * 40 * 8, 40 * 8, 8, 1)
    check(
        Task((3, 40, 40, 8), (operand("f32", *x),), operand("f32", 8, 0, 0, 1), "sum", identity(), (1, 2)),
        "columns",
    )
    task = Task(
        (12, 7, 9, 41),
        (operand("f16", 7 * 9 * 44, 9 * 44, 44, 1),),
        operand("f16", 1, 0, 0, 0),
        "sum",
        identity(),
        (1, 2, 3),
    )
    check(task, "rows")


def test_sums_of_f16_are_kept_in_f32() -> None:
    """2048 + 1 is no f16: summed in f16, ones would be lost."""
    x = np.concatenate([[2048.0], np.ones(2048)]).astype(np.float16)
    task = Task((1, 2049), (operand("f16", 2052, 1),), operand("f32", 1, 0), "sum", WIDENED, (1,))
    run = run_task(task, compiled(task), inputs=(x,))
    assert run.found.tolist() == [4096.0]


@pytest.mark.parametrize("n", [4, 6, 64, 77])
@pytest.mark.parametrize("body", [SQUARED_DISTANCE, EXPONENTIAL])
def test_bodies_with_a_value_per_row(body: ScalarFunction, n: int) -> None:
    """Variance around a mean, and the sum of a softmax."""
    check(
        Task((9, n), (operand("f16", 80, 1), operand("f32", 1, 0)), operand("f32", 1, 0), "sum", body, (1,)),
        "rows" if n > 6 else "",
    )


def test_bodies_with_a_value_per_column() -> None:
    task = Task(
        (21, 16),
        (operand("f16", 16, 1), operand("f32", 0, 1)),
        operand("f32", 0, 1),
        "sum",
        SQUARED_DISTANCE,
        (0,),
    )
    check(task, "columns")


@pytest.mark.parametrize(("dtype", "body"), [("f32", PRODUCT), ("f16", WIDENED_PRODUCT)])
def test_products_of_a_matrix_and_a_vector(dtype: str, body: ScalarFunction) -> None:
    rows = Task(
        (7, 66), (operand(dtype, 68, 1), operand(dtype, 0, 1)), operand("f32", 1, 0), "sum", body, (1,)
    )
    check(rows, "rows")
    columns = Task(
        (12, 31), (operand(dtype, 1, 12), operand(dtype, 0, 1)), operand("f32", 1, 0), "sum", body, (1,)
    )
    check(columns, "columns")


def test_depthwise_convolution() -> None:
    """Channels innermost: out[h, c] += x[h + k, c] * w[k, c]."""
    task = Task(
        (10, 3, 24),
        (operand("f32", 24, 24, 1), operand("f32", 0, 24, 1)),
        operand("f32", 24, 0, 1),
        "sum",
        PRODUCT,
        (1,),
    )
    check(task, "columns")


def test_mean_scales_before_it_sums() -> None:
    body = chain(1, ("const", (), "f32", "0.25"), ("arith.mulf", (0, 1), "f32"))
    check(Task((6, 4, 8), (operand("f32", 32, 8, 1),), operand("f32", 8, 0, 1), "sum", body, (1,)), "columns")


def test_maxima_are_widened_at_the_end() -> None:
    """Four f16 take two slots, as if the maxima were f16: the second watches for NaNs."""
    cycles: list[int] = []
    for n in (128, 256):
        task = Task((6, n), (operand("f16", n, 1),), operand("f32", 1, 0), "max", WIDENED, (1,))
        cycles.append(check(task, "rows"))
    assert (cycles[1] - cycles[0]) / 6 / 32 == 2 * SUM_SLOTS_PER_VECTOR
    check(
        Task((24, 45), (operand("f16", 48, 1),), operand("f32", 0, 1), "min", WIDENED, (0,), False), "columns"
    )


def test_partial_sums_of_a_reduction_across_cores() -> None:
    """What arrives from seven cores is added to what is there."""
    for dtype in ("f16", "f32"):
        task = Task(
            (7, 50), (operand(dtype, 52, 1),), operand(dtype, 0, 1), "sum", identity(), (0,), initial=False
        )
        check(task, "columns")


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("n", [1, 2, 6, 7, 12, 13, 18, 19, 25, 30])
def test_vectors_of_sums_two_by_two(n: int, initial: bool) -> None:
    """Workers have odd and even numbers of vectors; three addends are summed without rounding in between."""
    task = Task(
        (3, 8 * n), (operand("f16", 8 * n, 1),), operand("f16", 0, 1), "sum", identity(), (0,), initial
    )
    check(task, "columns")


@pytest.mark.parametrize("rows", range(1, 15))
def test_single_halves_leave_their_neighbours(rows: int) -> None:
    """Long rows whose results are one f16 each: the loop's last iteration loads the word that each lies in."""
    for length in (64, 256):
        for combine in ("max", "sum"):
            task = Task(
                (rows, length),
                (operand("f16", length, 1),),
                operand("f16", 1, 0, align=2),
                combine,
                identity(),
                (1,),
            )
            check(task)


@pytest.mark.parametrize(
    ("rows", "length", "slots"), [(12, 64, 121), (24, 128, 346), (48, 512, 2_204), (96, 768, 6_432)]
)
def test_maxima_of_rows_take_few_slots(rows: int, length: int, slots: int) -> None:
    """Two slots a vector, where poplibs' maxima, which drop NaNs, take one; what is loaded around a result is so while
    lanes are folded."""
    task = Task((rows, length), (operand("f16", length, 1),), operand("f16", 1, 0), "max", identity(), (1,))
    assert check(task, "rows") <= 6 * slots


@pytest.mark.parametrize(
    ("partials", "columns", "dtype", "slots"),
    [(4, 96, "f16", 61), (8, 480, "f16", 270), (3, 1536, "f16", 470),
     (4, 96, "f32", 80), (8, 480, "f32", 470), (3, 1536, "f32", 800)],
)  # fmt: skip
def test_sums_of_partials_take_few_slots(partials: int, columns: int, dtype: str, slots: int) -> None:
    """Not more than poplibs' estimate and 10 %: the next vector is loaded while accumulators are read."""
    x, out = operand(dtype, columns, 1), operand(dtype, 0, 1)
    task = Task((partials, columns), (x,), out, "sum", identity(), (0,), initial=False)
    assert check(task, "columns") <= 6 * slots


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("combine", ["sum", "max"])
@pytest.mark.parametrize("initial", [True, False])
def test_few_long_rows_are_reduced_in_pieces(combine: Combine, dtype: str, initial: bool) -> None:
    for rows, n in ((1, 768), (1, 4096), (2, 1536)):
        task = Task(
            (rows, n), (operand(dtype, n, 1),), operand(dtype, 1, 0), combine, identity(), (1,), initial
        )
        at_once = REDUCE.at_once(task, shapes(task))[0]
        cycles = check(task, "pieces")
        assert cycles * 1.1 < run_task(task, at_once).cycles


def test_pieces_of_bodies_and_windows() -> None:
    inputs = (operand("f16", 512, 1), operand("f32", 1, 0))
    check(Task((1, 512), inputs, operand("f32", 1, 0), "sum", EXPONENTIAL, (1,)), "pieces")
    x = operand("f32", 400, 40, 1)
    check(Task((1, 36, 30), (x,), operand("f32", 0, 0, 0), "max", identity(), (1, 2)), "pieces")
    check(Task((3, 600), (operand("i32", 600, 1),), operand("i32", 1, 0), "sum", identity(), (1,)), "pieces")


def test_one_output_is_one_workers() -> None:
    check(Task((100,), (operand("f32", 1),), operand("f32", 0), "sum", identity(), (0,)))


def test_all_workers_take_part() -> None:
    """Sixty rows cost about ten times what one does."""
    few = Task((6, 256), (operand("f16", 256, 1),), operand("f16", 2, 0), "max", identity(), (1,))
    many = Task((60, 256), (operand("f16", 256, 1),), operand("f16", 2, 0), "max", identity(), (1,))
    ratio = check(many) / check(few)
    assert 7 < ratio < 10.5


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize(("combine", "slots"), [("sum", 1), ("max", 2), ("min", 2)])
def test_one_vector_per_slot(combine: Combine, slots: int, dtype: str) -> None:
    """The inner loop takes a slot per eight bytes, as poplibs' accumulating loops; NaNs are watched for in another."""
    step = 4 if dtype == "f16" else 2
    short, long = (
        check(Task((6, n), (operand(dtype, n, 1),), operand(dtype, 2, 0), combine, identity(), (1,)))
        for n in (64 * step, 128 * step)
    )
    assert (long - short) / 6 / 64 == slots * SUM_SLOTS_PER_VECTOR


NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("place", [None, 0, 5, -1])
@pytest.mark.parametrize("combine", ["max", "min", "maxnum", "minnum"])
@pytest.mark.parametrize("axes", [(0,), (1,)])
@pytest.mark.parametrize(("source", "target"), [("f16", "f16"), ("f32", "f32"), ("f16", "f32")])
@pytest.mark.parametrize("initial", [True, False])
def test_extremes_keep_or_drop_nans_and_keep_infinities(
    source: str, target: str, axes: tuple[int], combine: Combine, place: int | None, initial: bool
) -> None:
    """One NaN a row or column, or in what was there before; infinities of both signs are none; large sums neither."""
    body = identity() if source == target else WIDENED
    for rows, columns in ((7, 24), (6, 27), (3, 9), (24, 45), (2, 66)):
        row = -(-columns // 4) * 4
        out = operand(target, 1, 0) if axes == (1,) else operand(target, 0, 1)
        task = Task((rows, columns), (operand(source, row, 1),), out, combine, body, axes, initial)
        values = np.full((rows, row), 6e4 if source == "f16" else 3e38)
        values[::2, ::3], values[1::3, ::2] = INFINITY, -INFINITY
        before = np.ones(columns if axes == (0,) else rows)
        if place is not None and axes == (1,):
            values[::2, place % columns] = NAN
            before[1::2] = NAN
        elif place is not None:
            values[place % rows, ::2] = NAN
            before[1::2] = NAN
        flat = values.reshape(-1)[: (rows - 1) * row + columns]
        check(task, inputs=(flat,), before=before)


def random_task(seed: int) -> Task:
    """Up to four axes in any order, strides with gaps, one or two inputs of one type, any combination."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 5))
    extents = tuple(int(n) for n in rng.integers(1, 10, rank))
    reduction = tuple(a for a in range(rank) if rng.random() < 0.5) or (0,)
    dtype = str(rng.choice(["f32", "f16"]))
    unit = int(rng.choice([1, 4]))

    def strides(axes: tuple[int, ...]) -> AxisSizes:
        found = [0] * rank
        step: int = 1
        for a in (int(n) for n in rng.permutation(rank)):
            if a in axes:
                found[a] = step
                step = -(-step * (extents[a] + int(rng.integers(0, 2))) // unit) * unit
        return tuple(found)

    everywhere = tuple(range(rank))
    kept = tuple(a for a in everywhere if a not in reduction)
    some = tuple(a for a in everywhere if rng.random() < 0.6)
    combine: Combine = ("sum", "max", "min")[int(rng.integers(3))]
    inputs = (operand(dtype, *strides(everywhere)), operand(dtype, *strides(some)))
    body = chain(2, ("arith.addf", (0, 1), dtype))
    return Task(
        extents, inputs, operand(dtype, *strides(kept)), combine, body, reduction, bool(rng.random() < 0.7)
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_reductions(seed: int) -> None:
    task = random_task(seed)
    found = REDUCE.compile(task)
    if found is not None:
        run_task(task, found, seed=seed).check(rtol=HALF, atol=HALF * 8)


def generated(task: Task, shape: Shape, numbers: Numbers) -> object:
    """Return text and fields of a task's code, and the words it has with some numbers; None where there is none."""
    try:
        generator = Generator(task, shape)
        lines = generator.generate().lines
    except Unselectable:
        return None
    words = [word(numbers) if callable(word) else word for word in generator.state.words]
    return lines, generator.state.fields, words, generator.scratch_bytes


@pytest.mark.parametrize("seed", range(60))
def test_code_of_a_structure_is_that_of_the_task(seed: int) -> None:
    task = random_task(seed)
    for shape in shapes(task):
        numbers = Numbers(task, shape)
        example = structure(task, shape, slots_of_step).example()
        assert generated(task, shape, numbers) == generated(*example, numbers)


def test_tasks_of_one_structure_share_a_codelet() -> None:
    first, second = (
        compiled(Task((n, 8 * n), (operand("f32", 8 * n, 1),), operand("f32", 1, 0), "sum", identity(), (1,)))
        for n in (7, 9)
    )
    assert first.codelet == second.codelet


def test_what_is_no_reduction_is_left_to_others() -> None:
    assert REDUCE.compile(Task((4,), (operand("f32", 1),), operand("f32", 1), "none", identity())) is None
    wide = Task((4, 4), (operand("i64", 4, 1),), operand("i64", 1, 0), "sum", identity(), (1,))
    assert REDUCE.compile(wide) is None


def test_sums_over_one_point_are_none() -> None:
    task = Task((4, 1, 5), (operand("f32", 5, 5, 1),), operand("f32", 5, 0, 1), "sum", identity(), (1,))
    code = compile_task(task)
    assert "sum" not in code.codelet.name
    run_task(task, code).check()
    added = replace(task, initial=False)
    run_task(added, compile_task(added)).check()


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [random_task(seed) for seed in range(12)]
    tasks += [
        Task((7, 67), (operand("f16", 68, 1),), operand("f16", 1, 0), "max", identity(), (1,)),
        Task((7, 67), (operand("f16", 68, 1),), operand("f32", 1, 0), "sum", WIDENED, (1,), initial=False),
        Task((9, 30), (operand("f16", 32, 1),), operand("f16", 0, 1), "sum", identity(), (0,), initial=False),
        Task((3, 104), (operand("f16", 104, 1),), operand("f16", 0, 1), "sum", identity(), (0,), initial=False),
        Task((4, 96), (operand("f32", 96, 1),), operand("f32", 0, 1), "sum", identity(), (0,), initial=False),
        Task((5, 9), (operand("i1", 27, 3),), operand("i1", 1, 0), "or", identity(), (1,)),
        # Rows as long as a vector: the inner loop goes from one to the next.
        Task((3, 2), (operand("f32", 2, 1),), operand("f32", 0, 1), "sum", identity(), (0,), initial=False),
        Task((9, 77), (operand("f16", 80, 1), operand("f32", 1, 0)), operand("f32", 1, 0), "sum", EXPONENTIAL, (1,)),
        Task((2, 5, 6, 3, 3, 24), (operand("f16", 12 * 14 * 24, 2 * 14 * 24, 48, 14 * 24, 24, 1),),
             operand("f16", 720, 144, 24, 0, 0, 1), "max", identity(), (3, 4)),
        Task((3, 40, 40, 8), (operand("f32", 40 * 320, 320, 8, 1),), operand("f32", 8, 0, 0, 1), "sum", identity(),
             (1, 2)),
        Task((1, 768), (operand("f16", 768, 1),), operand("f16", 1, 0), "sum", identity(), (1,), initial=False),
        Task((2, 1536), (operand("f32", 1536, 1),), operand("f32", 1, 0), "max", identity(), (1,)),
        Task((2, 197), (operand("f16", 200, 1),), operand("f16", 1, 0), "max", identity(), (1,)),
        Task((1, 1000), (operand("f32", 1000, 1),), operand("f32", 1, 0), "sum", identity(), (1,)),
    ]  # fmt: skip
    check_cpp_references([(t, found) for t in tasks if (found := REDUCE.compile(t)) is not None], tmp_path)


@pytest.mark.parametrize(("combine", "sign"), [("max", -1), ("min", 1)])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("length", [65, 66, 67])
def test_what_lies_behind_a_row_is_neutral(combine: Combine, sign: int, dtype: str, length: int) -> None:
    # Zeros would win against numbers that are all below or all above them.
    values = sign * np.linspace(1, 2, 6 * 68).astype(numpy_dtype(dtype))
    task = Task((6, length), (operand(dtype, 68, 1),), operand(dtype, 1, 0), combine, identity(), (1,))
    check(task, "rows", inputs=[values[: 5 * 68 + length]])


def test_straight_code_walks_on_after_every_loop() -> None:
    x = operand("f32", 100, 40, 12, 1)
    check(Task((6, 2, 2, 4), (x,), operand("f32", 1, 0, 0, 0), "sum", identity(), (1, 2, 3)))


def test_results_at_odd_places_are_stored_one_by_one() -> None:
    x = operand("f32", 40, 1, 8)
    check(Task((3, 8, 5), (x,), operand("f32", 9, 1, 0), "sum", identity(), (2,)))


@pytest.mark.parametrize("seed", range(40))
def test_the_shape_taken_is_the_least_counted(seed: int) -> None:
    task = random_task(seed)
    taken, found = REDUCE.compile(task), shapes(task)
    every = [*REDUCE.at_once(task, found), *REDUCE.in_pieces(task, found)] if taken is not None else []
    cycles = [cycles_where_it_lies(task, way) for way in every]
    assert taken is None or cycles_where_it_lies(task, taken) == min(cycles)


def test_a_codelet_may_follow_itself() -> None:
    """The pieces of maxima are reduced by the same code as what they leave."""
    task = Task((2, 60), (operand("f32", 60, 1),), operand("f32", 1, 0), "max", identity(), (1,))
    part = Task((2, 6), (operand("f32", 6, 1),), operand("f32", 1, 0), "max", identity(), (1,))
    both = in_sequence("Twice", compiled(part), compiled(part), 1, 64, "twice")
    assert cycles_where_it_lies(task, both) > cycles_where_it_lies(part, compiled(part))
