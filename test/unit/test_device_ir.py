"""Device programs survive IR: what t10-translate reads is what lowering wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.device_ir import plain, through_ir
from support.device_programs import CASES
from support.random_cases import small_case

from t10.cost import IpuCostModel
from t10.emit.lower import lower


@pytest.mark.parametrize("name", CASES)
def test_programs_made_by_hand_survive(name: str) -> None:
    program = CASES[name]().program
    assert plain(through_ir(program)) == plain(program)


@pytest.mark.parametrize("seed", range(12))
def test_lowered_random_plans_survive(seed: int) -> None:
    case = small_case(seed)
    program = lower(case.plan, case.chip, IpuCostModel(case.chip))
    assert plain(through_ir(program)) == plain(program)


def test_a_codelet_in_cpp_stays_one() -> None:
    program = CASES["ring"]().program
    first, *rest = program.codelets
    program = replace(program, codelets=(replace(first, is_cpp=True), *rest))
    assert [codelet.is_cpp for codelet in through_ir(program).codelets] == [True, *(False for _ in rest)]
