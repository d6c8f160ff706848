"""Partition, align and price one after the other finds what native search finds in one call, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support import specs
from support.bundled import bundled_kinds, bundled_models
from support.draw import drawn
from support.random_specs import random_operator
from support.stages import UNLIMITED, staged_front

from t10.chip import ChipSpec, load_chip
from t10.core.expression import OperatorSpec
from t10.core.space import PartitionSpace
from t10.cost import IpuCostModel
from t10.dialect.mlir import ir
from t10.dialect.verify import verify_layouts
from t10.errors import InfeasiblePlanError, InputError
from t10.frontend.importer import import_model
from t10.passes.planning import candidates_of
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.fronts.stages import aligned_space, partitions_of
from t10.plan.memory.operator_bound import least_bytes
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.listed import MOST_COPIES
from t10.plan.search.operator import operator_space, plan_operator, search_space
from t10.plan.search.space import unrotated_within

OPTIONS = PlanOptions()
CHIP = load_chip("test-16").model_copy(update={"n_workers": 4})
"""A core that closed forms price: what is asked here is not what steps take."""
COST = IpuCostModel(CHIP)
FEW_FRONTS = PlanOptions(max_front=3)
N_MODELS, N_KINDS, N_RANDOM = 4, 20, 30
"""How many models, kinds of operators and random operators are drawn; `make stages` searches all on more cores."""


def stem(path: Path) -> str:
    """Return the name of a model's file."""
    return path.stem


