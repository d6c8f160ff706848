"""The last part of a sum: filled up with zeros, or shorter where that is whole blocks of the matrix engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.random_cases import small_chip
from support.specs import matmul, matmul_in_blocks, one_operator_graph
from test_random_prices import by_kind

from t10.codelets.image import assembled
from t10.core.expression import AffineDim, AxisSizes, OperatorSpec
from t10.core.movement import is_padded
from t10.core.plan import CostedPlan, Cycles
from t10.core.products import zero_padded_axes
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.emit.lower import lower, lowered_parts
from t10.plan.memory.room import DataRoom
from t10.plan.schedule import as_placed, restore_module
from t10.plan.search.alignment import align_pace
from t10.plan.search.placement import place
from t10.profile.steps import timed
from t10.sim.device import run_device
from t10.sim.plan_level import simulate

SUM = 2
"""The axis that a product sums."""

CHIP = small_chip(16)


def planned(spec: OperatorSpec, f_op: AxisSizes, ft: tuple[AxisSizes, ...] | None = None) -> ModulePlan:
    """Return one operator under a plan, placed; nothing rotates unless `ft` says so."""
    factors = ft or ((1,) * len(f_op),) * 3
    plan = place(spec, f_op, factors, align_pace(spec, f_op, factors))
    assert plan is not None
    cost, graph = IpuCostModel(CHIP), one_operator_graph(spec)
    priced = restore_module(graph, CHIP, cost, (CostedPlan(plan, Cycles(), 0, 0),), (0,))
    return as_placed(DataRoom(CHIP)(priced), CHIP, cost)


@pytest.mark.parametrize(
    ("spec", "n_parts", "length", "is_padded"),
    [
        (matmul(6, 16, 1024, "f16"), 11, 96, False),
        (matmul(6, 16, 1000, "f16"), 11, 96, True),
        (matmul(6, 16, 1024, "f16"), 8, 128, False),
        (matmul_in_blocks(6, 16, 1024, "f16"), 11, 6, False),
        (matmul_in_blocks(6, 16, 520, "f32"), 11, 6, False),
    ],
)
def test_a_last_part_of_whole_blocks_is_shorter_and_not_filled_up(
    spec: OperatorSpec, n_parts: int, length: int, is_padded: bool
) -> None:
    module = planned(spec, (1, 1, n_parts, *(1 for _ in spec.axes[SUM + 1 :])))
    (scheduled,) = module.operators
    assert scheduled.active.plan.lengths[SUM] == length
    assert zero_padded_axes(spec, scheduled.active.plan) == ({SUM} if is_padded else set())
    parts = lowered_parts(module, CHIP, IpuCostModel(CHIP))
    assert any(len(each.fills) for each in parts.builder.patterns.values()) == is_padded
    for kind, price, took in by_kind(scheduled, timed(parts, module, CHIP)[spec.name]):
        assert price == took, kind


def test_steps_along_a_sum_go_on_over_zeros() -> None:
    spec = matmul(10, 16, 336, "f16")
    (scheduled,) = planned(spec, (5, 1, 1), ((1, 1, 1), (1, 1, 5), (1, 1, 1))).operators
    assert (scheduled.active.plan.steps[SUM], scheduled.active.plan.lengths[SUM]) == (5, 340)
    assert zero_padded_axes(spec, scheduled.active.plan) == {SUM}


def test_a_dim_of_one_element_asks_for_no_padding() -> None:
    """Rows of the last core that are nobody's are left as they are."""
    spec = matmul(7, 16, 64, "f16")
    plan = planned(spec, (2, 1, 1)).operators[0].active.plan
    one = AffineDim((), 0)
    x = replace(spec.inputs[0], shape=(1, 7, 64), dims=(one, *spec.inputs[0].dims))
    assert plan.lengths[0] * 2 > 7
    for operand in (spec.inputs[0], x):
        with_it = replace(spec, inputs=(operand, *spec.inputs[1:]))
        assert not is_padded(with_it, operand, plan)


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("product", [matmul, matmul_in_blocks])
def test_what_a_shorter_last_part_leaves_in_its_window_is_never_read(
    product: Callable[..., OperatorSpec], dtype: str
) -> None:
    spec = product(6, 16, 1024, dtype)
    module, cost = planned(spec, (1, 1, 11, *(1 for _ in spec.axes[SUM + 1 :]))), IpuCostModel(CHIP)
    rng = np.random.default_rng(5)
    kind = np.float16 if dtype == "f16" else np.float32
    shapes = [tensor.shape for tensor in (*module.graph.inputs, *module.graph.weights)]
    arrays = [rng.integers(-2, 3, shape).astype(kind) for shape in shapes]
    names = [tensor.name for tensor in (*module.graph.inputs, *module.graph.weights)]
    given = dict(zip(names, arrays, strict=True))
    weights = {tensor.name: given[tensor.name] for tensor in module.graph.weights}
    inputs = {tensor.name: given[tensor.name] for tensor in module.graph.inputs}
    program = lower(module, CHIP, cost)
    ran = run_device(program, CHIP, assembled(program.codelets, CHIP.tile_memory), weights, inputs)
    for name, due in simulate(module, CHIP, cost, weights, inputs).outputs.items():
        np.testing.assert_array_equal(ran.outputs[name], due)
