"""Random cases end to end: a graph, a chip, a plan and integers, named by one seed, executed and compared exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from random import Random

import numpy as np

from support import random_plans, random_specs, reference
from support.reference import Array
from t10.chip import ChipSpec, load_chip
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.options import PlanOptions
from t10.plan.schedule import plan_module
from t10.plan.verify import verify_module
from t10.sim.plan_level import simulate

CORE_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Sizes of the chips that random cases run on."""


@dataclass(frozen=True, slots=True)
class Case:
    """A planned model with what goes in; `seed` brings it back."""

    seed: int
    chip: ChipSpec
    graph: Graph
    plan: ModulePlan
    arrays: dict[str, Array]

    @property
    def n_rotating_axes(self) -> int:
        """Return along how many axes something rotates, over all operators."""
        return sum(len(op.active.plan.loop_order) for op in self.plan.operators)

    @property
    def n_in_place(self) -> int:
        """Return how many operands are read where they lie already."""
        return sum(a.kind == "in_place" for op in self.plan.operators for a in op.arrivals)

    @property
    def n_reduced(self) -> int:
        """Return how many operators combine partial sums of several cores."""
        return sum(op.active.plan.reduce != "none" for op in self.plan.operators)


@lru_cache(maxsize=len(CORE_COUNTS))
def small_chip(n_cores: int) -> ChipSpec:
    """Return a chip of few cores, otherwise like the IPU Mk2."""
    return load_chip("test-64").model_copy(update={"n_cores": n_cores})


def random_case(seed: int) -> Case:
    """Return a graph under a random legal plan."""
    rng = Random(seed)
    chip = small_chip(rng.choice(CORE_COUNTS))
    graph = random_specs.random_graph(rng)
    plan = random_plans.random_module(rng, graph, chip)
    return Case(seed, chip, graph, plan, random_specs.random_arrays(rng, graph))


def small_case(seed: int) -> Case:
    """Return a graph of few points under a random legal plan on few cores, for executions that are slow."""
    rng = Random(seed)
    chip = small_chip(rng.choice([2, 4, 6, 8]))
    graph = random_specs.random_graph(rng, largest=150)
    plan = random_plans.random_module(rng, graph, chip)
    return Case(seed, chip, graph, plan, random_specs.random_arrays(rng, graph))


def planned_case(seed: int) -> Case:
    """Return a graph under the planner's plan, or under random members of its time x memory fronts."""
    rng = Random(seed)
    chip = small_chip(rng.choice(CORE_COUNTS))
    graph = random_specs.random_graph(rng)
    if rng.random() < 0.5:
        plan = plan_module(graph, chip)
    else:
        fronts = operator_fronts(graph, chip, IpuCostModel(chip), PlanOptions())
        plans = tuple(rng.choice(front).plan for front in fronts)
        plan = random_plans.lay_out(rng, graph, plans, chip)
    return Case(seed, chip, graph, plan, random_specs.random_arrays(rng, graph))


def problems(case: Case) -> list[str]:
    """Return what is wrong with a case: rules its plan breaks, and results that differ from the reference."""
    found = [str(violation) for violation in verify_module(case.plan, case.chip)]
    weights = {tensor.name: case.arrays[tensor.name] for tensor in case.graph.weights}
    inputs = {tensor.name: case.arrays[tensor.name] for tensor in case.graph.inputs}
    got = simulate(case.plan, case.chip, IpuCostModel(case.chip), weights, inputs).outputs
    for name, due in reference.run(case.graph, case.arrays).items():
        if got[name].dtype != due.dtype or not np.array_equal(
            got[name], due, equal_nan=due.dtype.kind == "f"
        ):
            found.append(f"{name} differs from the reference")
    return found
