"""Plans written as compute-shift programs are read back from the text alone: model, plans, programs and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models
from support.draw import drawn
from support.random_plans import random_plan

import t10
from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import ModulePlan, ScheduledOperator, ValueLayout
from t10.cost import IpuCostModel
from t10.dialect.grid import grid_of
from t10.dialect.mlir import ir
from t10.dialect.verify import verify_layouts
from t10.frontend.importer import import_model
from t10.passes.bridge.annotate import CHIP, annotate
from t10.passes.bridge.read_program import read_program
from t10.passes.bridge.write_program import write_program
from t10.passes.expand import chosen_schedule
from t10.passes.pipeline import module_text
from t10.passes.place import place_module, program_plan
from t10.passes.read_graph import ReadModule, read_graph
from t10.passes.registry import make, run
from t10.passes.verify_plan import VerifyPlan
from t10.plan.fronts.operator_fronts import operator_fronts
from t10.plan.memory.room import DataRoom
from t10.plan.options import PlanOptions
from t10.plan.schedule import restore_module

MODELS = Path(__file__).parents[2] / "examples" / "models"
REFUSED = ("broken_cut", "broken_empty", "broken_text", "symbolic", "unsupported")
ALL = sorted(path.stem for path in MODELS.glob("*.onnx") if path.stem not in REFUSED)
WITH_FRONTS = ("gather", *drawn(["bert_fp16", "vit_fp32", "resnet18_fp32", "llama2_fp16"], 2))
TEST_CHIP = load_chip("test-16")
COST = IpuCostModel(TEST_CHIP)


@pytest.fixture(scope="module")
def fused() -> dict[str, Any]:
    """Return the fused modules that were asked for already, by model."""
    return {}


@pytest.fixture
def read(fused: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[tuple[Any, ReadModule]]:
    """Return a copy of a fused module and the model read from it, in a context that is current."""
    name: str = request.param
    if name not in fused:
        module = import_model(MODELS / f"{name}.onnx").module
        with module.context, ir.Location.unknown():
            run(make("t10-fuse"), module)
        fused[name] = module
    module = fused[name]
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
        yield copy, read_graph(copy)


def schedule(graph: Graph, rng: Random, plans: tuple[CostedPlan, ...]) -> ModulePlan:
    """Return the schedule of plans, with random idle levels."""
    return restore_module(graph, TEST_CHIP, COST, plans, tuple(rng.choice([0, 1, 2, 4]) for _ in plans))


def any_plans(rng: Random, graph: Graph) -> tuple[CostedPlan, ...]:
    """Return legal plans that nobody would choose: any factors, loops, phases and orders of cores."""
    plans = [random_plan(rng, spec, TEST_CHIP.n_cores) for spec in graph.operators]
    return tuple(CostedPlan(plan, Cycles(), 0, 0) for plan in plans)


def same_plan(plan: OperatorPlan) -> OperatorPlan:
    """Return a plan with the cores' order as a grid states it: axes of one part stand in front."""
    return grid_of(plan).plan(plan.ft, plan.reduce)


def same_layout(layout: ValueLayout) -> ValueLayout:
    """Return a layout on the plan that a grid states."""
    return replace(layout, plan=None if layout.plan is None else same_plan(layout.plan))


def stated(plan: ModulePlan) -> ModulePlan:
    """Return a plan without what a module does not state.

    These are costs, traffic, alternatives, the model's locations and the order of views.
    """

    def operator(each: ScheduledOperator) -> ScheduledOperator:
        arrivals = sorted(each.arrivals, key=lambda arrival: arrival.operand)
        return replace(
            each,
            active=CostedPlan(same_plan(each.active.plan), Cycles(), 0, 0),
            pareto=(),
            output_layout=same_layout(each.output_layout),
            arrivals=tuple(
                replace(a, received_bytes=0, sent_bytes=0, fragments=0, cycles=0) for a in arrivals
            ),
        )

    def layouts(found: tuple[ValueLayout, ...]) -> tuple[ValueLayout, ...]:
        return tuple(sorted(map(same_layout, found), key=lambda layout: layout.value))

    def spec(each: OperatorSpec) -> OperatorSpec:
        return replace(each, location="")

    return replace(
        plan,
        graph=replace(
            plan.graph,
            operators=tuple(map(spec, plan.graph.operators)),
            views=tuple(sorted(plan.graph.views, key=lambda view: view.name)),
        ),
        operators=tuple(map(operator, plan.operators)),
        weight_layouts=layouts(plan.weight_layouts),
        input_layouts=layouts(plan.input_layouts),
        optimality=None,
    )


