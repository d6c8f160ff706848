"""Evaluating many candidates at once gives the closed forms of each of them."""

from __future__ import annotations

from itertools import permutations
from math import prod

import numpy as np
import pytest
from support import specs
from support.run_costs import RowByRow

from t10.chip import load_chip
from t10.core import geometry
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.plan import OperatorPlan
from t10.cost import CostModel, IpuCostModel, operator_cycles
from t10.cost.operator import output_chunk
from t10.plan.memory.allocation import aligned_size
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate, nest_shift_cycles
from t10.plan.search.placement import place
from t10.plan.search.space import operator_partitions
from t10.plan.search.temporal import TemporalSpace

MODELS = (IpuCostModel(load_chip("test-64")), RowByRow(load_chip("test-64")))
KINDS = (
    specs.matmul(48, 40, 36),
    specs.linear_relu(48, 40, 36, "f32"),
    specs.bmm(4, 12, 12, 8),
    specs.conv2d(2, 8, 12, 12, 8, 3, 3, pad=1),
    specs.max_pool2d(1, 8, 7, 7, 3, pad=1),
    specs.row_reduce(24, 36, "sum"),
    specs.gather(24, 16, 40),
    specs.elementwise((24, 36), b_axes=(1,)),
)


def bytes_by_definition(spec: OperatorSpec, plan: OperatorPlan) -> int:
    """Add up the buffers of an operator one by one."""
    total = 0
    n_inputs = len(spec.inputs)
    for number, operand in enumerate(spec.operands):
        lengths = geometry.window_lengths(plan, min(number, n_inputs))
        total += aligned_size(prod(geometry.partition_shape(operand, lengths)) * size_bytes(operand.dtype))
    n_out = prod(geometry.partition_shape(spec.output, geometry.window_lengths(plan, n_inputs)))
    members, chunk = output_chunk(spec, plan)
    total += aligned_size(n_out * size_bytes(spec.acc_dtype))
    if spec.acc_dtype != spec.output.dtype or members > 1:
        total += aligned_size(chunk * size_bytes(spec.output.dtype))
    return total


def test_shifts_take_the_least_of_all_orders_of_loops() -> None:
    rng = np.random.default_rng(5)
    steps, advance = rng.integers(1, 6, (60, 4)), rng.integers(0, 900, (60, 4))
    found = nest_shift_cycles(steps, advance)
    for row in range(len(steps)):
        n, cycles = steps[row].tolist(), advance[row].tolist()
        least = min(
            sum(
                (n[axis] - 1) * cycles[axis] * prod(n[a] for a in order[:place])
                for place, axis in enumerate(order)
            )
            for order in permutations(range(4))
        )
        assert found[row] == least


@pytest.mark.sampled(10)
@pytest.mark.parametrize("cost", MODELS, ids=lambda cost: cost.name)
@pytest.mark.parametrize("spec", KINDS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("seed", [7, 8])
def test_arrays_equal_the_closed_forms_of_every_candidate(
    spec: OperatorSpec, cost: CostModel, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = operator_partitions(spec, 64, parallelism=0.5, padding=0.8)
    f_op: list[tuple[int, ...]] = []
    ft: list[tuple[tuple[int, ...], ...]] = []
    for row in rows[rng.permutation(len(rows))[:20]].tolist():
        combined = TemporalSpace.of(spec).partitions(tuple(row), 0.8)
        for chosen in combined[rng.permutation(len(combined))[:6]].tolist():
            f_op.append(tuple(row))
            ft.append(tuple(tuple(t) for t in chosen))
    priced = evaluate(spec, cost, np.array(f_op, np.int64), np.array(ft, np.int64))
    n_compared = 0
    for number, (f, t) in enumerate(zip(f_op, ft, strict=True)):
        plan = place(spec, f, t, align_pace(spec, f, t))
        if plan is None:
            continue
        n_compared += 1
        cycles = operator_cycles(cost, spec, plan)
        arrays = (priced.compute[number], priced.shift[number], priced.reduce[number])
        assert arrays == (cycles.compute, cycles.shift, cycles.reduce)
        assert priced.active_bytes[number] == bytes_by_definition(spec, plan)
    assert n_compared >= 10
