"""Products that sum in f32, in room of their own, and round their last block to f16: executed, counted, compared."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support.codelet_runs import Run, run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.count import counted_cycles, run_cycles
from t10.codelets.matrix.direct import directs
from t10.codelets.matrix.family import MatrixFamily, compiled, ways
from t10.codelets.matrix.product import products
from t10.core.codelet import Compiled
from t10.core.products import SUMS_BYTES
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task, TaskOperand

FAMILY = MatrixFamily()
ROUNDED_ONCE = 2.0**-10
"""More than half a unit of f16, less than two roundings of a sum to it."""


def product(n_unread: int, result: str) -> ScalarFunction:
    first = 2 + n_unread
    wide = tuple(ScalarOp("arith.extf", (i,), "f32") for i in (0, 1))
    if result == "f16":
        return ScalarFunction(2, (ScalarOp("arith.mulf", (0, 1), "f16"),), 2)
    return ScalarFunction(2 + n_unread, (*wide, ScalarOp("arith.mulf", (first, first + 1), "f32")), first + 2)


def matmul(m: int, n: int, k: int, *, initial: bool = True) -> Task:
    """C[m, n] f16 = A[m, k] B[n, k] with room for sums, everything interleaved and apart."""
    # Room takes no place of its own in a step; here its stride says how large it is.
    room = -(-SUMS_BYTES // (4 * max(k - 1, 1)))
    strides = ((k, 0, 1), (0, k, 1), (0, 0, room), (n, 1, 0))
    operands = [
        TaskOperand(dtype, each, 16, True)
        for dtype, each in zip(("f16", "f16", "f32", "f16"), strides, strict=True)
    ]
    apart = frozenset(combinations(range(4), 2))
    body = product(1, "f32")
    return Task((m, n, k), tuple(operands[:3]), operands[3], "sum", body, (2,), initial=initial, apart=apart)


def convolution(
    h: int, w: int, f: int, kh: int, kw: int, c: int,
    *, stride: int = 1, dilation: int = 1, groups: int = 1, initial: bool = True,
) -> Task:  # fmt: skip
    """O[h, w, g, f] f16 = sum of X[stride h + dilation kh, stride w + dilation kw, g, c] W[g, f, kh, kw, c]."""
    channels, features = c * groups, f * groups
    line = ((w - 1) * stride + (kw - 1) * dilation + 1) * channels
    room = -(-SUMS_BYTES // (4 * max(c - 1, 1)))
    strides = (
        (c, stride * line, stride * channels, 0, dilation * line, dilation * channels, 1),
        (f * kh * kw * c, 0, 0, kh * kw * c, kw * c, c, 1),
        (0, 0, 0, 0, 0, 0, room),
        (f, w * features, features, 1, 0, 0, 0),
    )
    operands = [
        TaskOperand(dtype, each, 16, True)
        for dtype, each in zip(("f16", "f16", "f32", "f16"), strides, strict=True)
    ]
    apart = frozenset(combinations(range(4), 2))
    return Task(
        (groups, h, w, f, kh, kw, c), tuple(operands[:3]), operands[3], "sum", product(1, "f32"), (4, 5, 6),
        initial=initial, apart=apart,
    )  # fmt: skip


def random_convolution(seed: int) -> Task:
    """Return a convolution with windows, strides, dilations and groups of many kinds, its operands anywhere."""
    rng = Random(seed)
    task = convolution(
        rng.choice((1, 2, 3, 5, 7)), rng.choice((1, 4, 7, 9, 14)), 4 * rng.randint(1, 6),
        rng.choice((1, 2, 3)), rng.choice((1, 2, 3)), rng.choice((2, 3, 4, 8, 12, 16, 20, 24, 32)),
        stride=rng.choice((1, 1, 2)), dilation=rng.choice((1, 1, 2)), groups=rng.choice((1, 1, 2)),
        initial=rng.random() < 0.6,
    )  # fmt: skip
    return placed(task, rng) if seed % 2 else task


def placed(task: Task, rng: Random) -> Task:
    """Return the task with operands in other places: not interleaved, not apart, and begun or not."""
    operands = [replace(each, is_interleaved=rng.random() < 0.7) for each in task.operands]
    apart = frozenset(pair for pair in task.apart if rng.random() < 0.8)
    return replace(
        task, inputs=tuple(operands[:-1]), output=operands[-1], apart=apart, initial=rng.random() < 0.7
    )


def check(task: Task, found: Compiled | None, seed: int = 0) -> Run:
    """Run a product: it is rounded once; the vector unit rounds what it adds to what is there as well."""
    assert found is not None
    run = run_task(task, found, seed=seed)
    is_added = not (task.initial or found.codelet.name.startswith("Matrix"))
    run.check(rtol=ROUNDED_ONCE, atol=ROUNDED_ONCE * np.abs(run.expected).max() if is_added else 1e-4)
    return run


@pytest.mark.parametrize("m", [3, 30])
def test_sums_of_one_block_leave_their_room_alone(m: int) -> None:
    task = matmul(m, 8, 16)
    inputs = tuple(replace(each, is_interleaved=False) for each in task.inputs)
    task = replace(task, inputs=inputs, apart=frozenset([(0, 3), (1, 3), (2, 3)]))
    found = FAMILY.compile(task)
    assert found is not None
    assert "_pair_" in found.codelet.name
    check(task, found)


@pytest.mark.parametrize("seed", range(24))
def test_products_are_rounded_once_wherever_operands_lie(seed: int) -> None:
    rng = Random(seed)
    task = matmul(rng.randint(1, 60), 4 * rng.randint(1, 8), 16 * rng.randint(1, 9))
    task = placed(task, rng) if seed % 2 else replace(task, initial=rng.random() < 0.5)
    found = FAMILY.compile(task)
    if found is not None:
        assert found.codelet.name.startswith("Matrix_f16_f32_f16")
        assert check(task, found, seed).cycles > 0
    assert counted_cycles(task) == run_cycles(task)


@pytest.mark.parametrize("initial", [True, False])
@pytest.mark.parametrize("k", [4, 12, 16, 48])
@pytest.mark.parametrize("m", [1, 5, 17, 18, 31])
def test_any_number_of_rows_and_blocks(m: int, k: int, initial: bool) -> None:
    task = matmul(m, 20, k, initial=initial)
    check(task, compile_task(task))


@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(30, 6, 40), (9, 5, 7), (24, 8, 21), (1, 8, 64), (16, 12, 1), (4, 16, 200), (2, 32, 128)],
)
def test_what_the_engine_does_not_take_is_rounded_once_as_well(m: int, n: int, k: int) -> None:
    task = matmul(m, n, k)
    found = compile_task(task)
    # The mode that sums in f16 would take some of them.
    assert not found.codelet.name.startswith("Matrix_f16_f16")
    check(task, found)


def test_transposed_inputs_are_copied() -> None:
    task = matmul(24, 16, 32)
    a, b, room = task.inputs
    for inputs in ((replace(a, strides=(1, 0, 24)), b), (a, replace(b, strides=(0, 1, 16)))):
        one = replace(task, inputs=(*inputs, room))
        check(one, FAMILY.compile(one))


def test_more_rows_than_room_has_sums_for_are_done_in_turn() -> None:
    task = matmul(520, 8, 16)
    found = [product for product in products(task) if product.rows and list(directs(product))]
    assert found
    for each in found:
        assert each.rows[0].extent * min(each.columns.extent, 8) * 4 <= SUMS_BYTES
    check(task, FAMILY.compile(task))


@pytest.mark.parametrize("seed", range(40))
def test_convolutions_are_rounded_once_in_every_way(seed: int) -> None:
    task = random_convolution(seed)
    for way in ways(task):
        check(task, compiled(way), seed)
    check(task, compile_task(task), seed)
    assert counted_cycles(task) == run_cycles(task)


def test_random_convolutions_have_lines_and_windows_of_every_kind() -> None:
    found = [way.structure for seed in range(40) for way in ways(random_convolution(seed))]
    assert {sums for one in found for sums in (each.sums for each in one.passes)} >= {0, 1, 2, 3}
    for has_segments in (True, False):
        kinds = [one for one in found if one.has_segments == has_segments]
        assert {one.begin is None for one in kinds} == {True, False}
        assert {one.has_few for one in kinds} == {True, False}
        assert {one.overlaps for one in kinds} == {True, False}
        assert {one.copies_w for one in kinds} == {True, False}
        assert {one.end for one in kinds} >= {"single", "triple"}


@pytest.mark.parametrize(("h", "w"), [(13, 24), (3, 100), (2, 300), (17, 17)])
def test_more_lines_than_room_has_sums_for_are_done_in_turn(h: int, w: int) -> None:
    task = convolution(h, w, 8, 1, 2, 8)
    found = [product for product in products(task) if list(directs(product))]
    assert found
    for each in found:
        assert each.n_rows * min(each.columns.extent, 8) * 4 <= SUMS_BYTES
        assert prod(loop.extent for loop in (*each.rows, *each.outs)) * each.columns.extent == h * w * 8
    check(task, FAMILY.compile(task))


@pytest.mark.parametrize("words", range(1, 13))
def test_blocks_of_a_sum_are_of_as_many_words(words: int) -> None:
    task = matmul(24, 8, 4 * words)
    kits = {way.structure.kit.words for way in ways(task) if not way.structure.stage}
    assert kits == {max(n for n in range(1, 5) if words % n == 0)}
    check(task, FAMILY.compile(task))


def in_f32(task: Task) -> Task:
    """Return the same product with a result of f32."""
    return replace(
        task,
        inputs=task.inputs[:2],
        output=replace(task.output, dtype="f32"),
        body=product(0, "f32"),
        apart=frozenset(combinations(range(3), 2)),
    )


@pytest.mark.parametrize(
    "task",
    [
        *(matmul(*shape) for shape in ((64, 64, 64), (64, 64, 128), (128, 16, 256))),
        convolution(7, 7, 16, 3, 3, 16),
        convolution(4, 14, 16, 3, 3, 32),
        convolution(4, 14, 16, 7, 7, 3, stride=2),
    ],
)
def test_rounding_costs_no_pass_of_its_own(task: Task) -> None:
    cycles, plain = counted_cycles(task), counted_cycles(in_f32(task))
    assert cycles is not None
    assert plain is not None
    # A pass over the results takes half a cycle each, and a launch.
    assert cycles <= 1.03 * plain


def test_cpp_references_compute_the_same(tmp_path: Path) -> None:
    shapes = ((17, 20, 32), (24, 12, 16), (9, 16, 96))
    tasks = [matmul(*shape, initial=initial) for shape in shapes for initial in (True, False)]
    tasks += [convolution(3, 5, 8, 3, 3, 8, initial=initial) for initial in (True, False)]
    tasks += [convolution(3, 5, 12, 2, 2, 3, stride=2, groups=2), convolution(4, 6, 8, 3, 2, 16, dilation=2)]
    cases = [(task, compile_task(task)) for task in tasks]
    assert all("Matrix_f16_f32_f16" in found.codelet.name for _, found in cases)
    check_cpp_references(cases, tmp_path)
