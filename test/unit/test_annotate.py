"""Plans written into modules: valid IR, the same model and the same plan when it is read back, also as programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from t10.chip import load_chip
from t10.core.graph import Graph
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.dialect.mlir import ir
from t10.dialect.region import is_expanded
from t10.dialect.verify import verify_layouts
from t10.frontend.importer import import_model
from t10.passes.bridge.annotate import annotate
from t10.passes.bridge.read_program import read_program
from t10.passes.expand import Expand, chosen_schedule
from t10.passes.place import Place, program_plan
from t10.passes.read_graph import read_graph
from t10.passes.registry import make, run
from t10.passes.verify_plan import VerifyPlan
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.options import PlanOptions
from t10.plan.schedule import restore_module, with_costs

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
    assert without_fronts(chosen_schedule(reparsed(module), CHIP, COST)[1]) == without_fronts(plan)


def test_the_checker_accepts_what_was_written(annotated: Annotated) -> None:
    module, _ = annotated
    VerifyPlan(chip=CHIP.name).apply(module)


def test_the_program_in_a_module_is_the_plan_that_was_written(annotated: Annotated) -> None:
    module, plan = annotated
    Expand(chip=CHIP.name).apply(module)
    Place(chip=CHIP.name).apply(module)
    again = reparsed(module)
    assert again.operation.verify()
    assert verify_layouts(again)
    VerifyPlan(chip=CHIP.name).apply(again)
    read = read_program(again)
    assert read.graph == plan.graph
    assert all(is_expanded(op) for op in read.model.operations.values())
    stated = with_costs(program_plan(read, CHIP), plan)
    assert stated is not None
    assert without_fronts(stated) == without_fronts(plan)
