"""Elementwise codelets on the simulator: every operation and type, ragged, misaligned, broadcast, in place, random."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from support import codelet_runs
from support.codelet_runs import END, FIRST_DATA, Run, run_task
from support.cpp_reference_runs import check_cpp_references
from support.vector_tasks import RandomTask, dense_task, elementwise

from t10.codelets.compile import compile_task
from t10.codelets.count import counted_cycles, cycles_of
from t10.codelets.vector.family import VectorFamily
from t10.core.codelet import Compiled
from t10.core.dtypes import numpy_dtype
from t10.core.intervals import WIDE_DTYPES
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

N, N_RANDOM = 27, 250
FLOATS = ("f16", "f32")
INTEGERS = ("i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "index")
EXACT_BINARY = ("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf", "arith.minimumf",
                "arith.maxnumf", "arith.minnumf", "math.copysign")  # fmt: skip
EXACT_UNARY = ("arith.negf", "math.absf", "math.sqrt", "math.floor", "math.ceil", "math.trunc", "math.round",
               "math.roundeven")  # fmt: skip
UNARY = ("math.exp", "math.exp2", "math.expm1", "math.log", "math.log2", "math.log10", "math.log1p", "math.rsqrt",
         "math.cbrt", "math.erf", "math.erfc", "math.sin", "math.cos", "math.tan", "math.asin", "math.atan",
         "math.sinh", "math.cosh", "math.tanh")  # fmt: skip
POSITIVE = frozenset({"math.log", "math.log2", "math.log10", "math.sqrt", "math.rsqrt"})
INSIDE_ONE = frozenset({"math.asin", "math.log1p"})
PREDICATES = [
    "true",
    "false",
    "ord",
    "uno",
    "oeq",
    "one",
    "ogt",
    "oge",
    "olt",
    "ole",
    "ueq",
    "une",
    "ugt",
    "uge",
    "ult",
    "ule",
]
TOLERANCE = {"f16": 2e-3, "f32": 3e-6}
ALL_APART = frozenset({(0, 1), (0, 2), (1, 2)})


def compiled(task: Task) -> Compiled:
    """Return vector code, or what computes integers of 64 bits that are not proved to fit in words."""
    if any(operand.dtype in WIDE_DTYPES for operand in task.operands):
        return compile_task(task)
    made = VectorFamily().compile(task)
    assert made is not None
    return made


def run(task: Task, **options: Any) -> Run:
    return run_task(task, compiled(task), **options)


def values(dtype: str, seed: int = 1, n: int = N) -> NDArray[Any]:
    return np.random.default_rng(seed).standard_normal(n).astype(numpy_dtype(dtype))


def with_specials(dtype: str, seed: int) -> NDArray[Any]:
    """Return small whole numbers, equal ones among them, with NaNs and infinities where others have them or not."""
    x = np.random.default_rng(seed).integers(-2, 3, N).astype(numpy_dtype(dtype))
    x[[1, 2 + seed, 9]], x[5], x[3 * seed] = np.nan, np.inf, -np.inf
    return x


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", EXACT_BINARY)
def test_binary_operations_are_numpys_bit_by_bit(opcode: str, dtype: str) -> None:
    run(elementwise(opcode, [dtype] * 3, N)).check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", [o for o in EXACT_BINARY if "max" in o or "min" in o])
def test_extremes_treat_nans_as_numpy_does(opcode: str, dtype: str) -> None:
    run(
        elementwise(opcode, [dtype] * 3, N), inputs=[with_specials(dtype, 1), with_specials(dtype, 2)]
    ).check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "limits", [("min", 0.0), ("max", 0.0), ("min", 1.0, "max", -1.0), ("max", 0.0, "min", 1.0)]
)
def test_limits_leave_nans_as_they_are(limits: tuple[str | float, ...], dtype: str) -> None:
    ops: list[ScalarOp] = []
    for kind, limit in zip(limits[::2], limits[1::2], strict=True):
        ops.append(ScalarOp("const", (), dtype, str(limit)))
        ops.append(ScalarOp(f"arith.{kind}imumf", (len(ops) - 1, len(ops)), dtype))
    x = TaskOperand(dtype, (1,))
    task = Task((N,), (x,), x, "none", ScalarFunction(1, tuple(ops), len(ops)))
    made = run(task, inputs=[with_specials(dtype, 1)])
    made.check()
    assert np.isnan(made.found).sum() == 2


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", EXACT_UNARY + UNARY)
def test_functions(opcode: str, dtype: str) -> None:
    x = values(dtype)
    if opcode in POSITIVE:
        x = np.abs(x)
    if opcode in INSIDE_ONE:
        x = np.clip(x, -0.95, 0.95)
    tolerance = 0.0 if opcode in EXACT_UNARY else TOLERANCE[dtype]
    run(elementwise(opcode, [dtype] * 2, N), inputs=[x]).check(rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_of_floats(predicate: str, dtype: str) -> None:
    task = elementwise("arith.cmpf", [dtype, dtype, "i1"], N, predicate)
    run(task, inputs=[with_specials(dtype, 1), with_specials(dtype, 2)]).check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", ["math.isnan", "math.isinf", "math.isfinite"])
def test_classes_of_floats(opcode: str, dtype: str) -> None:
    run(elementwise(opcode, [dtype, "i1"], N), inputs=[with_specials(dtype, 1)]).check()


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "i1"])
def test_selects_fills_and_copies(dtype: str) -> None:
    if dtype != "i1":
        run(elementwise("arith.select", ["i1", dtype, dtype, dtype], N)).check()
    operand = TaskOperand(dtype, (1,))
    run(Task((N,), (operand,), operand, "none", identity())).check()
    text = "True" if dtype == "i1" else "2.5" if dtype in FLOATS else "7"
    fill = ScalarFunction(0, (ScalarOp("const", (), dtype, text),), 0)
    run(Task((N,), (), operand, "none", fill)).check()


@pytest.mark.parametrize("dtype", [*INTEGERS, "i1"])
@pytest.mark.parametrize(
    "opcode",
    [
        f"arith.{o}"
        for o in [
            "addi",
            "subi",
            "muli",
            "andi",
            "ori",
            "xori",
            "maxsi",
            "minsi",
            "maxui",
            "minui",
            "shli",
            "shrsi",
            "shrui",
        ]
    ],
)
def test_integers_wrap(opcode: str, dtype: str) -> None:
    is_signed_only = opcode.endswith("si") and (dtype.startswith("u") or dtype == "i1")
    is_truth = dtype == "i1" and opcode[6:] in ("maxui", "minui", "shli", "shrui")
    if is_signed_only or is_truth:
        return
    kind, rng = numpy_dtype(dtype), np.random.default_rng(3)
    # Words with a sign extension above them are what 64-bit integers may be.
    low = 0 if opcode == "arith.shrui" or dtype.startswith("u") else -100
    x = rng.integers(low, 100, N).astype(kind)
    y = (
        rng.integers(0, 7, N).astype(kind)
        if "sh" in opcode
        else rng.integers(max(low, -100), 100, N).astype(kind)
    )
    run(elementwise(opcode, [dtype] * 3, N), inputs=[x, y]).check()


@pytest.mark.parametrize("dtype", [*INTEGERS, "i1"])
@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"])
def test_comparisons_of_integers(predicate: str, dtype: str) -> None:
    if not (dtype.startswith("u") and predicate[0] == "s"):
        run(elementwise("arith.cmpi", [dtype, dtype, "i1"], N, predicate)).check()


def without_sign(dtype: str, rng: np.random.Generator, most_bits: int = 32) -> NDArray[Any]:
    """Return any numbers of a type without sign; of 64 bits only those whose upper word is their sign extension."""
    kind = numpy_dtype(dtype)
    n_bits = 1 if dtype == "i1" else 31 if kind.itemsize == 8 else 8 * kind.itemsize
    return rng.integers(0, 1 << min(n_bits, most_bits), N).astype(kind)


@pytest.mark.parametrize("target", FLOATS)
@pytest.mark.parametrize("dtype", [*INTEGERS, "i1"])
def test_casts_between_integers_and_floats(dtype: str, target: str) -> None:
    rng = np.random.default_rng(4)
    run(elementwise("arith.sitofp", [dtype, target], N)).check()
    run(
        elementwise("arith.uitofp", [dtype, target], N),
        inputs=[without_sign(dtype, rng, 15 if target == "f16" else 32)],
    ).check()
    x = (rng.standard_normal(N) * (1 if dtype == "i1" else 300)).astype(numpy_dtype(target))
    x[3] = np.nan if dtype != "i1" else 0.5
    run(elementwise("arith.fptosi", [target, dtype], N), inputs=[x]).check()
    run(elementwise("arith.fptoui", [target, dtype], N), inputs=[np.abs(x)]).check()


@pytest.mark.parametrize("dtype", [*INTEGERS, "i1"])
def test_casts_between_integers(dtype: str) -> None:
    sizes = {kind: 0 if kind == "i1" else numpy_dtype(kind).itemsize for kind in (*INTEGERS, "i1")}
    for target, size in sizes.items():
        if size < sizes[dtype]:
            run(elementwise("arith.trunci", [dtype, target], N)).check()
        elif size > sizes[dtype]:
            run(elementwise("arith.extsi", [dtype, target], N)).check()
            x = without_sign(dtype, np.random.default_rng(5), 31 if size == 8 else 32)
            run(elementwise("arith.extui", [dtype, target], N), inputs=[x]).check()


@pytest.mark.parametrize(
    ("source", "target", "opcode"),
    [("f16", "f32", "extf"), ("f32", "f16", "truncf"), ("f32", "i32", "bitcast"), ("i32", "f32", "bitcast"),
     ("f16", "i16", "bitcast"), ("i16", "f16", "bitcast"), ("i64", "index", "index_cast")],
)  # fmt: skip
def test_other_casts(source: str, target: str, opcode: str) -> None:
    run(elementwise(f"arith.{opcode}", [source, target], N)).check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("apart", [frozenset[tuple[int, int]](), ALL_APART])
def test_every_length(dtype: str, apart: frozenset[tuple[int, int]]) -> None:
    for n in (*range(1, 14), 23, 24, 25, 47, 48, 49, 200):
        run(replace(elementwise("arith.addf", [dtype] * 3, n), apart=apart)).check()


@pytest.mark.parametrize("dtype", ["f16", "f32", "i8", "i1"])
def test_any_alignment_of_the_element_will_do(dtype: str) -> None:
    opcode = "arith.addf" if dtype in FLOATS else "arith.xori"
    for align_bytes in (1, 2, 4):
        for n in (1, 2, 5, 12, 31):
            run(elementwise(opcode, [dtype] * 3, n, align_bytes=align_bytes)).check()


def test_operands_apart_of_an_output_in_the_middle_of_a_word() -> None:
    task = elementwise("arith.addf", ["f16"] * 3, 30)
    output = replace(task.output, align_bytes=2)
    run(replace(task, output=output, apart=frozenset({(0, 1)}))).check()


@pytest.mark.parametrize(("rows", "columns"), [(7, 12), (3, 13), (13, 6), (2, 64), (12, 1), (1, 5)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_operands_that_do_not_vary_along_an_axis(rows: int, columns: int, dtype: str) -> None:
    dense = TaskOperand(dtype, (columns, 1))
    body = elementwise("arith.subf", [dtype] * 3, 1).body
    for strides in ((0, 1), (1, 0), (0, 0)):
        for apart in (frozenset[tuple[int, int]](), ALL_APART):
            other = TaskOperand(dtype, strides)
            run(Task((rows, columns), (dense, other), dense, "none", body, apart=apart)).check()
            run(Task((rows, columns), (other, dense), dense, "none", body, apart=apart)).check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_operands_in_another_order(dtype: str) -> None:
    body = elementwise("arith.subf", [dtype] * 3, 1).body
    for rows, columns in ((8, 12), (5, 8), (16, 4)):
        turned, dense = TaskOperand(dtype, (1, rows)), TaskOperand(dtype, (columns, 1))
        run(Task((rows, columns), (turned, dense), dense, "none", body)).check()


@pytest.mark.parametrize("dtype", FLOATS)
def test_results_may_replace_an_operand(dtype: str) -> None:
    for n in (1, 6, 40, 101):
        task = elementwise("arith.mulf", [dtype] * 3, n)
        run(task, in_place=1).check()
        run(replace(task, apart=frozenset({(0, 1), (0, 2)})), in_place=1).check()


@pytest.mark.parametrize("combine", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", [*FLOATS, "i32", "i64"])
def test_accumulation_into_the_output(combine: Any, dtype: str) -> None:
    operand = TaskOperand(dtype, (1,))
    run(Task((N,), (operand,), operand, combine, identity(), initial=False)).check()


def test_indices() -> None:
    ops = (ScalarOp("index", (), "index", "1"), ScalarOp("arith.index_cast", (0,), "i32"),
           ScalarOp("index", (), "index", "0"), ScalarOp("arith.index_cast", (2,), "i32"),
           ScalarOp("arith.muli", (1, 3), "i32"))  # fmt: skip
    body = ScalarFunction(0, ops, 4)
    for extents in ((7, 10), (1, 9), (9, 1)):
        output = TaskOperand("i32", (extents[1], 1))
        run(Task(extents, (), output, "none", body, origin=(5, 3))).check()


@pytest.mark.parametrize("columns", [5, 7, 9])
def test_indices_of_what_is_left_after_the_loop(columns: int) -> None:
    """A pipelined loop has computed the index of the next turn when it ends: elements behind it go on where it was."""
    ops = (ScalarOp("index", (), "index", "1"), ScalarOp("arith.index_cast", (1,), "i32"),
           ScalarOp("arith.sitofp", (2,), "f32"), ScalarOp("arith.divf", (0, 3), "f32"),
           ScalarOp("arith.truncf", (4,), "f16"))  # fmt: skip
    operand, output = TaskOperand("f32", (columns, 1)), TaskOperand("f16", (columns, 1))
    run(Task((3, columns), (operand,), output, "none", ScalarFunction(1, ops, 5), origin=(0, 56))).check()


@pytest.mark.parametrize("extents", [(3, 5), (4, 61), (2, 203), (1, 29)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_indices_along_a_row_go_on_behind_the_pipelined_loop(extents: tuple[int, int], dtype: str) -> None:
    ops = (ScalarOp("index", (), "index", "1"), ScalarOp("arith.index_cast", (1,), "i32"),
           ScalarOp("arith.sitofp", (2,), dtype), ScalarOp("arith.divf", (0, 3), dtype),
           ScalarOp("index", (), "index", "1"), ScalarOp("arith.index_cast", (5,), "i32"),
           ScalarOp("arith.sitofp", (6,), dtype), ScalarOp("arith.addf", (4, 7), dtype))  # fmt: skip
    x, output = (TaskOperand(dtype, (stride, 1)) for stride in (extents[1] + 5, extents[1] + extents[1] % 2))
    run(Task(extents, (x,), output, "none", ScalarFunction(1, ops, 8), origin=(0, 3))).check()


def test_random_bodies_over_random_strides() -> None:
    n_compiled = 0
    for seed in range(N_RANDOM):
        task = RandomTask(seed).task()
        made = VectorFamily().compile(task)
        if made is not None:
            run_task(task, made, seed=seed).check()
            n_compiled += 1
    assert n_compiled >= 0.9 * N_RANDOM


@settings(deadline=None, max_examples=50)
@given(st.integers(1000, 1 << 30))
def test_more_random_bodies(seed: int) -> None:
    task = RandomTask(seed).task()
    made = VectorFamily().compile(task)
    if made is not None:
        run_task(task, made, seed=seed).check()


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    cases: list[tuple[Task, Compiled]] = []
    for seed in range(40):
        task = RandomTask(seed).task()
        made = VectorFamily().compile(task)
        if made is not None:
            cases.append((task, made))
    check_cpp_references(cases, tmp_path)


def loop_of(task: Task) -> list[str]:
    """Return the bundles of the only repeat loop of a task's codelet."""
    text = compiled(task).codelet.assembly
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if "rpt " in line)
    count = re.search(r"rpt \S+, (\d+)", lines[at])
    assert count
    return lines[at + 1 : at + 2 + int(count.group(1))]


