"""The cost model against published figures, and against itself: one candidate costs the same alone and among many."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from random import Random

import numpy as np
import pytest
from support import specs
from support.paper_plans import split_sum, three_against_two
from support.random_plans import random_plan
from support.random_specs import random_operator

from t10.chip import ChipSpec, load_chip
from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.loads import Loads
from t10.core.movement import ArrivalCosts, Traffic
from t10.cost import IpuCostModel, operator_cycles
from t10.cost.closed_forms import ClosedForms
from t10.cost.exchange import parts_cycles, phase_cycles
from t10.cost.matrix import worker_cycles
from t10.cost.operator import advance_bytes, home_cycles, n_advances, output_chunk
from t10.cost.vector import (
    OUTPUT_CYCLES,
    SLICE_CYCLES,
    SUPERVISOR_CYCLES,
    WORKER_CYCLES,
    box_cycles,
    gather_cycles,
)
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.plan.verify.rotation import nest_steps
from t10.report.rates import peak_macs, utilisation

CHIP = load_chip("ipu-mk2:shift_buffer_bytes=8192")
"""With the shift buffer of T10, section 4.2."""
COST = IpuCostModel(CHIP)
FORMULAS = IpuCostModel(CHIP.model_copy(update={"matrix_units": CHIP.matrix_units[1:]}))
"""Closed forms: no code is generated for a core without f16 sums."""
ALL = (
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


def test_matrix_engine_takes_four_cycles_per_row_of_a_block() -> None:
    # Measured on hardware: [N, 16] x [16, 16] f16 takes 377 cycles for N = 16 and 8489 for N = 2048 (timing reference
    # section 6). Accumulating in f32 the engine has eight columns, so two passes; both runs are within 3 % of that.
    few, many = (
        FORMULAS.sub_task_cycles(specs.matmul(n, 8, 16), (n, 8, 16)) - CHIP.launch_cycles for n in (512, 2048)
    )
    assert (many - few) / (2048 - 512) == pytest.approx(4, rel=0.01)
    assert many == pytest.approx(8489, rel=0.03)


def test_elementwise_add_is_that_of_poplibs_within_two_percent() -> None:
    spec = specs.elementwise((1, 1024), dtype="f32")
    assert FORMULAS.sub_task_cycles(spec, (1, 1024)) - CHIP.launch_cycles == pytest.approx(1733, rel=0.02)


def test_a_shift_of_32_kib_takes_four_rounds_through_the_buffer() -> None:
    # Per round 90 + 40 + 100 + 8192 / 4 to exchange, 60 + 4 + 8192 / 8 to copy a row back (timing reference, 8).
    assert COST.shift_cycles(32 * 1024) == 4 * (230 + 2048 + 60 + 4 + 1024)
    assert COST.shift_cycles(0) == 0


def test_exchange_pays_sync_latency_bytes_and_fragments() -> None:
    assert COST.exchange_cycles(400, 1, neighbour=True) == 90 + 40 + 100 + 100
    assert COST.exchange_cycles(400, 5, neighbour=False) == 90 + 40 + 170 + 100 + 4 * 2
    assert COST.exchange_cycles(0, 0, neighbour=False) == 0


def test_a_copy_inside_a_core_takes_its_launch_and_eight_bytes_per_cycle() -> None:
    assert COST.copy_cycles(80) == 60 + 10
    assert COST.copy_cycles(0) == 0


def test_reduction_of_chunks_that_fit_together_is_one_phase() -> None:
    spec = specs.matmul(8, 8, 8)
    three_small = COST.reduce_cycles(spec, 4, 1000)
    three_large = COST.reduce_cycles(spec, 4, 8192)
    phase = 90 + 40 + 170 + CHIP.launch_cycles
    assert three_small < phase + 3 * 250 + 3 * 250 * 2
    assert three_large > 3 * phase + 3 * 2048
    assert COST.reduce_cycles(spec, 1, 250) == 0


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: f"{spec.kind}-{spec.inputs[0].dtype}")
def test_one_among_many_costs_what_it_costs_alone(spec: OperatorSpec) -> None:
    boxes = np.array([[max(1, extent // d) for extent in spec.extents] for d in (1, 2, 3, 5)], np.int64)
    many = COST.sub_task_cycles_many(spec, boxes)
    assert many.tolist() == [COST.sub_task_cycles(spec, tuple(box)) for box in boxes.tolist()]
    # Measured prices need not fall with every extent: odd rows take longer than the next even ones.
    assert (np.diff(FORMULAS.sub_task_cycles_many(spec, boxes)) <= 0).all()
    slots = np.array([1, 10, 100, 1000], np.int64)
    runs = np.array([1, 2, 100, 24], np.int64)
    assert COST.epilogue_cycles_many(spec, slots, runs).tolist() == [
        COST.epilogue_cycles(spec, n, run) for n, run in zip((1, 10, 100, 1000), (1, 2, 100, 24), strict=True)
    ]


def test_only_a_ring_shifts_and_that_takes_time() -> None:
    spec = specs.matmul(64, 64, 64)
    whole = ((1, 1, 1),) * 3
    ring = ((1, 1, 4), (1, 1, 1), (1, 1, 1))
    cycles: list[int] = []
    for ft in (whole, ring):
        plan = place(spec, (4, 4, 1), ft, align_pace(spec, (4, 4, 1), ft))
        assert plan is not None
        priced = operator_cycles(COST, spec, plan)
        assert (priced.shift > 0) == (ft is ring)
        cycles.append(priced.total)
    assert cycles[0] < cycles[1]


@pytest.mark.parametrize("seed", range(40))
def test_advances_are_counted_as_the_nest_makes_them(seed: int) -> None:
    rng = Random(seed)
    spec = random_operator(rng)
    plan = random_plan(rng, spec, 24)
    made = Counter(axis for axis, _ in nest_steps(plan))
    for axis in plan.loop_order:
        assert n_advances(plan, axis) == made[axis]
        after = tuple(int(a == axis) for a in range(len(plan.f_op)))
        n_bytes = 0
        for slot, operand in enumerate(spec.rotatable):
            if plan.ft[slot][axis] == 1:
                continue
            lengths = geometry.window_lengths(plan, slot)
            n_elements = prod(geometry.partition_shape(operand, lengths))
            having = [dim for dim in operand.dims if axis in dim.axes]
            if having[0].is_simple and len(having) == 1:
                held = [
                    geometry.dim_indices(having[0], lengths, plan, geometry.window_starts(plan, slot, at))[0]
                    for at in ((0,) * len(after), after)
                ]
                n_elements = n_elements // len(held[0]) * int((held[0] != held[1]).sum())
            elif all(dim.is_simple for dim in having):
                break
            n_bytes += n_elements * size_bytes(spec.acc_dtype if operand is spec.output else operand.dtype)
        else:
            assert advance_bytes(spec, plan, axis) == n_bytes


def test_windows_longer_than_the_pace_pass_on_what_moves() -> None:
    spec, plan = three_against_two()
    size = size_bytes(spec.inputs[0].dtype)
    # Along k two elements move of each of A's two rows, and two of three in each of B's two columns.
    assert advance_bytes(spec, plan, 2) == (2 * 2 + 2 * 2) * size


def test_sums_move_in_their_own_type() -> None:
    spec = specs.matmul(12, 12, 16, "f16")
    ft = ((1, 1, 2), (1, 1, 1), (2, 1, 1))
    plan = place(spec, (1, 2, 2), ft, align_pace(spec, (1, 2, 2), ft))
    assert plan is not None
    assert (advance_bytes(spec, plan, 0), advance_bytes(spec, plan, 2)) == (6 * 6 * 4, 12 * 4 * 2)


def test_only_what_ended_elsewhere_goes_home() -> None:
    spec, plan = three_against_two()
    # A is cut in three along k, two of six elements of its row move; the serpentine ends at the last position.
    n_bytes = advance_bytes(spec, replace(plan, ft=(plan.ft[0], (1, 1, 1), plan.ft[2])), 2)
    assert home_cycles(COST, spec, plan, (0,)) == COST.shift_cycles(n_bytes)
    # Swept twice, it ends where it began.
    twice = replace(plan, steps=(2, 1, 3), loop_order=(0, 2))
    assert home_cycles(COST, spec, twice, (1,)) == 0


def test_partial_sums_end_in_chunks_or_whole() -> None:
    spec, plan = split_sum()
    n_members, n_whole = output_chunk(spec, replace(plan, reduce="all"))
    n_elements = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, len(spec.inputs))))
    assert (n_members > 1, n_whole) == (True, n_elements)
    assert output_chunk(spec, replace(plan, reduce="scatter"))[1] < n_whole


def test_a_phase_takes_its_port_and_the_work_inside_cores() -> None:
    around = CHIP.sync_cycles + CHIP.setup_cycles + CHIP.latency_any_cycles
    # The first fragment's control is part of the set-up, launches of the work inside cores are part of the loads.
    assert phase_cycles(CHIP, Loads(100, 0, 0)) == around + 100 - CHIP.fragment_cycles
    assert phase_cycles(CHIP, Loads(0, 7, 9)) == 7 + 9
    assert phase_cycles(CHIP, Loads(0, 0, 0)) == 0


def test_parts_take_their_words_and_a_fragment_each() -> None:
    around = CHIP.sync_cycles + CHIP.setup_cycles + CHIP.latency_any_cycles
    control, launch = CHIP.fragment_cycles, CHIP.copy_launch_cycles
    assert parts_cycles(CHIP, 8, 3) == around + 3 * (2 + control) - control
    # Six bytes lie in up to three words and are scattered: a row, a cycle per byte and four for the ragged end.
    assert parts_cycles(CHIP, 6, 3) == around + 3 * (3 + control) - control + launch + 4 + 3 * (6 + 4)
    # Of ten bytes eight go as words: what is behind them is a fragment, and scattered.
    assert parts_cycles(CHIP, 10, 1) == around + 4 + control + launch + 4 + 2 + 4
    assert parts_cycles(CHIP, 5, 1) == around + 2 + launch + 4 + 10 + 4


def test_an_arrival_takes_its_busiest_core_and_its_copies() -> None:
    class Plain:
        def exchange_cycles(self, max_bytes: int, fragments: int, *, neighbour: bool) -> int:
            return 1000 * max_bytes + fragments + 100 * neighbour

        def copy_cycles(self, n_bytes: int) -> int:
            return 10 * n_bytes

    sends = Traffic(received_elements=3, sent_elements=5, fragments=2, total_elements=9, copied_elements=4)
    takes = replace(sends, received_elements=7)
    assert ArrivalCosts(Plain()).cycles(sends, 2) == 1000 * 10 + 2 + 10 * 8
    assert ArrivalCosts(Plain()).cycles(takes, 2) == 1000 * 14 + 2 + 10 * 8


def test_chunks_that_do_not_fit_the_buffer_come_in_pieces() -> None:
    spec = specs.matmul(8, 8, 8)
    fits = CHIP.shift_buffer_bytes // 4
    for cost in (COST, FORMULAS):
        whole, rest = (cost.reduce_cycles(spec, 2, 2 * n) for n in (fits, 4))
        # The shortest chunk has most in common with a window of two elements less.
        assert cost.reduce_cycles(spec, 2, 2 * (fits + 4) - 2) == whole + rest


def test_one_core_alone_reduces_nothing() -> None:
    for cost in (COST, FORMULAS):
        assert cost.reduce_cycles(specs.matmul(8, 8, 8), 1, 100) == 0
        assert cost.all_reduce_cycles(specs.matmul(8, 8, 8), 1, 100) == 0
        assert cost.all_reduce_cycles(specs.matmul(8, 8, 8), 2, 100) > 0


def test_workers_take_whole_quads() -> None:
    spec = specs.matmul(8, 8, 8, "f32")
    one = np.ones(1, np.int64)
    few, more, many = (int(ClosedForms(CHIP).combine(spec, one, one * n)[0]) for n in (1, 24, 25))
    assert 0 < few == more < many


@pytest.mark.parametrize(
    ("width_f16", "width_f32", "dtype", "share"),
    [(8, 4, "f16", 2), (8, 4, "f32", 2), (8, 2, "f16", 2), (8, 2, "f32", 1), (32, 32, "f16", 8), (2, 2, "f16", 1 / 2)],
)  # fmt: skip
def test_wider_vectors_take_less_time(width_f16: int, width_f32: int, dtype: str, share: float) -> None:
    chip = CHIP.model_copy(update={"vector_width_f16": width_f16, "vector_width_f32": width_f32})
    fixed = SUPERVISOR_CYCLES + CHIP.n_workers * WORKER_CYCLES
    adding, n = specs.elementwise((64, 768), dtype=dtype), np.array([[64, 768]])
    assert (box_cycles(CHIP, adding, n) - fixed) == share * (box_cycles(chip, adding, n) - fixed)
    one, sums = np.ones(1, np.int64), specs.matmul(8, 8, 8, dtype)
    shares = (share if sums.acc_dtype == dtype else width_f32 / 2) * ClosedForms(chip).combine(
        sums, one, one * 768
    )
    assert ClosedForms(CHIP).combine(sums, one, one * 768) == shares


def test_types_that_are_not_there_do_not_widen_what_is_taken_at_once() -> None:
    adding, few = specs.elementwise((3, 8), dtype="f32"), np.array([[3, 8]])
    cycles = [
        int(box_cycles(CHIP.model_copy(update={"vector_width_f16": width}), adding, few)[0])
        for width in (4, 8, 64)
    ]
    assert len(set(cycles)) == 1


def test_every_output_of_a_reduction_takes_its_time() -> None:
    spec = specs.row_reduce(12, 64, "sum", "f32")
    long, short = (int(box_cycles(CHIP, spec, np.array([box]))[0]) for box in ((1, 768), (12, 64)))
    assert short - long == CHIP.n_workers * OUTPUT_CYCLES


def test_a_gather_copies_no_more_slices_than_it_has_indices() -> None:
    # A box of more padding than table: each of three indices hits once, on a worker of its own.
    spec = specs.gather(3, 8, 30, "f16")
    cycles = int(gather_cycles(CHIP, spec, np.array([[3, 8, 300]]))[0])
    assert cycles == SUPERVISOR_CYCLES + CHIP.n_workers * (WORKER_CYCLES + SLICE_CYCLES + 2 * 2 + 8)


def test_the_matrix_engine_takes_whole_blocks_for_the_busiest_worker() -> None:

    def cycles(rows: int, columns: int) -> int:
        spec = specs.matmul(rows, columns, 64)
        return FORMULAS.sub_task_cycles(spec, (rows, columns, 64))

    n = CHIP.n_workers
    assert cycles(100 * n, 64) < cycles(100 * n + 1, 64) == cycles(100 * n + 2, 64)
    assert cycles(100 * n, 64) < cycles(100 * n, 65) == cycles(100 * n, 66)
    # What is wide is computed as what is long, with the other input streaming.
    assert cycles(16, 4096) == cycles(4096, 16)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("row_cycles", [1, 4, 5, 8, 33, 1_000_000])
def test_no_product_is_faster_than_the_fastest_rate_of_a_core(row_cycles: int, dtype: str) -> None:
    unit = {"in_dtype": dtype, "acc_dtype": "f32", "in_block": 8, "out_block": 8, "load_cycles": 0}
    chip = ChipSpec.model_validate(
        CHIP.model_dump() | {"n_cores": 1, "matrix_units": [unit | {"row_cycles": row_cycles}]}
    )
    for rows in (1, 2, 6, 7, 12, 13, 18, 19, 600):
        spec = specs.matmul(rows, 64, 64, dtype)
        cycles = int(ClosedForms(chip).sub_task(spec, np.array([[rows, 64, 64]]))[0])
        assert spec.n_points <= cycles * peak_macs(chip), rows
        assert (share := utilisation((spec,), cycles, chip)) is not None
        assert share <= 1


@pytest.mark.parametrize(
    ("number", "fixed", "per_row"), [(1, [14, 25, 34, 30], 4), (2, [19, 50, 57, 65], 16)]
)
def test_an_engine_slower_than_an_ipus_takes_longer_for_every_row(
    number: int, fixed: list[int], per_row: int
) -> None:
    # `fixed`: poplibs' cycles of a worker for 0 to 3 rows; for f32 the zeroing of a row takes 8 of `per_row`.
    unit, rows = CHIP.matrix_units[number], np.arange(8)
    known = worker_cycles(unit, rows, is_first=True)
    assert known.tolist() == [*fixed, *(fixed[-1] + per_row * n for n in range(1, 5))]
    slower = unit.model_copy(update={"row_cycles": unit.row_cycles + 100})
    assert (worker_cycles(slower, rows, is_first=True) - known == 100 * rows).all()
