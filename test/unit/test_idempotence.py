"""A planning pass run twice leaves the bytes that it leaves when it runs once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.draw import drawn

from t10.dialect.mlir import ir
from t10.frontend.importer import import_model
from t10.passes.registry import make, run

MODELS = Path(__file__).parents[2] / "examples" / "models"
OPTIONS = "chip=test-16"
BESIDE = f"{OPTIONS} program"
"""The program of resnet18 takes more than the chip reserves."""
STAGES = (
    "t10-fuse",
    "t10-partition",
    "t10-align-pace",
    "t10-pareto",
    "t10-reconcile",
    "t10-expand",
    "t10-place",
    "t10-lower-ipu",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gather", *drawn(["nerf_fp32", "opt_fp16", "vit_fp16", "resnet18_fp32"], 1)]
)
def test_every_planning_pass_run_twice_is_run_once(name: str) -> None:
    module = import_model(MODELS / f"{name}.onnx").module
    with module.context, ir.Location.unknown():
        for stage in STAGES:
            options = "" if stage == "t10-fuse" else BESIDE
            run(make(stage, options), module)
            once = str(module)
            run(make(stage, options), module)
            assert str(module) == once, stage


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "options", ["reconcile=greedy", "reconcile=greedy reading=literal", "cost-model=t10-paper"]
)
def test_options_are_as_repeatable(options: str) -> None:
    module = import_model(MODELS / "mlp.onnx").module
    with module.context, ir.Location.unknown():
        for stage in STAGES[1:6]:
            run(make(stage, f"{OPTIONS} {options}"), module)
            once = str(module)
            run(make(stage, f"{OPTIONS} {options}"), module)
            assert str(module) == once, stage


@pytest.mark.slow
def test_planning_anew_gives_the_same_plan() -> None:
    module = import_model(MODELS / "bert_fp16.onnx").module
    with module.context, ir.Location.unknown():
        run(make("t10-reconcile", OPTIONS), module)
        once = str(module)
        run(make("t10-partition", OPTIONS), module)
        run(make("t10-reconcile", OPTIONS), module)
        assert str(module) == once