def test_operands_in_different_memory_elements_take_one_bundle() -> None:
    for dtype in FLOATS:
        assert len(loop_of(replace(elementwise("arith.addf", [dtype] * 3, 96), apart=ALL_APART))) == 1
        assert len(loop_of(elementwise("arith.addf", [dtype] * 3, 96))) == 3


@pytest.mark.parametrize(
    ("opcode", "dtypes", "bundles"),
    [("math.absf", ["f16"] * 2, 2), ("arith.mulf", ["f16"] * 3, 3), ("arith.extf", ["f16", "f32"], 3),
     ("arith.truncf", ["f32", "f16"], 3), ("math.exp", ["f16"] * 2, 2)],
)  # fmt: skip
def test_loops_are_as_short_as_loads_and_stores_allow(opcode: str, dtypes: list[str], bundles: int) -> None:
    assert len(loop_of(elementwise(opcode, dtypes, 96))) == bundles


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_row_added_to_all_rows_stays_in_registers(dtype: str) -> None:
    body = elementwise("arith.addf", [dtype] * 3, 1).body
    for rows, columns in ((40, 24), (64, 12), (9, 96)):
        dense, row = TaskOperand(dtype, (columns, 1)), TaskOperand(dtype, (0, 1))
        task = Task((rows, columns), (dense, row), dense, "none", body)
        run(task).check()
        run(replace(task, combine="max", initial=False)).check()
    tall = Task(
        (64, 12),
        (TaskOperand(dtype, (12, 1)), TaskOperand(dtype, (0, 1))),
        TaskOperand(dtype, (12, 1)),
        "none",
        body,
    )
    assert len(loop_of(tall)) == 2


