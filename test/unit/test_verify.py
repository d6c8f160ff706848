"""The independent checker: plans written by hand are accepted, and each broken rule is named."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support import random_plans, random_specs, specs
from support.paper_plans import (
    PAPER_PLANS,
    block_convolution,
    cannon,
    rotating_output,
    split_sum,
    three_against_two,
)

from t10.core.expression import Axis, OperatorSpec
from t10.core.plan import OperatorPlan, PhaseTerm
from t10.plan.verify import rotation, verify_operator
from t10.plan.verify.operator import findings
from t10.plan.verify.windows import core_phases, held_indices, window_at


def rules(spec: OperatorSpec, plan: OperatorPlan, n_cores: int | None = None) -> set[str]:
    return {violation.rule for violation in verify_operator(spec, plan, n_cores)}


@pytest.mark.parametrize("name", sorted(PAPER_PLANS))
def test_plans_of_the_paper_are_accepted(name: str) -> None:
    spec, plan = PAPER_PLANS[name]()
    assert verify_operator(spec, plan, plan.n_cores) == []


def test_windows_of_the_paper_wrap_around() -> None:
    spec, plan = three_against_two()
    window = window_at(spec.inputs[1], plan.ft[1], plan, (0, 0, 0))
    assert core_phases(plan)[:, 2].tolist() == [0, 2, 4, 3, 5, 1]
    # Core 4 starts at 5: elements 5, 0, 1 of k, each in slot k mod 3.
    assert held_indices(window, plan)[0].full[4].tolist() == [0, 1, 5]


def test_nest_is_serpentine() -> None:
    _, plan = PAPER_PLANS["two_loops"]()
    assert list(rotation.nest_steps(plan)) == [(1, 1), (0, 1), (1, -1)]


def test_too_many_cores() -> None:
    spec, plan = cannon()
    assert rules(spec, plan, 8) == {"cores"}


def test_parts_that_do_not_cover() -> None:
    spec, plan = cannon()
    assert rules(spec, replace(plan, lengths=(1, 2, 6))) == {"lengths"}


def test_split_of_an_unsplittable_axis() -> None:
    spec, plan = split_sum()
    axes = (*spec.axes[:2], Axis("k", 6, "reduction", is_splittable=False))
    assert rules(replace(spec, axes=axes), plan) == {"unsplittable axis"}


def test_ring_that_does_not_divide_the_sharers() -> None:
    spec, plan = cannon()
    assert rules(spec, replace(plan, ft=((1, 1, 2), (1, 1, 3), (1, 1, 1)))) == {"ring divides"}


def test_tensor_cut_along_an_axis_it_lacks() -> None:
    spec, plan = cannon()
    assert "temporal axis" in rules(spec, replace(plan, ft=((1, 3, 1), (1, 1, 3), (1, 1, 1))))


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"rp": (0, 0, 1)}, "pace"),
        ({"rp": (0, 0, 3), "steps": (1, 1, 2)}, "pace"),
        ({"steps": (1, 1, 2)}, "pace"),
        ({"steps": (1, 2, 3)}, "pace"),
        ({"loop_order": ()}, "loop order"),
        ({"loop_order": (2, 2)}, "loop order"),
        ({"core_order": (0, 1, 1)}, "core order"),
        ({"reduce": "scatter"}, "reduce"),
        ({"phases": ((), (), (PhaseTerm((0,), 0, 3, 2),))}, "phases"),
    ],
)
def test_numbers_that_do_not_fit(changes: dict[str, Any], rule: str) -> None:
    spec, plan = cannon()
    assert rule in rules(spec, replace(plan, **changes))


@pytest.mark.parametrize(
    "phase",
    [
        (),
        (PhaseTerm((0,), 1, 3, 2),),
        (PhaseTerm((0,), 1, 3, 2), PhaseTerm((1,), 1, 3, 1)),
        (PhaseTerm((0,), 1, 2, 2), PhaseTerm((1,), 1, 3, 2)),
    ],
    ids=["no skew", "skew of rows only", "half a window", "two of three"],
)
def test_rings_that_do_not_tile(phase: tuple[PhaseTerm, ...]) -> None:
    spec, plan = cannon()
    assert rules(spec, replace(plan, phases=((), (), phase))) == {"ring tiling"}


def test_blocks_with_halo_start_at_whole_blocks() -> None:
    plan, spec = block_convolution()[1], specs.conv2d(2, 4, 4, 4, 3, 3, 3, "i32", pad=1)
    # All cores one element further: the windows still tile the image, but a block would wrap around.
    further = replace(plan, f_op=(2, 2, 1, 1, 1, 1, 1))
    moved = (PhaseTerm((1,), 1, 2, 2), PhaseTerm((0,), 1, 2, 1))
    assert rules(spec, replace(further, phases=(*plan.phases[:2], moved, *plan.phases[3:]))) == {"blocks"}


def test_blocks_with_halo_rotate_with_one_factor() -> None:
    plan, spec = block_convolution()[1], specs.conv2d(1, 4, 4, 4, 4, 3, 3, "i32", pad=1)
    unequal = replace(plan, f_op=(1, 2, 1, 1, 4, 1, 1), lengths=(1, 2, 4, 4, 1, 3, 3))
    ft = ((1, 1, 2, 1, 1, 1, 1), (1,) * 7, (1, 1, 4, 1, 1, 1, 1))
    changed = replace(unequal, ft=ft, rp=(0, 0, 1, 0, 0, 0, 0), steps=(1, 1, 4, 1, 1, 1, 1))
    assert rules(spec, changed) == {"blocks"}


def test_partial_sums_of_one_window_lie_on_all_its_replicas() -> None:
    spec, plan = rotating_output()
    # Four cores share each part of c and two windows: both cores of a window must be there.
    four = replace(plan, f_op=(1, 2, 4), lengths=(6, 2, 2), ft=((1, 1, 1), (1, 1, 1), (2, 1, 1)), rp=(3, 0, 0),
                   steps=(2, 1, 1), reduce="scatter")  # fmt: skip
    good = replace(four, phases=((PhaseTerm((2,), 1, 2, 3),), (), ()))
    assert verify_operator(spec, good) == []
    bad = replace(four, phases=((PhaseTerm((2,), 1, 2, 3), PhaseTerm((2,), 2, 2, 1)), (), ()))
    assert rules(spec, bad) == {"reduction"}


def test_messages_say_what_was_found_and_what_was_expected() -> None:
    spec, plan = cannon()
    (violation,) = verify_operator(spec, replace(plan, rp=(0, 0, 1)))
    assert str(violation) == (
        "matmul: pace: found rp[2] = 1 in 3 steps does not cover lengths[2] = 6, expected the smallest partition, 2"
    )


def test_equal_operators_are_verified_once_and_keep_their_names() -> None:
    spec, plan = cannon()
    broken = replace(plan, rp=(0, 0, 1))
    findings.cache_clear()
    names = [verify_operator(replace(spec, name=f"layer{i}"), broken)[0].operator for i in range(3)]
    assert names == ["layer0", "layer1", "layer2"]
    assert findings.cache_info().misses == 1


@pytest.mark.slow
def test_one_step_stands_for_the_whole_nest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Step-invariance: looking at step 0 and one shift each way finds what a walk through the nest finds."""
    verdicts: list[list[bool]] = []
    for limit in (rotation.WALK_LIMIT, 0):
        monkeypatch.setattr(rotation, "WALK_LIMIT", limit)
        findings.cache_clear()
        found: list[bool] = []
        for seed in range(150):
            rng = Random(seed)
            spec = random_specs.random_operator(rng)
            plan = random_plans.random_plan(rng, spec, 12)
            if plan.loop_order and seed % 2:
                axis = plan.loop_order[0]
                phases = [*plan.phases]
                phases[axis] = phases[axis][1:]
                plan = replace(plan, phases=tuple(phases))
            found.append(bool(verify_operator(spec, plan)))
        verdicts.append(found)
    findings.cache_clear()
    assert verdicts[0] == verdicts[1]
    assert 10 < sum(verdicts[0]) < 100
