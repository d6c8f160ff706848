"""The cost model against published figures, and against itself: one candidate costs the same alone and among many."""

from __future__ import annotations

import numpy as np
import pytest
from support import specs

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost import IpuCostModel, operator_cycles
from t10.cost.fitted import FitTable
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place

CHIP = load_chip("ipu-mk2")
COST = IpuCostModel(CHIP)
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
        COST.sub_task_cycles(specs.matmul(n, 8, 16), (n, 8, 16)) - CHIP.launch_cycles for n in (512, 2048)
    )
    assert (many - few) / (2048 - 512) == pytest.approx(4, rel=0.01)
    assert many == pytest.approx(8489, rel=0.03)


def test_elementwise_add_is_that_of_poplibs_within_two_percent() -> None:
    spec = specs.elementwise((1, 1024), dtype="f32")
    assert COST.sub_task_cycles(spec, (1, 1024)) - CHIP.launch_cycles == pytest.approx(1733, rel=0.02)


def test_a_shift_of_32_kib_takes_four_rounds_through_the_buffer() -> None:
    # Per round 90 + 40 + 100 + 8192 / 4 to exchange and 60 + 8192 / 8 to copy back (timing reference, section 8).
    assert COST.shift_cycles(32 * 1024) == 4 * (230 + 2048 + 60 + 1024)
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
    three_small = COST.reduce_cycles(spec, 4, 1000, 250)
    three_large = COST.reduce_cycles(spec, 4, 8192, 2048)
    phase = 90 + 40 + 170 + CHIP.launch_cycles
    assert three_small < phase + 3 * 250 + 3 * 250 * 2
    assert three_large > 3 * phase + 3 * 2048
    assert COST.reduce_cycles(spec, 1, 1000, 250) == 0


@pytest.mark.parametrize("spec", ALL, ids=lambda spec: f"{spec.kind}-{spec.inputs[0].dtype}")
def test_one_among_many_costs_what_it_costs_alone(spec: OperatorSpec) -> None:
    boxes = np.array([[max(1, extent // d) for extent in spec.extents] for d in (1, 2, 3, 5)], np.int64)
    many = COST.sub_task_cycles_many(spec, boxes)
    assert many.tolist() == [COST.sub_task_cycles(spec, tuple(box)) for box in boxes.tolist()]
    # Measured prices need not fall with every extent: odd rows take longer than the next even ones.
    formulas = IpuCostModel(CHIP, FitTable({}, "none"))
    assert (np.diff(formulas.sub_task_cycles_many(spec, boxes)) <= 0).all()
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
