"""Damaged plans: whatever gives a wrong result when it is executed element by element, the checker must refuse.

An oracle that knows nothing of the checker (`support.bruteforce`) decides which damage is harmful; damage that leaves
the result right does not count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from support import bruteforce, mutations, random_plans, random_specs, specs
from support.draw import drawn
from support.paper_plans import PAPER_PLANS
from support.random_cases import small_chip

from t10.chip import ChipSpec
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.errors import T10Error
from t10.plan.schedule import plan_module
from t10.plan.verify import verify_module

SHARES, N_DRAWN = 8, 4
MODULES_PER_SHARE = 45
MUTATIONS_PER_MODULE = 12
HARMFUL_PER_SHARE = 260
"""What each of the 8 shares must at least try: over 2,000 harmful mutations together."""

Given = dict[str, dict[bruteforce.Index, int]]


def symbolic_values(graph: Graph) -> Given:
    """Return a different number for every element of every input and weight."""
    return {
        tensor.name: {i: bruteforce.mixed(*tensor.name.encode(), *i) for i in bruteforce.boxes(tensor.shape)}
        for tensor in (*graph.inputs, *graph.weights)
    }


def gives(
    plan: ModulePlan, chip: ChipSpec, given: Given, due: dict[str, dict[bruteforce.Index, int]]
) -> bool:
    """Return whether a plan gives the right results when it is executed element by element."""
    try:
        return bruteforce.Run(plan, chip, given).results() == due
    except (bruteforce.BrokenPlan, LookupError, ValueError, ZeroDivisionError, T10Error):
        return False


def tried(rng: Random, plan: ModulePlan, chip: ChipSpec, n_mutations: int, counts: Counter[str]) -> list[str]:
    """Return the harmful mutations of a plan that the checker lets pass; counts what was tried by kind."""
    given = symbolic_values(plan.graph)
    due = bruteforce.expected(plan.graph, given)
    assert verify_module(plan, chip) == []
    assert gives(plan, chip, given, due)
    slipped: list[str] = []
    for number in range(n_mutations):
        try:
            name, damaged = mutations.mutated(rng, plan)
        except T10Error:
            continue  # refused before it was a plan
        if damaged == plan or gives(damaged, chip, given, due):
            counts["harmless"] += 1
            continue
        counts["harmful"] += 1
        counts[name] += 1
        if not verify_module(damaged, chip):
            slipped.append(f"mutation {number} ({name})")
    return slipped


@pytest.mark.slow
@pytest.mark.parametrize("share", drawn(range(SHARES), N_DRAWN))
def test_no_harmful_mutation_of_a_random_plan_slips_through(share: int) -> None:
    counts: Counter[str] = Counter()
    for module in range(MODULES_PER_SHARE):
        rng = Random(share * MODULES_PER_SHARE + module)
        chip = small_chip(rng.choice([2, 4, 6, 8]))
        plan = random_plans.random_module(rng, random_specs.random_graph(rng, largest=150), chip)
        assert tried(rng, plan, chip, MUTATIONS_PER_MODULE, counts) == []
    assert counts["harmful"] >= HARMFUL_PER_SHARE


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", sorted(PAPER_PLANS))
def test_no_harmful_mutation_of_a_plan_of_the_paper_slips_through(name: str) -> None:
    spec, plan = PAPER_PLANS[name]()
    chip = small_chip(12)
    rng = Random(name)
    module = random_plans.lay_out(rng, specs.one_operator_graph(spec), (plan,), chip)
    counts: Counter[str] = Counter()
    assert tried(rng, module, chip, 60, counts) == []
    assert counts["harmful"] >= 20


PLANNED = {
    "mlp": specs.mlp_graph(4, (6, 4, 3)),
    "softmax": specs.softmax_graph(6, 4),
    "layer norm": specs.layer_norm_graph(4, 6),
    "bmm": specs.one_operator_graph(specs.bmm(2, 3, 4, 3)),
    "gather": specs.one_operator_graph(specs.gather(4, 3, 5)),
    "conv": specs.one_operator_graph(specs.conv2d(1, 2, 3, 3, 2, 3, 3, pad=1)),
    "pool": specs.one_operator_graph(specs.max_pool2d(1, 3, 2, 2, 2)),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(PLANNED))
def test_no_harmful_mutation_of_a_planned_model_slips_through(name: str) -> None:
    chip = small_chip(6)
    counts: Counter[str] = Counter()
    assert tried(Random(name), plan_module(PLANNED[name], chip), chip, 60, counts) == []
    assert counts["harmful"] >= 15


def test_wrong_totals_are_found() -> None:
    """The oracle cannot see what is only stated, so the stated peak and capacity have a test of their own."""
    chip = small_chip(6)
    plan = plan_module(PLANNED["mlp"], chip)
    assert {v.rule for v in verify_module(replace(plan, peak_bytes=plan.peak_bytes - 8), chip)} == {"peak"}
    assert {v.rule for v in verify_module(replace(plan, capacity_bytes=1), chip)} == {"capacity"}
    assert {v.rule for v in verify_module(replace(plan, chip="other"), chip)} == {"chip"}
