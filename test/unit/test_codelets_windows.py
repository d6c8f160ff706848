"""Depthwise convolutions on the short-window engine: executed, counted, bounded, and compared with numpy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from support import specs
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references

from t10.codelets.compile import compile_task
from t10.codelets.count import counted_cycles, cycles_of, run_cycles
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.matrix.windows import pieces_of, windows
from t10.codelets.reduce.family import ReduceFamily
from t10.core.expression import OperatorSpec
from t10.core.scalar import ScalarOp
from t10.core.task import Task, TaskOperand
from t10.cost.bound.step import sub_task_bound
from t10.cost.bound.windows import IMPOSSIBLE, windows_bound
from t10.cost.work import sub_task

TOLERANCES = {"f32": {"rtol": 1e-4, "atol": 1e-3}, "f16": {"rtol": 1e-2, "atol": 4e-2}}
KERNELS = ((3, 3), (5, 5), (7, 7), (3, 5), (1, 4), (4, 1), (2, 7), (1, 11))


def task_of(rows: int, columns: int, channels: int, kernel: tuple[int, int], **options: Any) -> Task:
    spec = specs.depthwise2d(rows, columns, channels, *kernel, **options)
    return sub_task(spec, (rows, columns, channels, *kernel))


def images(n: int, task: Task, *, swapped: bool = False) -> Task:
    """Several images one after another, the weights first if they are `swapped`."""
    spans = [
        1 + sum(s * (e - 1) for s, e in zip(operand.strides, task.extents, strict=True))
        for operand in task.operands
    ]
    x, w, out = (
        replace(operand, strides=(-(-span // 4) * 4 * is_moved, *operand.strides))
        for operand, span, is_moved in zip(task.operands, spans, (1, 0, 1), strict=True)
    )
    axes = tuple(axis + 1 for axis in task.reduction_axes)
    inputs = (w, x) if swapped else (x, w)
    return replace(task, extents=(n, *task.extents), inputs=inputs, output=out, reduction_axes=axes)


@pytest.mark.parametrize("seed", range(24))
def test_windows_are_right_and_counted(seed: int) -> None:
    rng = Random(seed)
    kernel = KERNELS[seed % len(KERNELS)]
    acc_dtype = rng.choice(("f16", "f32"))
    shape = rng.randint(1, 9), rng.randint(6, 22), 4 * rng.randint(1, 3)
    task = task_of(*shape, kernel, stride=rng.choice((1, 2)), acc_dtype=acc_dtype)
    if seed % 3 == 0:
        task = images(2, task, swapped=seed % 2 == 0)
    found = windows(task)
    assert found or shape[0] < 6
    for code in found:
        run = run_task(task, code, seed=seed)
        run.check(**TOLERANCES[acc_dtype])
        assert run.cycles == cycles_where_it_lies(task, code)
    assert counted_cycles(task) == run_cycles(task)


def test_the_cpp_reference_computes_the_same(tmp_path: Path) -> None:
    tasks = [
        task_of(3, 9, 8, kernel, stride=stride) for kernel in ((3, 3), (5, 5), (2, 7)) for stride in (1, 2)
    ]
    tasks += [task_of(3, 9, 8, (1, 4), stride=stride, acc_dtype="f16") for stride in (1, 2)]
    tasks.append(images(2, task_of(4, 8, 4, (3, 4)), swapped=True))
    check_cpp_references([(task, code) for task in tasks for code in windows(task)], tmp_path)


@pytest.mark.parametrize(
    ("shape", "kernel", "acc_dtype", "rate"),
    [
        ((14, 14, 4), (3, 3), "f32", 1.7),
        ((14, 14, 4), (3, 3), "f16", 2.8),
        ((14, 14, 4), (7, 7), "f32", 2.1),
        ((14, 14, 4), (7, 7), "f16", 3.6),
        ((7, 7, 16), (3, 3), "f16", 1.5),
    ],
)
def test_windows_are_faster_than_sums_of_neighbours(
    shape: tuple[int, int, int], kernel: tuple[int, int], acc_dtype: str, rate: float
) -> None:
    task = task_of(*shape, kernel, acc_dtype=acc_dtype)
    cycles, others = cycles_of(task), ReduceFamily().compile(task)
    assert cycles is not None
    assert others is not None
    assert task.n_points / cycles > rate
    assert 3 * cycles < cycles_where_it_lies(task, others)
    assert "windows" in compile_task(task).codelet.name


def test_an_infinity_reaches_the_channels_beside_it_and_no_others() -> None:
    """Zeros of the diagonal matrices are multiplied, too: sums that read an infinity are NaN in the other channels."""
    task, columns, channels = task_of(4, 9, 8, (3, 3)), 11, 8
    x = np.random.default_rng(0).standard_normal(6 * columns * channels)
    x[(2 * columns + 4) * channels + 1] = np.inf
    run = run_task(task, windows(task)[0], inputs=[x, None])
    is_met = ~np.isfinite(run.expected)
    assert is_met.sum() == is_met[..., 1].sum() == 9
    for channel in (0, 2, 3):
        assert np.array_equal(np.isnan(run.found[..., channel]), is_met[..., 1])
    assert np.array_equal(np.isfinite(run.found[..., 1]), ~is_met[..., 1])
    np.testing.assert_allclose(run.found[..., 4:], run.expected[..., 4:], rtol=1e-4, atol=1e-3)


def restrided(task: Task, number: int, axis: int, stride: int) -> Task:
    """The task with another stride of an operand along an axis."""
    operand = task.operands[number]
    strides = tuple(stride if a == axis else s for a, s in enumerate(operand.strides))
    changed = [replace(operand, strides=strides) if n == number else o for n, o in enumerate(task.operands)]
    return replace(task, inputs=tuple(changed[:-1]), output=changed[-1])


def typed(task: Task, dtype: str) -> Task:
    """The task with inputs of another type."""
    return replace(task, inputs=tuple(TaskOperand(dtype, one.strides, 8) for one in task.inputs))


def deeper(task: Task) -> Task:
    """The task with two images under a window of two planes."""
    x, w = task.inputs
    inputs = replace(x, strides=(*x.strides, 800)), replace(w, strides=(*w.strides, 80))
    output = replace(task.output, strides=(*task.output.strides, 0))
    axes = (*task.reduction_axes, len(task.extents))
    return replace(task, extents=(*task.extents, 2), inputs=inputs, output=output, reduction_axes=axes)


TASK = task_of(6, 9, 8, (3, 3))
ONE_ROW = task_of(6, 9, 8, (1, 3))
ROUNDS = replace(
    TASK.body,
    ops=(*TASK.body.ops, ScalarOp("arith.truncf", (TASK.body.result,), "f16")),
    result=TASK.body.result + 1,
)


@pytest.mark.parametrize(
    "task",
    [
        replace(TASK, initial=False),
        replace(TASK, apart=frozenset[tuple[int, int]]()),
        typed(TASK, "f32"),
        task_of(1, 2, 8, (1, 3)),
        task_of(6, 9, 6, (3, 3)),
        task_of(6, 9, 8, (2, 2)),
        task_of(6, 40, 8, (1, 17)),
        task_of(6, 9, 8, (3, 3), stride=3),
        restrided(TASK, 0, 2, 2),
        restrided(TASK, 1, 4, 9),
        restrided(restrided(ONE_ROW, 0, 3, 16), 0, 1, 24),
        restrided(TASK, 1, 1, 8),
        restrided(ONE_ROW, 2, 1, 4 * 512),
        replace(TASK, inputs=(replace(TASK.inputs[0], align_bytes=4), TASK.inputs[1])),
        replace(TASK, body=ROUNDS),
        deeper(TASK),
        task_of(9, 40, 48, (7, 7)),
    ],
    ids=(
        "adds",
        "together",
        "f32",
        "narrow",
        "channels",
        "short",
        "long",
        "far",
        "apart",
        "odd",
        "between",
        "several",
        "wide",
        "unaligned",
        "rounded",
        "deep",
        "much",
    ),
)
def test_what_is_no_such_window_is_left_alone(task: Task) -> None:
    assert windows(task) == ()


def test_pieces_have_three_or_four_taps() -> None:
    for taps in range(3, 17):
        pieces = pieces_of(taps)
        assert pieces is not None
        assert set(pieces) <= {3, 4}
        assert sum(pieces) == taps + (taps == 5)


def test_all_taps_of_windows_that_move_one_way_may_be_one_row() -> None:
    """Two by two taps on one column of results lie evenly: they are four of a row."""
    for channels in (4, 8, 16):
        spec, box = specs.depthwise2d(56, 1, 96, 2, 2), (24, 1, channels, 2, 2)
        cycles, bound = counted(spec, box), windows_bound(spec, np.array([box]))
        assert bound is not None
        assert cycles is not None
        assert bound[0] <= cycles


def counted(spec: OperatorSpec, box: tuple[int, ...]) -> int | None:
    """What the best code of a box takes on the short-window engine, None where it takes no such box."""
    task = sub_task(spec, box)
    return min((cycles_where_it_lies(task, code) for code in windows(task)), default=None)


def test_no_box_takes_less_than_the_bound() -> None:
    rng, shares = Random(7), list[float]()
    for number in range(240):
        kernel = KERNELS[number % len(KERNELS)]
        stride, acc_dtype = rng.choice((1, 1, 2)), rng.choice(("f16", "f32"))
        spec = specs.depthwise2d(56, 56, 96, *kernel, stride=stride, acc_dtype=acc_dtype)
        box = (rng.randint(1, 14), rng.randint(3, 20), 4 * rng.randint(1, 4), *kernel)
        cycles, bound = counted(spec, box), windows_bound(spec, np.array([box]))
        assert bound is not None
        if cycles is not None:
            assert bound[0] <= cycles
            assert sub_task_bound(spec, np.array([box]))[0] <= cycles
            shares.append(float(bound[0]) / cycles)
    assert len(shares) > 150
    assert np.median(shares) >= 0.75
    assert np.quantile(shares, 0.1) >= 0.6


@pytest.mark.parametrize("box", [(6, 8, 6, 3, 3), (6, 8, 8, 2, 2)], ids=("channels", "window"))
def test_boxes_that_no_code_takes_are_impossible(box: tuple[int, ...]) -> None:
    bound = windows_bound(specs.depthwise2d(56, 56, 96, 3, 3), np.array([box]))
    assert bound is not None
    assert bound[0] == IMPOSSIBLE
