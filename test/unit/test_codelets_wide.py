"""Scalar loops compute integers of 64 bits on two words, and vector code takes only those that are proved to fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.codelet_runs import Run, run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.loops.family import LoopFamily
from t10.codelets.vector.family import VectorFamily
from t10.core.expression import Combine
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand

LOOPS = LoopFamily()
N = 40
EXTREMES = (0, 1, -1, 2, -2, 7, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32 - 1, 2**32, 2**53 + 1, -(2**53) - 1,
            2**63 - 1, -(2**63), 3037000500, -(2**62))  # fmt: skip
BINARY = ("addi", "subi", "muli", "divsi", "floordivsi", "ceildivsi", "remsi", "divui", "remui", "maxsi", "minsi",
          "maxui", "minui", "andi", "ori", "xori")  # fmt: skip
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOATS = (0.0, -0.0, 0.9, -1.5, 3e9, -3e9, 2.0**62, -(2.0**62), 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, np.inf,
          -np.inf, np.nan, 9.1e18, -9.1e18, 1e-40, 4294967296.0, 8388609.0, -16777215.0, 1.8e19)  # fmt: skip


def operand(dtype: str, *strides: int) -> TaskOperand:
    return TaskOperand(dtype, strides, 8)


def one(opcode: str, inputs: tuple[str, ...], dtype: str, attribute: str = "") -> Task:
    """A task of one operation on vectors."""
    op = ScalarOp(opcode, tuple(range(len(inputs))), dtype, attribute)
    return Task((N,), tuple(operand(d, 1) for d in inputs), operand(dtype, 1), "none",
                ScalarFunction(len(inputs), (op,), len(inputs)))  # fmt: skip


def wide(seed: int, *, of_any_size: bool = True) -> NDArray[np.int64]:
    """Extremes, and numbers of every size."""
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [rng.permutation(np.array(EXTREMES, np.int64)), rng.integers(-(2**63), 2**63, N)]
    )[:N]
    return values >> rng.integers(0, 64, N) * (values.size and of_any_size and rng.random(N) < 0.3)


def run(task: Task, **kwargs: object) -> Run:
    compiled = compile_task(task)
    return run_task(task, compiled, **kwargs)  # pyright: ignore[reportArgumentType]: forwarded


@pytest.mark.parametrize("opcode", BINARY)
def test_arithmetic_on_two_words(opcode: str) -> None:
    for seed in range(3):
        x, y = wide(seed), wide(100 + seed)
        run(one(f"arith.{opcode}", ("i64", "i64"), "i64"), inputs=(x, y)).check()


@pytest.mark.parametrize("predicate", PREDICATES)
def test_comparisons_of_two_words(predicate: str) -> None:
    x, y = wide(3), wide(4)
    y[::3] = x[::3]
    y[1::3] = x[1::3] ^ 1
    run(one("arith.cmpi", ("i64", "i64"), "i1", predicate), inputs=(x, y)).check()


@pytest.mark.parametrize("opcode", ["shli", "shrsi", "shrui"])
def test_shifts_of_two_words(opcode: str) -> None:
    for first in (0, 24):
        amounts = np.arange(first, first + N, dtype=np.int64)
        run(one(f"arith.{opcode}", ("i64", "i64"), "i64"), inputs=(wide(5), amounts)).check()


def test_absolute_values_and_selections_of_two_words() -> None:
    run(one("math.absi", ("i64",), "i64"), inputs=(wide(6),)).check()
    condition = np.arange(N) % 3 == 0
    run(one("arith.select", ("i1", "i64", "i64"), "i64"), inputs=(condition, wide(7), wide(8))).check()


@pytest.mark.parametrize("target", ["f32", "f16"])
@pytest.mark.parametrize("opcode", ["sitofp", "uitofp"])
def test_two_words_become_the_nearest_float(opcode: str, target: str) -> None:
    rng = np.random.default_rng(9)
    # Halves of a unit in the last place, and a bit above and below.
    exponents = rng.integers(25, 62, N)
    ties = (
        (np.int64(1) << exponents)
        + (np.int64(1) << (exponents - 24)) * rng.integers(0, 4, N)
        + rng.integers(-1, 2, N)
    )
    for x in (wide(10), ties * rng.choice([-1, 1], N)):
        inside = x if target == "f32" else x % 65504
        run(one(f"arith.{opcode}", ("i64",), target), inputs=(inside,)).check()


@pytest.mark.parametrize("opcode", ["fptosi", "fptoui"])
def test_floats_saturate_as_two_words(opcode: str) -> None:
    rng = np.random.default_rng(11)
    x = np.concatenate([np.array(FLOATS), np.ldexp(rng.standard_normal(N), rng.integers(0, 63, N))])[
        :N
    ].astype(np.float32)
    run(one(f"arith.{opcode}", ("f32",), "i64"), inputs=(x,)).check()


@pytest.mark.parametrize(
    ("opcode", "source", "target"),
    [("arith.extui", "i32", "i64"), ("arith.extsi", "i32", "i64"), ("arith.trunci", "i64", "i32"),
     ("arith.trunci", "i64", "i8"), ("arith.index_cast", "i64", "index")],
)  # fmt: skip
def test_conversions_of_two_words(opcode: str, source: str, target: str) -> None:
    x = wide(12).astype(np.int32) if source == "i32" else wide(12)
    run(one(opcode, (source,), target), inputs=(x,)).check()


@pytest.mark.parametrize("combine", ["sum", "prod", "max", "min", "and", "or"])
@pytest.mark.parametrize("initial", [True, False])
def test_reductions_of_two_words(combine: Combine, initial: bool) -> None:
    task = Task((4, 10), (operand("i64", 10, 1),), operand("i64", 1, 0), combine, identity(), (1,), initial)
    run(task, inputs=(wide(13),)).check()


def test_constants_of_two_words() -> None:
    ops = (ScalarOp("const", (), "i64", str(2**40 + 5)), ScalarOp("arith.subi", (0, 1), "i64"))
    task = Task((N,), (operand("i64", 1),), operand("i64", 1), "none", ScalarFunction(1, ops, 2))
    run(task, inputs=(wide(14),)).check()


def test_products_of_indices_that_leave_a_word() -> None:
    ops = (ScalarOp("index", (), "index", "0"), ScalarOp("arith.muli", (0, 0), "index"))
    task = Task((N,), (), operand("index", 1), "none", ScalarFunction(0, ops, 1), origin=(2**20,))
    run(task).check()


def test_copies_of_two_words_are_vector_code() -> None:
    task = Task((N,), (operand("i64", 1),), operand("i64", 1), "none", identity())
    assert compile_task(task).codelet.name.startswith("Vector")
    run(task, inputs=(wide(15),)).check()


@pytest.mark.parametrize(
    ("ops", "is_vector"),
    [
        ((ScalarOp("arith.trunci", (0,), "i32"),), True),
        ((ScalarOp("arith.addi", (0, 0), "i64"), ScalarOp("arith.trunci", (1,), "i32")), True),
        ((ScalarOp("arith.sitofp", (0,), "f32"),), False),
        ((ScalarOp("arith.maxsi", (0, 0), "i64"),), False),
        ((ScalarOp("arith.addi", (0, 0), "i64"),), False),
        ((ScalarOp("arith.trunci", (0,), "i16"), ScalarOp("arith.extsi", (1,), "i64")), True),
        ((ScalarOp("arith.trunci", (0,), "i16"), ScalarOp("arith.extsi", (1,), "i64"),
          ScalarOp("arith.muli", (2, 2), "i64")), True),
    ],
)  # fmt: skip
def test_vector_code_computes_what_is_proved_to_fit(ops: tuple[ScalarOp, ...], is_vector: bool) -> None:
    body = ScalarFunction(1, ops, len(ops))
    task = Task((N,), (operand("i64", 1),), operand(ops[-1].dtype, 1), "none", body)
    assert (VectorFamily().compile(task) is not None) == is_vector
    run(task, inputs=(wide(16),)).check()


def test_cpp_references_compute_two_words(tmp_path: Path) -> None:
    tasks = [one(f"arith.{opcode}", ("i64", "i64"), "i64") for opcode in BINARY]
    tasks += [
        Task((4, 10), (operand("i64", 10, 1),), operand("i64", 1, 0), combine, identity(), (1,))
        for combine in ("sum", "max", "min")
    ]
    check_cpp_references(
        [(task, found) for task in tasks if (found := LOOPS.compile(task)) is not None], tmp_path
    )
