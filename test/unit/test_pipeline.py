"""The whole road in one call leaves what the passes leave one by one, and a program of the same cycles."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models
from support.draw import drawn

import t10
from t10.chip import ChipSpec, load_chip
from t10.core.device import DeviceProgram, Execute, Repeat, Step
from t10.core.plan import Cycles
from t10.core.schedule import ModulePlan
from t10.cost import CostModel, IpuCostModel
from t10.dialect.mlir import ir, new_context
from t10.emit.kept import Kept
from t10.emit.link import link, linked
from t10.emit.lower import lowered_parts
from t10.errors import InfeasiblePlanError, T10Error
from t10.frontend.importer import import_model
from t10.opt.main import main as t10_opt
from t10.passes import pipeline
from t10.passes.device.read import find_graph, read_graph
from t10.passes.device.write import write_graph
from t10.passes.lower_ipu import lower_module
from t10.passes.pipeline import (
    compile_module,
    device_parts,
    module_text,
    parsed_module,
)
from t10.passes.registry import make, run

MODELS = Path(__file__).parents[2] / "examples" / "models"
CHIP = load_chip("test-16")


def device_program(plan: ModulePlan, chip: ChipSpec, cost: CostModel) -> DeviceProgram:
    return linked(device_parts(plan, chip, cost), plan, chip)


def imported(name: str) -> Any:
    """Return the linalg module of a bundled model."""
    return import_model(MODELS / f"{name}.onnx").module


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gather", *drawn(["bert_fp16", "resnet18_fp32", "vit_fp16"], 1)])
def test_one_call_leaves_what_the_passes_leave(name: str) -> None:
    at_once, step_by_step = imported(name), imported(name)
    chip = load_chip("test-16:reserved_bytes=36864")
    compiled = compile_module(at_once, chip)
    with step_by_step.context, ir.Location.unknown():
        run(make("t10-place", f"chip={chip.name}"), step_by_step)
        assert compiled.text == module_text(step_by_step)
        run(make("t10-lower-ipu", f"chip={chip.name}"), step_by_step)
        expected = module_text(step_by_step)
    with parsed_module(compiled.text, "compiled") as module:
        lower_module(module, chip, IpuCostModel(chip))
        assert module_text(module) == expected
        stated = read_graph(find_graph(module))
        program = device_program(compiled.plan, chip, IpuCostModel(chip))
        assert _graph_text(program) == _graph_text(stated)
        assert program.copies == stated.copies


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gather", "mlp", *drawn(["bert_fp16", "resnet18_fp32"], 1)])
def test_planning_beside_the_program_leaves_what_the_passes_leave(name: str) -> None:
    at_once, step_by_step = imported(name), imported(name)
    chip = "test-16:reserved_bytes=512"
    compiled = compile_module(at_once, load_chip(chip), program=True)
    assert compiled.plan.reserved_bytes > 512
    with step_by_step.context, ir.Location.unknown():
        run(make("t10-reconcile", f"chip={chip} program"), step_by_step)
        run(make("t10-place", f"chip={chip} program"), step_by_step)
        assert compiled.text == module_text(step_by_step)
        run(make("t10-lower-ipu", f"chip={chip}"), step_by_step)
        stated = read_graph(find_graph(step_by_step))
        assert compiled.parts is not None
        assert _graph_text(linked(compiled.parts, compiled.plan, load_chip(chip))) == _graph_text(stated)


def _graph_text(program: DeviceProgram) -> str:
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        write_graph(program)
    return module_text(module)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit_fp16", "retnet_fp32"])
def test_a_plan_lowered_again_elsewhere_is_as_if_lowered_first(name: str) -> None:
    plan, cost, kept = compile_module(imported(name), CHIP).plan, IpuCostModel(CHIP), Kept()
    there = {buffer.name: buffer.address_bytes + 1024 for buffer in plan.buffers}
    here = {buffer.name: buffer.address_bytes for buffer in plan.buffers}
    reserved = plan.reserved_bytes
    first = link(lowered_parts(plan, CHIP, cost, kept), CHIP, here, reserved)
    again = link(lowered_parts(plan, CHIP, cost, kept), CHIP, there, reserved + 1024)
    with new_context(), ir.Location.unknown():
        text = _graph_text(again)
        assert text == _graph_text(link(lowered_parts(plan, CHIP, cost), CHIP, there, reserved + 1024))
        assert text != _graph_text(first) == _graph_text(device_program(plan, CHIP, cost))


def test_a_planned_module_prints_outside_of_its_context() -> None:
    module = imported("mlp")
    compile_module(module, CHIP)
    assert "rtensor.sub_task" in str(module)
    assert module.operation.verify()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vit_fp16", "retnet_fp32"])
def test_the_program_of_a_model_takes_the_cycles_of_its_plan(name: str) -> None:
    compiled = compile_module(imported(name), CHIP)
    plan, program = compiled.plan, device_program(compiled.plan, CHIP, IpuCostModel(CHIP))
    price = {each.name: ("compute", each.cycles) for each in program.compute_sets}
    price |= {c.name: ("shift" if c.kind == "copy_out" else c.kind, c.cycles) for c in program.copies}
    for scheduled, operator in zip(plan.operators, program.operators, strict=True):
        spent: Counter[str] = Counter()
        _add(spent, operator.steps, price, 1)
        assert Cycles(**spent) == scheduled.active.cycles, scheduled.name


def _add(spent: Counter[str], steps: tuple[Step, ...], price: dict[str, tuple[str, int]], times: int) -> None:
    """Add what steps cost when they run so many times."""
    for step in steps:
        if isinstance(step, Repeat):
            _add(spent, step.body, price, times * step.count)
            continue
        kind, cycles = price[step.compute_set if isinstance(step, Execute) else step.copy]
        spent[kind] += times * cycles


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("func.func", "func.fun", "the module does not read back"),
        ("steps = [1, 1, ", "steps = [1, 1, 7", "the module does not read back"),
        ('op_name = "', 'op_name = "x', "the module reads back as another one"),
    ],
)
def test_text_that_does_not_read_back_is_not_written(
    old: str, new: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, printed = imported("mlp"), pipeline.with_aliases

    def damaged(text: str) -> str:
        found = printed(text)
        assert old in found
        return found.replace(old, new, 1)

    monkeypatch.setattr(pipeline, "with_aliases", damaged)
    with pytest.raises(T10Error, match=message):
        compile_module(module, CHIP)


def view(path: Path, rows: int) -> Path:
    """Write a model without operators: y is x in `rows` rows of 3."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    x, y = ((TensorProto.FLOAT, shape) for shape in ([3 * rows], [rows, 3]))
    return models.save(path, nodes, {"x": x}, {"y": y}, shape=np.array([rows, 3], np.int64))


