"""Scalar loops compute any task: every operation, type, order of loops and share of workers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.codelet_runs import Run, run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.counter import addresses, counted, scratch, words
from t10.codelets.loops.family import LoopFamily
from t10.codelets.nest import levels, share_points, split
from t10.core.expression import AxisSizes, Combine, Selector
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

LOOPS = LoopFamily()
ALL_TYPES = ("f32", "f16", "i32", "i64", "i16", "i8", "i1", "ui8", "ui16", "ui32", "index")


def operand(dtype: str, *strides: int, align: int = 8) -> TaskOperand:
    return TaskOperand(dtype, strides, align)


def one(opcode: str, inputs: tuple[str, ...], dtype: str, attribute: str = "") -> Task:
    """A task of one operation on vectors of 23 elements."""
    body = ScalarFunction(
        len(inputs), (ScalarOp(opcode, tuple(range(len(inputs))), dtype, attribute),), len(inputs)
    )
    return Task((23,), tuple(operand(d, 1) for d in inputs), operand(dtype, 1), "none", body)


def run(task: Task, **kwargs: object) -> Run:
    compiled = LOOPS.compile(task)
    assert compiled is not None
    return run_task(task, compiled, **kwargs)  # pyright: ignore[reportArgumentType]: forwarded


FLOAT_BINARY = ["addf", "subf", "mulf", "divf", "maximumf", "minimumf", "maxnumf", "minnumf"]
INTEGER_BINARY = ["addi", "subi", "muli", "divsi", "floordivsi", "ceildivsi", "remsi", "divui", "remui", "maxsi",
                  "minsi", "maxui", "minui", "andi", "ori", "xori"]  # fmt: skip
EXACT_MATH = ["absf", "sqrt", "floor", "ceil", "trunc", "round", "roundeven"]
MATH = ["exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "rsqrt", "cbrt", "erf", "erfc", "sin", "cos", "tan",
        "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]  # fmt: skip
SPECIALS = np.array([0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 0.5, 1.5], np.float32)


def floats(dtype: str, seed: int) -> np.ndarray:
    """Special values and others, 23 of them."""
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.permutation(SPECIALS), rng.standard_normal(12).astype(np.float32) * 3])
    with np.errstate(over="ignore"):
        return values.astype(np.float16 if dtype == "f16" else np.float32)


def whole(dtype: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    limits = {"i8": (-128, 128), "i16": (-(2**15), 2**15), "i32": (-(2**31), 2**31), "i64": (-(2**15), 2**15)}
    values = rng.integers(*limits[dtype], 23)
    values[:4] = (-7, 7, -1, 3)
    return values.astype(f"int{dtype[1:]}")


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("opcode", FLOAT_BINARY)
def test_arithmetic_on_floats_is_exact(opcode: str, dtype: str) -> None:
    task = one(f"arith.{opcode}", (dtype, dtype), dtype)
    run(task, inputs=(floats(dtype, 1), floats(dtype, 2))).check()


@pytest.mark.parametrize("dtype", ["f32", "f16"])
@pytest.mark.parametrize("opcode", [*(f"math.{name}" for name in EXACT_MATH), "arith.negf"])
def test_rounding_functions_are_exact(opcode: str, dtype: str) -> None:
    run(one(opcode, (dtype,), dtype), inputs=(floats(dtype, 3),)).check()


@pytest.mark.parametrize("opcode", MATH)
def test_mathematical_functions(opcode: str) -> None:
    x = np.linspace(-0.97, 0.97, 23, dtype=np.float32)
    if opcode in ("log", "log2", "log10", "rsqrt"):
        x = np.abs(x) + np.float32(0.01)
    if opcode == "acosh":
        x = x + np.float32(2)
    run(one(f"math.{opcode}", ("f32",), "f32"), inputs=(x,)).check(rtol=1e-5, atol=4e-7)
    run(one(f"math.{opcode}", ("f16",), "f16"), inputs=(x.astype(np.float16),)).check(rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize(
    "predicate",
    [
        "oeq",
        "one",
        "ogt",
        "oge",
        "olt",
        "ole",
        "ord",
        "ueq",
        "une",
        "ugt",
        "uge",
        "ult",
        "ule",
        "uno",
        "true",
        "false",
    ],
)
def test_comparisons_of_floats(predicate: str) -> None:
    run(
        one("arith.cmpf", ("f32", "f32"), "i1", predicate), inputs=(floats("f32", 4), floats("f32", 5))
    ).check()


@pytest.mark.parametrize("dtype", ["i32", "i8", "i16", "i64"])
@pytest.mark.parametrize("opcode", INTEGER_BINARY)
def test_arithmetic_on_integers_wraps(opcode: str, dtype: str) -> None:
    x, y = whole(dtype, 6), whole(dtype, 7)
    if opcode in ("divui", "remui") and dtype == "i64":
        x, y = np.abs(x), np.abs(y)
    run(one(f"arith.{opcode}", (dtype, dtype), dtype), inputs=(x, y)).check()


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
@pytest.mark.parametrize("dtype", ["i32", "i8", "i1"])
def test_comparisons_of_integers(predicate: str, dtype: str) -> None:
    run(one("arith.cmpi", (dtype, dtype), "i1", predicate)).check()


@pytest.mark.parametrize("opcode", ["shli", "shrsi", "shrui"])
def test_shifts(opcode: str) -> None:
    amounts = np.arange(23, dtype=np.int32)
    run(one(f"arith.{opcode}", ("i32", "i32"), "i32"), inputs=(whole("i32", 8), amounts)).check()


@pytest.mark.parametrize(
    ("opcode", "source", "target"),
    [("arith.extf", "f16", "f32"), ("arith.truncf", "f32", "f16"), ("arith.sitofp", "i32", "f32"),
     ("arith.sitofp", "i8", "f16"), ("arith.sitofp", "i1", "f32"), ("arith.sitofp", "i64", "f32"),
     ("arith.uitofp", "i32", "f32"), ("arith.uitofp", "i8", "f32"), ("arith.uitofp", "i1", "f32"),
     ("arith.extsi", "i8", "i32"), ("arith.extsi", "i1", "i32"), ("arith.extui", "i8", "i32"),
     ("arith.extui", "i1", "i64"), ("arith.trunci", "i32", "i8"), ("arith.trunci", "i64", "i32"),
     ("arith.trunci", "i32", "i1"), ("arith.index_cast", "i64", "index"), ("arith.bitcast", "f32", "i32"),
     ("arith.bitcast", "i32", "f32"), ("arith.bitcast", "f16", "i16"), ("arith.bitcast", "i16", "f16")],
)  # fmt: skip
def test_conversions_are_exact(opcode: str, source: str, target: str) -> None:
    run(one(opcode, (source,), target)).check()


@pytest.mark.parametrize("target", ["i32", "i8", "i16", "i1"])
@pytest.mark.parametrize("opcode", ["arith.fptosi", "arith.fptoui"])
def test_floats_saturate_as_integers(opcode: str, target: str) -> None:
    x = np.array([0, 0.9, -0.9, 1.5, -1.5, 127.5, 128, -129, 300, 65535.9, 65536, -7e4, 2147483520, 2147483648, 3e9,
                  4294967296, 1e20, -1e20, -2147483648, np.inf, -np.inf, np.nan, 42], np.float32)  # fmt: skip
    run(one(opcode, ("f32",), target), inputs=(x,)).check()


@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i1", "i64"])
def test_selection(dtype: str) -> None:
    run(one("arith.select", ("i1", dtype, dtype), dtype)).check()


@pytest.mark.parametrize("opcode", ["divsi", "floordivsi", "ceildivsi", "remsi"])
def test_divisors_of_any_size(opcode: str) -> None:
    least, most = -(2**31), 2**31 - 1
    x = np.array([least, least, most, most, least, 0, -1, 1, 7, -7, most, -5] * 2, np.int32)[:23]
    y = np.array([1, 2, most, least, least, least, most, least, -2, 3, -1, least] * 2, np.int32)[:23]
    run(one(f"arith.{opcode}", ("i32", "i32"), "i32"), inputs=(x, y)).check()
    x, y = x.view(np.uint32), y.view(np.uint32)
    run(one(f"arith.{opcode}", ("ui32", "ui32"), "ui32"), inputs=(x, y)).check()


CHOICES = {
    "by floats": (("f32", "f32"), [("arith.cmpf", (0, 1), "i1", "ult"), ("arith.select", (2, 1, 0), "f32", "")]),
    "by integers": (("i32", "f32"), [("index", (), "index", "0"), ("arith.index_cast", (2,), "i32", ""),
                    ("arith.cmpi", (0, 3), "i1", "slt"), ("math.floor", (1,), "f32", ""),
                    ("arith.select", (4, 1, 5), "f32", "")]),
    "of truths": (("i1", "f32"), [("arith.cmpf", (1, 1), "i1", "une"), ("arith.select", (2, 2, 0), "i1", ""),
                  ("arith.xori", (2, 3), "i1", ""), ("arith.ori", (2, 4), "i1", ""), ("arith.andi", (2, 5), "i1", ""),
                  ("arith.select", (6, 1, 1), "f32", ""), ("arith.cmpf", (7, 1), "i1", "oeq"),
                  ("arith.ori", (8, 5), "i1", "")]),
    "of quotients": (("i32", "i32"), [("arith.floordivsi", (0, 1), "i32", ""), ("arith.remsi", (0, 2), "i32", "")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOICES)
def test_what_is_chosen_takes_the_same_time(name: str) -> None:
    """Choices and divisions have no branch on data: they are counted."""
    dtypes, lines = CHOICES[name]
    ops = tuple(ScalarOp(*line) for line in lines)
    body = ScalarFunction(len(dtypes), ops, len(dtypes) + len(ops) - 1)
    task = Task((23,), tuple(operand(d, 1) for d in dtypes), operand(ops[-1].dtype, 1), "none", body)
    rng = np.random.default_rng(5)
    made = {"i32": whole("i32", 6), "f32": floats("f32", 7), "i1": rng.integers(0, 2, 23).astype(bool)}
    run(task, inputs=tuple(made[d] for d in dtypes)).check()
    compiled = LOOPS.compile(task)
    assert compiled is not None
    lies = addresses(task)
    assert counted(compiled.codelet, words(compiled, lies[:-1], scratch(compiled, lies[-1]))) is not None


def test_long_bodies_spill() -> None:
    """Nine products, summed last to first: more live values than registers."""
    ops = [ScalarOp("arith.mulf", (i % 3, i // 3), "f32") for i in range(9)]
    ops += [ScalarOp("arith.addf", (11, 10), "f32")]
    ops += [ScalarOp("arith.addf", (12 + i, 9 - i), "f32") for i in range(7)]
    task = Task((11,), tuple(operand("f32", 1) for _ in range(3)), operand("f32", 1), "none",
                ScalarFunction(3, tuple(ops), 19))  # fmt: skip
    run(task).check()


def test_indices_begin_at_the_origin() -> None:
    ops = (
        ScalarOp("index", (), "index", "0"),
        ScalarOp("index", (), "index", "1"),
        ScalarOp("arith.muli", (0, 1), "index"),
    )
    task = Task((13, 5), (), operand("index", 5, 1), "none", ScalarFunction(0, ops, 2), origin=(100, 7))
    run(task).check()


@pytest.mark.parametrize("dtype", ALL_TYPES)
@pytest.mark.parametrize("align", [8, 2])
def test_copies_of_any_type_leave_neighbours_alone(dtype: str, align: int) -> None:
    size = {"f32": 4, "i32": 4, "ui32": 4, "i64": 8, "index": 8}.get(dtype, 2 if "16" in dtype else 1)
    task = Task(
        (3, 5, 7),
        (operand(dtype, 70, 14, 2),),
        operand(dtype, 40, 8, 1, align=max(align, size)),
        "none",
        identity(),
    )
    run(task).check()
    transposed = replace(task, output=operand(dtype, 7, 21, 3, align=max(align, size)))
    run(
        replace(transposed, extents=(3, 5, 7), output=operand(dtype, 1, 21, 3, align=max(align, size)))
    ).check()


@pytest.mark.parametrize("combine", ["sum", "prod", "max", "min", "and", "or"])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i32", "i8", "i1"])
@pytest.mark.parametrize("initial", [True, False])
def test_reductions(combine: Combine, dtype: str, initial: bool) -> None:
    if combine in ("and", "or") and dtype.startswith("f"):
        return
    task = Task(
        (3, 5, 7), (operand(dtype, 40, 8, 1),), operand(dtype, 7, 0, 1), combine, identity(), (1,), initial
    )
    run(task).check(rtol=2e-3, atol=2e-3)
    scalar = Task((5, 7), (operand(dtype, 8, 1),), operand(dtype, 0, 0), combine, identity(), (0, 1), initial)
    run(scalar).check(rtol=2e-3, atol=4e-3)


def test_maxima_keep_nans() -> None:
    x = np.arange(12, dtype=np.float32)
    x[5] = np.nan
    task = Task((3, 4), (operand("f32", 4, 1),), operand("f32", 1, 0), "max", identity(), (1,))
    found = run(task, inputs=(x,))
    found.check()
    assert np.isnan(found.found).tolist() == [False, True, False]


def test_results_may_replace_an_input() -> None:
    task = Task((9, 5), (operand("f16", 5, 1), operand("f16", 0, 1)), operand("f16", 5, 1), "none",
                ScalarFunction(2, (ScalarOp("arith.addf", (0, 1), "f16"),), 2))  # fmt: skip
    run(task, in_place=0).check()


def gather(initial: bool, strides: AxisSizes = (1, 0, 0)) -> Task:
    """Rows of a table of 50, of which 7 from the 20th on are here; negative indices count from the end."""
    index = ScalarFunction(2, (
        ScalarOp("const", (), "i64", "0"), ScalarOp("const", (), "i64", "50"),
        ScalarOp("arith.cmpi", (0, 2), "i1", "slt"), ScalarOp("arith.addi", (0, 3), "i64"),
        ScalarOp("arith.select", (4, 5, 0), "i64"), ScalarOp("arith.index_cast", (6,), "index")), 7)  # fmt: skip
    inputs = (operand("i64", *strides), operand("f32", 0, 8, 1))
    return Task((6, 7, 8), inputs, operand("f32", 8, 0, 1), "sum", ScalarFunction(2, (), 1), (1,), initial,
                (Selector(1, index),), (0, 20, 0))  # fmt: skip


@pytest.mark.parametrize("initial", [True, False])
def test_selected_axes_are_looked_up(initial: bool) -> None:
    task = gather(initial)
    indices = np.array([20, 26, 27, -25, 2**32 + 21, -(2**40) + 22], np.int64)
    run(task, inputs=(indices, None)).check()


def test_selectors_may_depend_on_what_they_select() -> None:
    task = gather(True, (1, 1, 0))
    indices = np.array([20, 21, 0, 23, 24, 25, 26, 24, 24, 24, 24, 26], np.int64)
    run(task, inputs=(indices, None)).check(rtol=1e-6)


def test_wide_floats_are_refused() -> None:
    assert LOOPS.compile(one("math.absf", ("f64",), "f64")) is None


def test_tasks_of_one_structure_share_a_codelet() -> None:
    first, second = (
        LOOPS.compile(
            Task((n, n + 1), (operand("f32", n + 9, 1),), operand("f32", n + 3, 1), "none", identity())
        )
        for n in (5, 8)
    )
    assert first is not None
    assert second is not None
    assert first.codelet == second.codelet
    assert first.words != second.words


@pytest.mark.parametrize("seed", range(25))
def test_random_tasks(seed: int) -> None:
    """Up to four axes in any order, strides with gaps, broadcasts, three inputs of different types."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    extents = tuple(int(n) for n in rng.integers(1, 6, rank))
    reduction = tuple(a for a in range(rank) if rng.random() < 0.4)
    dtype = str(rng.choice(["f32", "f16", "i32", "i8"]))

    def strides(axes: tuple[int, ...]) -> AxisSizes:
        found = [0] * rank
        step: int = int(rng.integers(1, 3))
        for a in (int(n) for n in rng.permutation(rank)):
            if a in axes:
                found[a] = step
                step *= extents[a] + int(rng.integers(0, 2))
        return tuple(found)

    everywhere = tuple(range(rank))
    kept = tuple(a for a in everywhere if a not in reduction)
    some = tuple(a for a in everywhere if rng.random() < 0.6)
    opcode = "arith.mulf" if dtype.startswith("f") else "arith.muli"
    body = ScalarFunction(3, (ScalarOp(opcode, (0, 1), dtype), ScalarOp("arith.select", (2, 3, 0), dtype)), 4)
    align = int(rng.choice([2, 4, 8])) if dtype in ("f16", "i8") else 4
    task = Task(extents, (operand(dtype, *strides(everywhere)), operand(dtype, *strides(some)),
                          operand("i1", *strides(everywhere))), operand(dtype, *strides(kept), align=align),
                "sum" if reduction else "none", body, reduction, not reduction or bool(rng.random() < 0.5))  # fmt: skip
    run(task, seed=seed).check(rtol=3e-3, atol=5e-3)