def staged(path: Path, chip: str, most: int) -> Any:
    """Return a model's module after the three passes, candidates listed up to a number."""
    module = import_model(path).module
    with module.context, ir.Location.unknown():
        for stage in ("t10-partition", "t10-align-pace"):
            run(make(stage, f"chip={chip} max-candidates={most}"), module)
            assert verify_layouts(module), stage
        run(make("t10-pareto", f"chip={chip}"), module)
        assert verify_layouts(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("path", drawn(bundled_models(), N_MODELS, name=stem), ids=stem)
def test_the_passes_leave_the_fronts_that_are_searched_in_one_call(path: Path) -> None:
    chip = load_chip("test-4")
    listed, searched = staged(path, chip.name, UNLIMITED), staged(path, chip.name, 0)
    assert str(listed) == str(searched)
    read = read_graph(listed)
    assert candidates_of(read) == operator_fronts(read.graph, chip, IpuCostModel(chip), OPTIONS)


@pytest.mark.slow
def test_so_do_the_stages_on_more_cores() -> None:
    kinds = list(bundled_kinds(COST, bundled_models()))
    assert len(kinds) > 300
    for path, spec in drawn(kinds, N_KINDS, name=lambda kind: f"{stem(kind[0])} {kind[1]}"):
        expected = plan_operator(spec, CHIP, COST, OPTIONS)
        assert staged_front(spec, CHIP, COST, OPTIONS) == expected, f"{path.stem}: {spec}"


@pytest.mark.slow
def test_the_stages_find_the_fronts_of_random_operators() -> None:
    for seed in drawn(range(100), N_RANDOM):
        rng = Random(seed)
        spec = random_operator(rng, largest=200)
        options = rng.choice([OPTIONS, FEW_FRONTS, PlanOptions(padding=0.5), PlanOptions(exhaustive=True)])
        chip = load_chip(rng.choice(["test-4", "test-16"]))
        cost = IpuCostModel(chip)
        expected = plan_operator(spec, chip, cost, options)
        assert staged_front(spec, chip, cost, options) == expected, f"seed {seed}"
        space = operator_space(spec, chip, cost, options)
        assert search_space(spec, aligned_space(spec, space, None), chip, cost, options) == expected


def with_room(n_bytes: int) -> ChipSpec:
    """Return a chip whose cores have so many bytes for what operators hold."""
    reserve = CHIP.capacity_bytes - CHIP.shift_buffer_bytes - n_bytes
    return CHIP.model_copy(update={"sram_bytes": CHIP.sram_bytes - reserve})


@pytest.mark.slow
def test_where_memory_is_short_both_keep_what_fits_in_place() -> None:
    spec = specs.matmul(96, 96, 96)
    roomy = plan_operator(spec, CHIP, COST, OPTIONS)
    for plan in roomy[:: len(roomy) // 4]:
        tight = with_room(plan.active_bytes)
        assert staged_front(spec, tight, COST, OPTIONS) == plan_operator(spec, tight, COST, OPTIONS)
    errors: list[str] = []
    for front in (staged_front, plan_operator):
        with pytest.raises(InfeasiblePlanError, match="needs at least") as caught:
            front(spec, with_room(roomy[0].active_bytes // 2), COST, OPTIONS)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_plans_of_many_copies_are_left_out_where_others_fit() -> None:
    spec, room = random_operator(Random(2976), largest=200), 48
    in_place = [
        plan for plan in plan_operator(spec, CHIP, COST, OPTIONS) if least_bytes(spec, plan.plan) <= room
    ]
    assert in_place[0].active_bytes <= MOST_COPIES * room < in_place[-1].active_bytes
    front = staged_front(spec, with_room(room), COST, OPTIONS)
    assert front == plan_operator(spec, with_room(room), COST, OPTIONS)
    assert front[-1].active_bytes <= MOST_COPIES * room


@pytest.mark.parametrize("spec", [specs.conv2d(3, 8, 13, 13, 3, 5, 1), specs.conv2d(2, 16, 9, 9, 3, 5, 3)])
def test_both_find_plans_without_rotation_outside_the_constraints(spec: OperatorSpec) -> None:
    chip = load_chip("test-64").model_copy(update={"n_workers": 4})
    cost = IpuCostModel(chip)
    space, front = operator_space(spec, chip, cost, OPTIONS), plan_operator(spec, chip, cost, OPTIONS)
    assert space.unrotated is not None
    further = {tuple(row) for row in unrotated_within(spec, space).tolist()}
    assert any(plan.plan.f_op in further for plan in front)
    assert search_space(spec, space, chip, cost, OPTIONS) == front
    assert staged_front(spec, chip, cost, OPTIONS) == front
    other = replace(space, unrotated=replace(space.unrotated, n_f_op=7))
    with pytest.raises(InputError, match="the space counts 7 F_op"):
        search_space(spec, other, chip, cost, OPTIONS)


@pytest.mark.parametrize("f_op", [(4, 4, 1), (2, 4, 2), (4, 2, 1)])
def test_a_forced_pace_leaves_the_front_of_the_plans_that_have_it(f_op: tuple[int, ...]) -> None:
    spec = specs.matmul(16, 16, 16)
    free = PlanOptions(forced=(ForcedPartition(spec.name, f_op),))
    space = operator_space(spec, CHIP, COST, free)
    paces = {align_pace(spec, *partition).rp for partition in partitions_of(spec, space)}
    on_front = {plan.plan.rp for plan in plan_operator(spec, CHIP, COST, free)}
    assert paces - on_front, "a pace that no plan on the front has must be found too"
    for rp in paces:
        pinned = replace(free, forced=(ForcedPartition(spec.name, f_op, rp=rp),))
        expected = staged_front(spec, CHIP, COST, pinned)
        assert {plan.plan.rp for plan in expected} == {rp}
        assert plan_operator(spec, CHIP, COST, pinned) == expected
        assert search_space(spec, aligned_space(spec, space, rp), CHIP, COST, OPTIONS) == expected


def test_a_space_of_another_operator_is_refused() -> None:
    space = operator_space(specs.matmul(16, 16, 16), CHIP, COST, OPTIONS)
    other = specs.matmul(12, 12, 12)
    with pytest.raises(InputError, match="run --t10-partition anew"):
        search_space(other, space, CHIP, COST, OPTIONS)


def test_a_space_counts_at_least_what_it_holds() -> None:
    for seed in range(60):
        spec = random_operator(Random(seed), largest=200)
        space: PartitionSpace = operator_space(spec, CHIP, COST, OPTIONS)
        listed = list(partitions_of(spec, space))
        assert 1 <= len(listed) <= space.at_most, f"seed {seed}"
        assert len({f_op for f_op, _ in listed}) == space.n_f_op
        assert listed == sorted(listed)