@pytest.mark.parametrize("seed", [82, 507, 827, 919, 1202, 1321, 1464, 1468])
def test_no_task_takes_longer_where_more_lies_apart(seed: int) -> None:
    # What is called least assumes that all operands lie apart; placement grants some of it.
    task, rng = dense_task(seed), random.Random(seed)
    pairs = list(combinations(range(len(task.operands)), 2))
    some = [frozenset(pair for pair in pairs if rng.random() < 0.5) for _ in range(4)]
    none = frozenset[tuple[int, int]]()
    least, *cycles = [
        counted_cycles(replace(task, apart=apart)) or 0 for apart in (frozenset(pairs), none, *some)
    ]
    assert 0 < least <= min(cycles)


@pytest.mark.parametrize(("rows", "columns"), [(5, 40), (8, 128), (13, 20), (7, 35), (2, 2)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_workers_may_begin_and_end_within_rows(rows: int, columns: int, dtype: str) -> None:
    body = ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), dtype), ScalarOp("math.tanh", (2,), dtype)), 3)
    length = columns + 4 if dtype == "f32" else (columns + 7) // 4 * 4
    dense, column = TaskOperand(dtype, (length, 1)), TaskOperand(dtype, (1, 0))
    for apart in (frozenset[tuple[int, int]](), ALL_APART):
        task = Task((rows, columns), (dense, column), dense, "none", body, apart=apart)
        run(task).check(rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("outer", [(10,), (7, 2), (5, 3)])
@pytest.mark.parametrize(("dtype", "columns"), [("f16", 3), ("f16", 7), ("i8", 5)])
def test_workers_share_an_outer_axis_around_rows_of_no_whole_words(
    dtype: str, columns: int, outer: tuple[int, ...]
) -> None:
    extents = (*outer, 4, columns)
    around = [prod(extents[axis + 1 :]) for axis in range(len(outer))]
    output = TaskOperand(dtype, (*around, columns, 1))
    row = TaskOperand(dtype, (*(0 for _ in outer), 1, 0))
    column = TaskOperand(dtype, (*around, 0, 1))
    opcode = "arith.addi" if dtype == "i8" else "arith.addf"
    body = ScalarFunction(2, (ScalarOp(opcode, (0, 1), dtype),), 2)
    task = Task(extents, (column, row), output, "none", body)
    run(task).check(rtol=TOLERANCE.get(dtype, 0), atol=TOLERANCE.get(dtype, 0))
    alone = cycles_of(replace(task, extents=(2, *(1 for _ in outer[1:]), 4, columns)))
    whole = cycles_of(task)
    assert alone is not None
    assert whole is not None
    assert whole < alone * prod(outer) / 3


SLACK_BYTES = 64
"""How far past an operand's end may be read."""


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [1, 3, 12, 256])
def test_little_is_read_past_the_end_of_an_operand(
    dtype: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs lie at the end of memory, where an access beyond is a trap."""
    rows = 24
    size = numpy_dtype(dtype).itemsize

    def at_the_end(task: Task, in_place: int | None = None) -> list[int]:
        return [END - SLACK_BYTES - rows * columns * size, FIRST_DATA]

    monkeypatch.setattr(codelet_runs, "place", at_the_end)
    turned = TaskOperand(dtype, (1, columns))
    dense, out = TaskOperand(dtype, (rows, 1)), TaskOperand(dtype, (rows, 1))
    for operand in (turned, dense):
        run(Task((columns, rows), (operand,), out, "none", identity())).check()


def test_tasks_of_one_structure_share_a_codelet() -> None:
    first, second = (compiled(elementwise("arith.addf", ["f16"] * 3, n)) for n in (96, 4096))
    assert first.codelet == second.codelet
    assert first.words != second.words


def test_what_is_not_elementwise_or_f64_is_left_to_others() -> None:
    assert VectorFamily().compile(elementwise("arith.addf", ["f64"] * 3, 8)) is None
    summed = Task((8,), (TaskOperand("f32", (1,)),), TaskOperand("f32", (0,)), "sum", identity(), (0,))
    assert VectorFamily().compile(summed) is None


@pytest.mark.parametrize("extents", [(2, 2, 64), (3, 2, 64), (2, 3, 40)])
def test_a_way_to_share_that_needs_too_many_registers_leaves_another(extents: tuple[int, int, int]) -> None:
    # Seven operands, two axes around the rows: all points shared would need more registers than there are.
    n, rows, columns = extents
    along = (rows * columns, columns, 1)
    strides = [along, (0, columns, 1), (rows, 1, 0), (rows, 1, 0), (0, 0, 1), (0, 0, 1), along]
    dtypes = ("f16", "f16", "f32", "f32", "f16", "f16", "f16")
    ops = (
        ScalarOp("arith.addf", (0, 1), "f16"), ScalarOp("arith.extf", (6,), "f32"),
        ScalarOp("arith.subf", (7, 2), "f32"), ScalarOp("arith.mulf", (8, 3), "f32"),
        ScalarOp("arith.truncf", (9,), "f16"), ScalarOp("arith.mulf", (10, 4), "f16"),
        ScalarOp("arith.addf", (11, 5), "f16"),
    )  # fmt: skip
    *inputs, output = (TaskOperand(dtype, each, 16) for dtype, each in zip(dtypes, strides, strict=True))
    run(Task((n, rows, columns), tuple(inputs), output, "none", ScalarFunction(6, ops, 12))).check()
