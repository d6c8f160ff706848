"""What a legal plan is: planner, checker and IR verifiers agree (`make small-models` looks at more models)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import specs
from support.agreement import disagreement
from support.draw import drawn
from support.paper_plans import PAPER_PLANS, split_sum, three_against_two
from support.simulation import plan_of
from support.small_models import chip_of, small_model

from t10.core.legal import PlanRows, breaches, expression_of
from t10.core.plan import PhaseTerm
from t10.errors import InfeasiblePlanError
from t10.plan.search.alignment import align_pace
from t10.plan.search.producer_layouts import following_plan
from t10.plan.verify import verify_operator


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*drawn(range(34), 8), *drawn([180, 359], 1)])
def test_a_small_model_is_read_back_proved_and_computes_as_onnxruntime(seed: int, tmp_path: Path) -> None:
    assert disagreement(*small_model(seed), chip_of(seed), tmp_path) is None


@pytest.mark.parametrize("name", sorted(PAPER_PLANS))
def test_plans_of_the_paper_are_legal(name: str) -> None:
    spec, plan = PAPER_PLANS[name]()
    assert list(breaches(PlanRows.of(plan), expression_of(spec), plan.n_cores)) == []


def test_an_operator_does_not_follow_chunks_of_padding() -> None:
    # Sums of 3 rows, two parts of 2 over two cores each: chunk 3 of 4 holds padding only.
    sums = specs.row_reduce(3, 8, "sum")
    made_by = plan_of(sums, (2, 2))
    follower = specs.map_unary((3,))
    assert following_plan(follower, 0, sums, made_by) is None
    with pytest.raises(InfeasiblePlanError, match="cuts extent 3 into more parts than it has elements"):
        align_pace(follower, (4,), ((1,), (1,)))


@pytest.mark.parametrize(
    ("changes", "rule", "sentence"),
    [
        ({"lengths": (2, 2, 12), "rp": (0, 0, 4)}, "lengths", "lengths[2] = 12 pads more than ft needs, expected 6"),
        ({"f_op": (5, 3, 1)}, "parts", "f_op[0] = 5 cuts extent 4 into more parts than it has elements, expected at"),
        ({"reduce": "all"}, "reduce", 'reduce = "all" with 1 replicas of the output, expected none'),
        ({"loop_order": ()}, "loop order", "loop_order = [], expected every rotating axis once, here [2]"),
    ],
)  # fmt: skip
def test_a_breach_is_one_sentence_for_all(changes: dict[str, Any], rule: str, sentence: str) -> None:
    spec, plan = three_against_two()
    wrong = replace(plan, **changes)
    found = next(breaches(PlanRows.of(wrong), expression_of(spec)))
    assert found.rule == rule
    assert str(found).startswith(sentence)
    assert f"found {found.found}, expected" in str(verify_operator(spec, wrong)[0])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": (1, 1, 0)}, "steps[2] = 0, expected at least 1"),
        ({"rp": (0, -1, 2)}, "rp[1] = -1, expected at least 0"),
        ({"lengths": (2, 2, 5)}, "f_op[2] = 1 parts of lengths[2] = 5 do not cover extent 6, expected at least 6"),
        ({"rp": (0, 0, 3)}, "rp[2] = 3 is larger than the smallest partition of 2 elements, expected 2"),
        ({"rp": (0, 0, 1)}, "rp[2] = 1 in 3 steps does not cover lengths[2] = 6, expected the smallest partition, 2"),
        ({"phases": ((), (), (PhaseTerm((1,), 1, 3, 6),))}, "phases[2] has stride 6, expected 1 to 5"),
        ({"phases": ((), (), (PhaseTerm((1,), 1, 1, 2),))}, "phases[2] takes the digit (sigma / 1) mod 1 of 3 cores"),
        ({"phases": ((), (), (PhaseTerm((1,), 2, 2, 2),))}, "phases[2] takes the digit (sigma / 2) mod 2 of 3 cores"),
    ],
)  # fmt: skip
def test_a_number_out_of_bounds_by_one_is_named(changes: dict[str, Any], sentence: str) -> None:
    spec, plan = three_against_two()
    found = [str(each) for each in breaches(PlanRows.of(replace(plan, **changes)), expression_of(spec))]
    assert any(each.startswith(sentence) for each in found), found


def test_partial_sums_are_combined() -> None:
    spec, plan = split_sum()
    found = [str(each) for each in breaches(PlanRows.of(replace(plan, reduce="none")), expression_of(spec))]
    assert len(found) == 1
    assert found[0].endswith("expected scatter or all")
