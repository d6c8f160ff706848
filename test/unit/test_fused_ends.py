"""The last additions of a reduction and the epilogue behind them as one: code, numbers, prices; what stays apart."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from pathlib import Path
from random import Random

import numpy as np
import pytest
from support import specs
from support.codelet_runs import run_task
from support.cpp_reference_runs import check_cpp_references
from support.simulation import check_simulators, scheduled

from t10.chip import ChipSpec, load_chip
from t10.codelets.compile import compile_task
from t10.codelets.counter import cycles_where_it_lies
from t10.codelets.reduce.parts import parts
from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, Combine, OperatorSpec
from t10.core.fused_ends import fused_chunks, may_fuse
from t10.core.geometry import partition_shape, window_lengths
from t10.core.plan import OperatorPlan
from t10.core.products import with_unread
from t10.core.program import ReduceMode
from t10.core.scalar import ScalarFunction, ScalarOp, identity
from t10.core.task import Task, TaskOperand
from t10.cost import IpuCostModel, operator_cycles
from t10.cost.counted import CountedSteps
from t10.cost.operator import epilogue_cycles, fused_saving
from t10.emit.lower import lower, lowered_parts
from t10.errors import T10Error
from t10.plan.schedule import as_placed
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.profile.steps import timed

CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)
TOLERANCE = {"f32": 2e-5, "f16": 4e-3}


def chain(
    n_inputs: int, *ops: tuple[str, tuple[int, ...], str] | tuple[str, tuple[int, ...], str, str]
) -> ScalarFunction:
    """A function of operations whose last one is the result."""
    made = tuple(ScalarOp(op[0], op[1], op[2], op[3] if len(op) == 4 else "") for op in ops)
    return ScalarFunction(n_inputs, made, n_inputs + len(made) - 1)


MEAN = chain(1, ("const", (), "f32", "0.125"), ("arith.mulf", (0, 1), "f32"))
ROOT = chain(
    1,
    ("arith.mulf", (0, 0), "f32"),
    ("const", (), "f32", "1e-05"),
    ("arith.addf", (1, 2), "f32"),
    ("math.rsqrt", (3,), "f32"),
)
ROUNDED = chain(1, ("arith.truncf", (0,), "f16"))
WIDE_BIAS = chain(
    2, ("arith.extf", (1,), "f32"), ("arith.addf", (0, 2), "f32"), ("arith.truncf", (3,), "f16")
)
BIAS = chain(2, ("arith.addf", (0, 1), "f16"))
RELU = chain(2, ("arith.addf", (0, 1), "f16"), ("const", (), "f16", "0.0"), ("arith.maximumf", (2, 3), "f16"))
SCALED = chain(3, ("arith.mulf", (0, 1), "f32"), ("arith.addf", (3, 2), "f32"))
ENDS: tuple[tuple[str, str, str, ScalarFunction], ...] = (
    ("f32", "f32", "", identity()),
    ("f16", "f16", "", identity()),
    ("f32", "f32", "", MEAN),
    ("f32", "f32", "", ROOT),
    ("f32", "f16", "", ROUNDED),
    ("f32", "f16", "f16", WIDE_BIAS),
    ("f16", "f16", "f16", BIAS),
    ("f16", "f16", "f16", RELU),
    ("f32", "f32", "f32", SCALED),
)
"""Types of parts, results and further inputs, and what is computed of a sum."""


def task_of(rng: Random, end: tuple[str, str, str, ScalarFunction]) -> Task:
    """Return a sum of parts with an epilogue, of operands that lie somehow."""
    acc, out, other, function = end
    n_parts, columns = rng.choice((2, 3, 5, 10, 31, 40)), rng.choice((1, 2, 4, 7, 8, 12, 22, 52, 96, 130))
    unit = 16 // np.dtype({"f16": "f2", "f32": "f4"}[acc]).itemsize
    stride = 1 if columns == 1 else -(-columns // unit) * unit
    is_wide, has_first = rng.random() < 0.7, rng.random() < 0.7
    align = rng.choice((8, 16))
    inputs = [TaskOperand(acc, (stride, 1), 16, is_wide)]
    inputs += [TaskOperand(acc, (0, 1), align, is_wide)] * has_first
    inputs += [TaskOperand(other, (0, rng.choice((0, 1))), align) for _ in range(function.n_inputs - 1)]
    combine: Combine = "sum" if function.ops or rng.random() < 0.7 else "max"
    n = len(inputs)
    apart = frozenset((i, j) for i in range(n + 1) for j in range(i + 1, n + 1) if rng.random() < 0.7)
    return Task(
        (n_parts, columns),
        tuple(inputs),
        TaskOperand(out, (0, 1), align),
        combine,
        with_unread(identity(), n - 1),
        (0,),
        apart=apart,
        first=1 if has_first else None,
        epilogue=function,
    )


@pytest.mark.parametrize("end", ENDS, ids=lambda end: f"{end[0]}-{end[1]}-{len(end[3].ops)}")
@pytest.mark.parametrize("seed", range(12))
def test_epilogues_behind_sums_are_right_and_counted(
    seed: int, end: tuple[str, str, str, ScalarFunction]
) -> None:
    task = task_of(Random(f"{seed} {end}"), end)
    code = compile_task(task)
    run = run_task(task, code, seed=seed)
    tolerance = max(TOLERANCE[end[0]], TOLERANCE[end[1]])
    run.check(rtol=tolerance, atol=4 * tolerance)
    places = [operand.align_bytes for operand in task.operands]
    assert min(places) < 8 or run.cycles == cycles_where_it_lies(task, code)


def rows_of(rng: Random, end: tuple[str, str, str, ScalarFunction]) -> Task:
    """Return a sum of parts that has rows, with an epilogue that reads the same for all of them."""
    acc, out, other, function = end
    lanes = 16 // np.dtype({"f16": "f2", "f32": "f4"}[acc]).itemsize
    n_parts, n_rows = rng.choice((2, 5, 33, 64)), rng.choice((2, 3, 7, 12))
    columns = lanes * rng.choice((1, 2, 3, 6, 6, 4))
    inputs = [TaskOperand(acc, (n_rows * columns, columns, 1), 16, is_interleaved=True)]
    has_first = rng.random() < 0.5
    inputs += [TaskOperand(acc, (0, columns, 1), 16, rng.random() < 0.5)] * has_first
    walks = [(0, 0, 1), *([rng.choice(((0, 0, 1), (0, columns, 1), (0, 0, 0)))] * (function.n_inputs - 2))]
    inputs += [TaskOperand(other, walk, 16) for walk in walks]
    return Task(
        (n_parts, n_rows, columns),
        tuple(inputs),
        TaskOperand(out, (0, columns, 1), 16),
        "sum",
        with_unread(identity(), len(inputs) - 1),
        (0,),
        first=1 if has_first else None,
        epilogue=function,
    )


BIASED = [end for end in ENDS if end[3].n_inputs > 1]


@pytest.mark.parametrize("end", BIASED, ids=lambda end: f"{end[0]}-{end[1]}-{len(end[3].ops)}")
@pytest.mark.parametrize("seed", range(12))
def test_rows_of_sums_may_have_a_bias_each(seed: int, end: tuple[str, str, str, ScalarFunction]) -> None:
    task = rows_of(Random(f"rows {seed} {end}"), end)
    lanes = 16 // np.dtype({"f16": "f2", "f32": "f4"}[end[0]]).itemsize
    codes = parts(task)
    # Six vectors are no whole number of rows of four; two vectors beside sums in f32 are too many for the registers.
    if task.extents[2] == 4 * lanes:
        assert not codes
    elif end[3].n_inputs == 2:
        assert codes
    tolerance = max(TOLERANCE[end[0]], TOLERANCE[end[1]])
    for code in (*codes, compile_task(task)):
        run = run_task(task, code, seed=seed)
        run.check(rtol=tolerance, atol=4 * tolerance)
        assert run.cycles == cycles_where_it_lies(task, code)


def test_what_a_machine_computes_of_rows_without_the_assembly(tmp_path: Path) -> None:
    tasks = [rows_of(Random(f"reference {seed} {end}"), end) for end in BIASED for seed in range(6)]
    check_cpp_references([(task, code) for task in tasks for code in parts(task)[:1]], tmp_path)


def test_what_a_machine_without_the_assembly_computes(tmp_path: Path) -> None:
    tasks = [task_of(Random(f"reference {seed} {end}"), end) for end in ENDS for seed in range(5)]
    check_cpp_references([(task, compile_task(task)) for task in tasks], tmp_path)


def test_a_task_with_an_epilogue_begins_and_takes_its_parts_as_they_are() -> None:
    part, out = TaskOperand("f32", (1, 1)), TaskOperand("f32", (0, 1))
    with pytest.raises(T10Error, match="epilogue"):
        Task((2, 2), (part,), out, "sum", identity(), (0,), initial=False, epilogue=MEAN)
    with pytest.raises(T10Error, match="epilogue"):
        Task((2, 2), (part,), out, "sum", MEAN, (0,), epilogue=MEAN)


def planned(spec: OperatorSpec, f_op: AxisSizes, mode: ReduceMode) -> OperatorPlan:
    """Return a plan that cuts an operator like this and rotates nothing."""
    ft = ((1,) * len(f_op),) * len(spec.rotatable)
    plan = place(spec, f_op, ft, align_pace(spec, f_op, ft))
    assert plan is not None
    return replace(plan, reduce=mode)


def biased(m: int, n: int, k: int, dtype: str = "f16", acc: str = "f32") -> OperatorSpec:
    return replace(specs.linear_relu(m, n, k, dtype), acc_dtype=acc)


OPERATORS: dict[str, tuple[OperatorSpec, AxisSizes]] = {
    "pairs": (specs.linear_relu(24, 16, 60), (4, 2, 2)),
    "threes": (specs.linear_relu(24, 16, 60), (2, 1, 3)),
    "eights": (specs.linear_relu(16, 32, 64), (2, 1, 8)),
    "copied": (specs.matmul(32, 24, 64, "f32"), (1, 1, 8)),
    "rounded": (specs.matmul(32, 24, 64), (1, 1, 16)),
    "points": (specs.row_reduce(2, 64, "sum"), (1, 16)),
    "extremes": (specs.row_reduce(24, 60, "max"), (1, 12)),
    "odd": (specs.linear_relu(3, 5, 48), (1, 1, 5)),
}


@pytest.mark.parametrize("mode", ["scatter", "all"])
@pytest.mark.parametrize("name", OPERATORS)
def test_an_end_that_adds_takes_its_price_and_is_right(name: str, mode: ReduceMode) -> None:
    """Each statement takes what it is priced at: the additions have left the reduction for the epilogue."""
    spec, f_op = OPERATORS[name]
    plan = planned(spec, f_op, mode)
    module = as_placed(scheduled(specs.one_operator_graph(spec), (plan,), CHIP), CHIP, COST)
    took = timed(lowered_parts(module, CHIP, COST), module, CHIP)[spec.name]
    kinds = [type(statement).__name__ for statement in module.operators[0].body]
    cycles = module.operators[0].active.cycles
    by_kind = {kind: sum(n for k, n in zip(kinds, took, strict=True) if k == kind) for kind in set(kinds)}
    assert by_kind["Reduce"] == cycles.reduce
    steps = ("Fill", "SubTask", "Epilogue")
    assert sum(by_kind.get(kind, 0) for kind in steps) == cycles.compute
    sets = {each.kind for each in lower(module, CHIP, COST).compute_sets}
    assert ("combine" in sets) == (fused_saving(COST, spec, plan) == 0)
    check_simulators(module, CHIP, low=-4)


def test_most_ends_of_split_sums_add() -> None:
    fused = [
        fused_saving(COST, spec, planned(spec, f_op, mode)) > 0
        for spec, f_op in OPERATORS.values()
        for mode in ("scatter", "all")
    ]
    assert sum(fused) > len(fused) / 2


@pytest.mark.parametrize("name", OPERATORS)
def test_an_end_adds_where_that_is_cheaper(name: str) -> None:
    spec, f_op = OPERATORS[name]
    plan = planned(spec, f_op, "scatter")
    together = operator_cycles(COST, spec, plan)
    apart = operator_cycles(_Apart(CHIP), spec, plan)
    saved = fused_saving(COST, spec, plan)
    assert (saved == 0) == (together == apart)
    assert together.total < apart.total or saved == 0
    assert apart.reduce == together.reduce + saved


class _Apart(IpuCostModel):
    """The model of ends that never add: sums of several cores are taken to stay apart from what follows."""

    def end_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        rows = [(n, *row) for n, row in zip(n_members.tolist(), windows.tolist(), strict=True)]
        return (
            np.array([CountedSteps(self.chip).end_apart(spec, row) for row in rows]) + self.chip.launch_cycles
        )

    def fused_cycles_many(self, spec: OperatorSpec, windows: Ints, n_members: Ints) -> Ints:
        return np.zeros_like(n_members)


def test_what_is_combined_in_several_pieces_or_asks_where_it_is_stays_apart() -> None:
    spec, f_op = OPERATORS["eights"]
    windows = window_lengths(planned(spec, f_op, "scatter"), 2)
    n_slots = prod(partition_shape(spec.output, windows))
    chunk = -(-n_slots // f_op[2])
    cases: tuple[tuple[ReduceMode, int], ...] = (("scatter", chunk), ("all", n_slots * f_op[2]))
    for mode, n in cases:
        assert fused_chunks(spec, windows, mode, f_op[2], n) is not None
        assert fused_chunks(spec, windows, mode, f_op[2], n - 1) is None
    index = (ScalarOp("index", (), "index", "0"), ScalarOp("arith.index_cast", (1,), "i32"))
    asks = ScalarFunction(
        1, (*index, ScalarOp("arith.sitofp", (2,), "f32"), ScalarOp("arith.addf", (0, 3), "f32")), 4
    )
    assert may_fuse(replace(spec, epilogue=MEAN, epilogue_inputs=()))
    assert not may_fuse(replace(spec, epilogue=asks, epilogue_inputs=()))
    assert not may_fuse(
        replace(spec, acc_dtype="i32", output=replace(spec.output, dtype="i32"), epilogue=None)
    )


def test_several_rounds_are_added_up_by_the_last() -> None:
    """Of chunks whose parts come in several phases the last phase's parts go to the epilogue."""
    spec, f_op = specs.linear_relu(16, 32, 64), (1, 1, 16)
    chip: ChipSpec = CHIP.model_copy(update={"shift_buffer_bytes": 1024})
    cost = IpuCostModel(chip)
    plan = planned(spec, f_op, "scatter")
    assert fused_saving(cost, spec, plan) > 0
    module = scheduled(specs.one_operator_graph(spec), (plan,), chip)
    program = lower(module, chip, cost)
    kinds = [each.kind for each in program.compute_sets]
    assert kinds.count("combine") == 1
    assert epilogue_cycles(cost, spec, plan) > 0
    check_simulators(module, chip, low=-4)
