"""Plans written into modules: valid IR, the same model and the same plan when it is read back, also as loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from t10.passes.bridge.loops import is_expanded

from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.dialect.mlir import ir, walk
from t10.dialect.verify import verify_layouts
from t10.frontend.importer import import_model
from t10.passes.bridge.annotate import annotate
from t10.passes.expand import Expand
from t10.passes.place import Place, planned
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run
from t10.passes.verify_plan import VerifyPlan
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.options import PlanOptions
from t10.plan.schedule import restore_module

MODELS = Path(__file__).parents[2] / "examples" / "models"
CHIP = load_chip("test-16")
COST = IpuCostModel(CHIP)
NAMES = ("bert_fp16", "vit_fp32", "resnet18_fp32", "llama2_fp16", "gather")


@pytest.fixture(scope="module", params=NAMES)
def fused(request: pytest.FixtureRequest) -> tuple[str, Any]:
    """Return the name of a bundled model and the text of its fused module."""
    imported = import_model(MODELS / f"{request.param}.onnx")
    with imported.module.context, ir.Location.unknown():
        run(make("t10-fuse"), imported.module)
    return request.param, imported.module


@pytest.fixture(params=range(2))
def annotated(fused: tuple[str, Any], request: pytest.FixtureRequest) -> Iterator[tuple[Any, ModulePlan]]:
    """Return a module with random legal plans, in a context that is current, and what was written into it."""
    name, module = fused
    rng = Random(f"{name} {request.param}")
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
        read = read_graph(copy)
        plan = random_schedule(rng, read.graph)
        annotate(copy, read, plan)
        yield copy, plan


def random_schedule(rng: Random, graph: Graph) -> ModulePlan:
    """Return a schedule of plans drawn from every operator's front, and of random idle levels."""
    fronts = operator_fronts(graph, CHIP, COST, PlanOptions())
    plans = tuple(rng.choice(front) for front in fronts)
    levels = tuple(rng.choice([0, 1, 2, 4]) for _ in plans)
    return restore_module(graph, CHIP, COST, plans, levels)


def reparsed(module: Any) -> Any:
    """Return what the text of a module says."""
    return ir.Module.parse(module.operation.get_asm(enable_debug_info=True))


def without_fronts(plan: ModulePlan) -> ModulePlan:
    """Return a plan without the alternatives, which the module does not keep."""
    return replace(plan, operators=tuple(replace(each, pareto=()) for each in plan.operators))


def restored(module: Any) -> ModulePlan:
    """Return the plan that a module's attributes say."""
    return without_fronts(planned(Place(chip=CHIP.name), module)[1])


def operators_of(module: Any) -> tuple[OperatorSpec, ...]:
    """Return the operators of a module."""
    return read_graph(module).graph.operators


Annotated = tuple[Any, ModulePlan]


def test_an_annotated_module_is_valid_and_survives_its_text(annotated: Annotated) -> None:
    module, _ = annotated
    assert module.operation.verify()
    assert verify_layouts(module)
    assert str(reparsed(module)) == str(module)


def test_an_annotated_module_is_still_the_same_model(annotated: Annotated) -> None:
    module, plan = annotated
    assert read_graph(reparsed(module)).graph == plan.graph


def test_the_plan_in_a_module_is_the_plan_that_was_written(annotated: Annotated) -> None:
    module, plan = annotated
    assert restored(reparsed(module)) == without_fronts(plan)


def test_the_checker_accepts_what_was_written(annotated: Annotated) -> None:
    module, _ = annotated
    VerifyPlan(chip=CHIP.name).apply(module)


def test_loops_are_the_same_operators_under_the_same_plan(annotated: Annotated) -> None:
    module, plan = annotated
    Place(chip=CHIP.name).apply(module)
    before = operators_of(module)
    Expand(chip=CHIP.name).apply(module)
    again = reparsed(module)
    assert again.operation.verify()
    assert verify_layouts(again)
    assert operators_of(again) == before
    assert restored(again) == without_fronts(plan)
    rotating = {each.name for each in plan.operators if each.active.plan.loop_order}
    written = read_graph(again).operations
    assert all(is_expanded(written[name]) for name in rotating)


def test_nests_state_axes_steps_and_pace_of_the_plan(annotated: Annotated) -> None:
    module, plan = annotated
    Expand(chip=CHIP.name).apply(module)
    written = read_graph(module).operations
    for scheduled in plan.operators:
        active = scheduled.active.plan
        found = [
            tuple(int(nest.attributes[key][0].value) for key in ("axes", "steps", "rp"))
            for nest in walk(written[scheduled.name])
            if nest.operation.name == "rtensor.nest"
        ]
        assert found == [(axis, active.steps[axis], active.rp[axis]) for axis in active.loop_order]