def test_workers_share_no_word() -> None:
    rows = levels(
        Task(
            (3, 7),
            (),
            operand("f16", 8, 1),
            "none",
            ScalarFunction(0, (ScalarOp("const", (), "f16", "0"),), 0),
        )
    )
    assert split(rows, "f16", 8).level is not None
    assert split(rows, "f16", 2).level == 0 or split(rows, "f16", 2).level is None
    assert share_points(7, 2) == 2
    assert share_points(13, 2) == 4


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    tasks = [
        one(f"arith.{opcode}", (dtype, dtype), dtype) for opcode in FLOAT_BINARY for dtype in ("f32", "f16")
    ]
    tasks += [
        one(f"arith.{opcode}", (dtype, dtype), dtype) for opcode in INTEGER_BINARY for dtype in ("i32", "i8")
    ]
    for dtype in ALL_TYPES:
        tasks.append(
            Task((3, 5, 7), (operand(dtype, 70, 14, 2),), operand(dtype, 40, 8, 1), "none", identity())
        )
        if dtype != "i1":
            tasks.append(
                Task((3, 5, 7), (operand(dtype, 40, 8, 1),), operand(dtype, 7, 0, 1), "sum", identity(), (1,))
            )
    for combine in ("prod", "max", "min"):
        row = (operand("f16", 40, 8, 1),)
        tasks.append(Task((3, 5, 7), row, operand("f16", 7, 0, 1), combine, identity(), (1,), initial=False))
    tasks += [gather(True), gather(False, (1, 1, 0))]
    check_cpp_references(
        [(task, found) for task in tasks if (found := LOOPS.compile(task)) is not None], tmp_path
    )


def test_what_a_repeat_block_cannot_count_is_left_to_loops() -> None:
    """Its count has 16 bits; taken modulo that, only the first few elements would be added."""
    n = (1 << 16) + 24
    task = Task(
        (n,), (TaskOperand("i8", (1,), 16, True),), TaskOperand("i8", (0,), 16, True), "sum", identity(), (0,)
    )
    x = np.zeros(n, np.int8)
    x[[0, n // 2, -1]] = 1, 2, 4
    run = run_task(task, compile_task(task), inputs=(x,))
    assert run.found == 1 + 2 + 4
