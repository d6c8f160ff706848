"""The least an operator needs in a model: never more than what it really takes there, and what makes it fit."""

from __future__ import annotations

import numpy as np
import pytest
from support import specs
from support.joint_graphs import GRAPHS, alive_bytes, planning
from support.simulation import plan_of

from t10.chip import load_chip
from t10.core.graph import Graph
from t10.core.schedule import PHASES
from t10.core.tile import OVERREAD_BYTES
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError
from t10.plan import PlanOptions
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.search.operator import plan_operator

CHIP = load_chip("test-16")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: f"{graph.name}{len(graph.operators)}")
def test_no_operator_of_a_plan_takes_less(graph: Graph) -> None:
    made = planning(graph, CHIP)
    for number in range(6):
        plan = made.assembled(made.random_rows(number))
        alive = alive_bytes(plan, CHIP).reshape(-1, len(PHASES)).max(axis=1) - CHIP.shift_buffer_bytes
        least = [
            least_bytes(spec, s.active.plan) for spec, s in zip(graph.operators, plan.operators, strict=True)
        ]
        assert (np.array(least) <= alive).all()
        assert all(n <= s.active.active_bytes for n, s in zip(least, plan.operators, strict=True))


def test_a_result_takes_over_its_operand() -> None:
    spec = specs.map_unary((16, 8), x="x", o="y")
    assert least_bytes(spec, plan_of(spec, (4, 4))) == 4 * 2 * 2


def test_sums_lie_beside_their_result_and_operands_beside_sums() -> None:
    spec = specs.matmul(16, 8, 32)
    # On a core: 4 x 32 and 32 x 2 elements of f16, 4 x 2 sums in f32, 4 x 2 results in f16.
    assert least_bytes(spec, plan_of(spec, (4, 4, 1))) == 2 * (4 * 32 + 32 * 2) + 4 * 4 * 2
    deep = specs.matmul(64, 64, 4)
    assert least_bytes(deep, plan_of(deep, (4, 4, 1))) == 16 * 16 * (4 + 2)


def test_what_fits_with_its_operand_in_place_is_not_refused() -> None:
    """Of 24 KiB on 16 cores each has 1,536 bytes: one operand fits, an operand and a copy do not."""
    spec = specs.map_unary((96, 128), x="x", o="y")
    least = CHIP.reserved_bytes + CHIP.shift_buffer_bytes + 1536 + OVERREAD_BYTES
    options = PlanOptions()
    for sram_bytes in (least, 2 * least):
        chip = CHIP.model_copy(update={"sram_bytes": sram_bytes})
        front = plan_operator(spec, chip, IpuCostModel(chip), options)
        assert {priced.plan.n_cores for priced in front} == {16}
    small = CHIP.model_copy(update={"sram_bytes": least - 16})
    with pytest.raises(InfeasiblePlanError, match="needs at least 1,536 bytes per core, 1,520 are available"):
        plan_operator(spec, small, IpuCostModel(small), options)