def test_a_model_without_operators_that_does_not_fit_says_so(tmp_path: Path) -> None:
    model = view(tmp_path / "view.onnx", 1 << 20)
    refusal = r"buffers as placed need ([\d,]+) bytes per core, test-4 has 638,976"
    with pytest.raises(InfeasiblePlanError, match=refusal) as caught:
        t10.compile(model, "test-4")
    found = re.search(refusal, str(caught.value))
    assert found is not None
    need = int(found[1].replace(",", ""))
    # A chip with exactly that is enough, one with less is not.
    chip = load_chip("test-4")
    t10.compile(model, chip.model_copy(update={"sram_bytes": need}))
    with pytest.raises(InfeasiblePlanError, match=f"need {need:,} bytes per core, test-4 has {need - 1:,}"):
        t10.compile(model, chip.model_copy(update={"sram_bytes": need - 1}))


def test_a_model_without_operators_is_read_back(tmp_path: Path) -> None:
    module = tmp_path / "module.mlir"
    executable = t10.compile(view(tmp_path / "view.onnx", 2), "test-4")
    assert executable.report().optimality is None, "no operator is pinned, nor planned well"
    module.write_text(executable.module, encoding="utf-8")
    for flag in ("--t10-verify-plan", "--t10-place", "--t10-expand"):
        assert t10_opt([flag, str(module), "-o", str(tmp_path / "out.mlir")]) == 0
        assert (tmp_path / "out.mlir").read_text(encoding="utf-8") == module.read_text(encoding="utf-8")
