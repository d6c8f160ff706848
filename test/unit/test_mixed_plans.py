"""Products that hand on f16, under random plans that rotate and cut sums: legal, exact on all simulators, on time."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from support import random_plans, reference, specs
from support.random_cases import Case, problems, small_chip
from support.random_products import handed_on_rounded
from support.random_specs import random_arrays
from support.specs import dims, operand

from t10.codelets.image import assembled
from t10.core.expression import OperatorSpec
from t10.core.products import hands_on_rounded
from t10.cost import IpuCostModel
from t10.emit.lower import lower
from t10.sim.device import run_device

N_SEEDS = 80


def random_product(rng: Random) -> OperatorSpec:
    m, n, k = rng.choice((5, 12, 24, 31)), rng.choice((8, 12, 24, 40)), rng.choice((16, 24, 48, 64, 96))
    plain = specs.matmul(m, n, k)
    spec = handed_on_rounded(plain)
    if rng.random() < 0.7:
        weights = operand("b", "weight", "f16", (n, k), dims(1, 2))
        spec = replace(spec, inputs=(spec.inputs[0], weights))
    return spec


def random_case(seed: int) -> Case:
    rng = Random(seed)
    chip, spec = small_chip(rng.choice((2, 4, 6, 8))), random_product(rng)
    graph = specs.chain_graph("product", (spec,), ())
    arrays = random_arrays(rng, graph)
    return Case(seed, chip, graph, random_plans.random_module(rng, graph, chip), arrays)


@pytest.mark.parametrize("seed", range(N_SEEDS))
def test_random_plans(seed: int) -> None:
    case = random_case(seed)
    assert hands_on_rounded(case.graph.operators[0])
    assert problems(case) == []
    program = lower(case.plan, case.chip, IpuCostModel(case.chip))
    image = assembled(program.codelets, case.chip.tile_memory)
    result = run_device(program, case.chip, image, case.arrays, case.arrays)
    # Sums of these integers are below 2048: f16 holds them, in whatever order they are added.
    for name, due in reference.run(case.graph, case.arrays).items():
        np.testing.assert_array_equal(result.outputs[name], due)


def test_random_plans_rotate_sums_and_cut_them() -> None:
    cases = [random_case(seed) for seed in range(N_SEEDS)]
    plans = [case.plan.operators[0].active.plan for case in cases]
    assert sum(plan.steps[2] > 1 for plan in plans) > N_SEEDS / 16
    assert sum(case.n_reduced for case in cases) > N_SEEDS / 16
