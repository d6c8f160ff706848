"""Random plans lowered, assembled and executed on the instruction-set simulator compute what numpy does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import reference
from support.draw import so_many
from support.random_cases import Case, planned_case, small_case

from t10.codelets.image import assembled
from t10.cost import IpuCostModel
from t10.emit.lower import lower
from t10.sim.device import DeviceResult, run_device

SEEDS = st.integers(0, (1 << 32) - 1)


def check(case: Case) -> DeviceResult:
    """Execute a case; outputs are exact, since operands are small integers."""
    program = lower(case.plan, case.chip, IpuCostModel(case.chip))
    image = assembled(program.codelets, case.chip.tile_memory)
    result = run_device(program, case.chip, image, case.arrays, case.arrays)
    for name, due in reference.run(case.graph, case.arrays).items():
        assert result.outputs[name].dtype == due.dtype
        np.testing.assert_array_equal(result.outputs[name], due)
    return result


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_random_plans(seed: int) -> None:
    check(small_case(seed))


@pytest.mark.slow
@settings(max_examples=so_many(60, 30), deadline=None)
@given(SEEDS)
def test_planned_models(seed: int) -> None:
    check(planned_case(seed))


def test_operators_and_bytes_are_those_of_the_plan() -> None:
    case = small_case(4)
    result = check(case)
    assert [each.name for each in result.operators] == [each.name for each in case.plan.operators]
    assert result.cycles == sum(each.cycles.total for each in result.operators)