def _unnumbered(text: str) -> str:
    """Return a text whose resources have one name: a context numbers what it has read before."""
    return re.sub(r"\bconstant(_1)+\b", "constant", text)


def check(module: Any, model: ReadModule, plan: ModulePlan) -> None:
    """Write a plan, and read it back from the text before and after it has been placed."""
    module.operation.attributes[CHIP] = ir.StringAttr.get(TEST_CHIP.name)
    write_program(model, plan)
    assert module.operation.verify()
    written = ir.Module.parse(module_text(module))
    assert verify_layouts(written)
    there = DataRoom(TEST_CHIP)(plan)
    assert stated(DataRoom(TEST_CHIP)(program_plan(read_program(written), TEST_CHIP))) == stated(there)
    place_module(written, TEST_CHIP, DataRoom(TEST_CHIP))
    text = module_text(written)
    placed = ir.Module.parse(text)
    assert _unnumbered(module_text(placed)) == _unnumbered(text)
    assert stated(program_plan(read_program(placed), TEST_CHIP)) == stated(there)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("read", ALL, indirect=True)
def test_any_legal_plan_of_a_model_is_what_its_program_says(read: tuple[Any, ReadModule]) -> None:
    module, model = read
    rng = Random(model.graph.name)
    check(module, model, schedule(model.graph, rng, any_plans(rng, model.graph)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("read", WITH_FRONTS, indirect=True)
def test_a_plan_of_the_planner_is_what_its_program_says(read: tuple[Any, ReadModule]) -> None:
    module, model = read
    rng = Random(model.graph.name)
    fronts = operator_fronts(model.graph, TEST_CHIP, COST, PlanOptions())
    check(module, model, schedule(model.graph, rng, tuple(rng.choice(front) for front in fronts)))


@pytest.mark.parametrize("read", WITH_FRONTS, indirect=True)
def test_the_plan_of_a_planned_module_is_the_one_that_was_annotated(read: tuple[Any, ReadModule]) -> None:
    module, model = read
    rng = Random(model.graph.name)
    plan = schedule(model.graph, rng, any_plans(rng, model.graph))
    annotate(module, model, plan)
    again = ir.Module.parse(module.operation.get_asm(enable_debug_info=True))
    assert verify_layouts(again)
    assert read_graph(again).graph == plan.graph
    restored = chosen_schedule(again, TEST_CHIP, COST)[1]
    assert [each.active.plan for each in restored.operators] == [each.active.plan for each in plan.operators]
    assert stated(restored) == stated(plan)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("read", WITH_FRONTS, indirect=True)
def test_the_checker_accepts_what_was_written(read: tuple[Any, ReadModule]) -> None:
    module, model = read
    rng = Random(model.graph.name)
    annotate(module, model, schedule(model.graph, rng, any_plans(rng, model.graph)))
    VerifyPlan(chip=TEST_CHIP.name).apply(module)
    run(make("t10-place", f"chip={TEST_CHIP.name}"), module)
    VerifyPlan(chip=TEST_CHIP.name).apply(module)


def test_an_input_whose_readers_hold_different_numbers_of_copies_is_read(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["m"]),
        helper.make_node("Mul", ["m", "s"], ["y"]),
        helper.make_node("Reshape", ["y", "column"], ["a"]),
        helper.make_node("Reshape", ["x", "one"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["z"]),
    ]
    stored = {
        "w": models.weights(0, 3, 1, 1, 1), "s": models.weights(1, 1, 3, 1, 1), "column": np.array([3, 1]),
        "one": np.array([1, 1]),
    }  # fmt: skip
    outputs = {"y": (TensorProto.FLOAT, [1, 3, 1, 1]), "z": (TensorProto.FLOAT, [3, 1])}
    inputs = {"x": (TensorProto.FLOAT, [1, 1, 1, 1])}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, outputs, **stored)
    x = np.full((1, 1, 1, 1), 1.5, np.float32)
    found = t10.compile(path, chip="test-16").run({"x": x})
    product = stored["w"].reshape(3, 1) * stored["s"].reshape(3, 1) * x.item()
    np.testing.assert_allclose(found["z"], product * x.item(), rtol=1e-6)
