"""Every bundled model, compiled, executed core by core and compared: the road from end to end."""

from __future__ import annotations

import pytest
from support.compiled import FIRST, MODELS, SECOND, compiled
from support.draw import commit, drawn

from t10.arrays import read_arrays
from t10.driver import compile
from t10.random_inputs import random_inputs
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference

ARCHITECTURES = sorted(path.stem for path in MODELS.glob("*_fp[13]*.onnx"))
ON_ALL_CORES = drawn(FIRST, 3, f"{commit()} all cores")
"""ResNet-18 in full size runs on 1,472 cores besides (`test_full_resnet18`)."""
SINGLE = ("mlp", "conv", "depthwise", "gather", "softmax", "functions", "local_function", "external")


def check(name: str, chip: str, *, program: bool = False) -> None:
    path = MODELS / f"{name}.onnx"
    executable = compiled(name, chip, program=program)
    inputs, references = split_reference(read_arrays(path.with_suffix(".npz")))
    graph = executable.plan.graph
    result = executable.execute(inputs)
    comparisons = compare(
        result.outputs, references or run_onnx_runtime(path, inputs), default_tolerance(graph)
    )
    assert comparisons
    assert [each for each in comparisons if not each.is_within] == []
    assert result.peak_bytes == executable.plan.peak_bytes <= executable.chip.sram_bytes
    assert result.cycles == executable.report().total_cycles


def test_the_seven_architectures_are_bundled_in_both_precisions() -> None:
    names = {"bert", "vit", "resnet18", "nerf", "opt", "llama2", "retnet"}
    assert set(ARCHITECTURES) == {f"{name}_{dtype}" for name in names for dtype in ("fp16", "fp32")}


@pytest.mark.slow
@pytest.mark.parametrize("name", SECOND)
def test_it_runs_right_on_64_cores(name: str) -> None:
    """With room for its program, as `test_device_models` has compiled it."""
    check(name, "test-64", program=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SINGLE)
def test_a_single_operator_runs_right_on_64_cores(name: str) -> None:
    check(name, "test-64")


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_ALL_CORES)
def test_it_runs_right_on_1472_cores(name: str) -> None:
    check(name, "ipu-mk2")


@pytest.mark.slow
@pytest.mark.parametrize("chip", ["test-4", "test-16"])
def test_other_inputs_run_right_too(chip: str) -> None:
    path = MODELS / "bert_fp32.onnx"
    executable = compile(path, chip)
    for seed in range(3):
        inputs = random_inputs(executable.plan.graph, seed)
        outputs = executable.run(inputs)
        assert all(each.is_within for each in compare(outputs, run_onnx_runtime(path, inputs), 1e-4))
