"""`t10.compile` and `Executable`: right numbers, clear refusals, and a folder that gives the same executable back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import models
from support.folders import take_as_it_is

import t10
from t10.chip import load_chip
from t10.driver import Executable, checked_inputs
from t10.errors import InfeasiblePlanError, InputError, T10Error, UnsupportedOpError
from t10.random_inputs import random_inputs
from t10.reference import run_onnx_runtime


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    return t10.compile(models.mlp(tmp_path_factory.mktemp("models") / "mlp.onnx"), chip="test-16")


def x_of(executable: Executable) -> dict[str, Any]:
    return random_inputs(executable.plan.graph, seed=1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 5e-3)])
def test_runs_to_the_numbers_of_onnx_runtime(tmp_path: Path, dtype: str, tolerance: float) -> None:
    path = models.mlp(tmp_path / "mlp.onnx", dtype)
    executable = t10.compile(path, chip="test-16")
    x = x_of(executable)
    found, expected = executable.run(x)["y"], run_onnx_runtime(path, x)["y"]
    assert found.dtype == dtype
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


def test_integers_and_lookups_are_exact(tmp_path: Path) -> None:
    path = models.embedding(tmp_path / "embedding.onnx")
    executable = t10.compile(path, chip="test-16")
    inputs = random_inputs(executable.plan.graph, seed=3)
    found, expected = executable.run(inputs), run_onnx_runtime(path, inputs)
    assert all(np.array_equal(found[name], expected[name]) for name in ("y", "twice"))


def test_same_model_gives_same_files(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    for name in ("one", "two"):
        t10.compile(path, chip="test-4").save(tmp_path / name)
    for file in ("module.mlir", "plan.json", "weights.npz"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_a_saved_folder_gives_the_same_executable_back(executable: Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "out")
    loaded = Executable.load(tmp_path / "out")
    assert loaded.plan == executable.plan
    assert loaded.chip == executable.chip
    assert loaded.module == executable.module
    x = x_of(executable)
    assert np.array_equal(loaded.run(x)["y"], executable.run(x)["y"])


def test_a_chip_of_ones_own_is_saved_with_the_plan(tmp_path: Path) -> None:
    chip = load_chip("test-4").model_copy(update={"name": "mine", "n_cores": 3})
    t10.compile(models.mlp(tmp_path / "mlp.onnx"), chip=chip).save(tmp_path / "out")
    assert Executable.load(tmp_path / "out").chip == chip


def test_saving_again_replaces_files_and_keeps_others(executable: Executable, tmp_path: Path) -> None:
    executable.save(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    executable.save(tmp_path)
    names = {"manifest.json", "module.mlir", "plan.json", "report.json", "weights.npz", "notes.txt"}
    assert {file.name for file in tmp_path.iterdir()} == names


def test_constants_are_those_of_the_module(tmp_path: Path) -> None:
    row = np.array([1, 2, 3, 4], np.float32)
    model = tmp_path / "add.mlir"
    model.write_text("""func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %row = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.add ins(%x, %row : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }""")
    executable = t10.compile(model, chip="test-4")
    executable.save(tmp_path / "out")
    x = x_of(executable)
    (value,) = x.values()
    (found,) = Executable.load(tmp_path / "out").run(x).values()
    assert np.array_equal(found, value + row)
    module = tmp_path / "out" / "module.mlir"
    module.write_text(module.read_text().replace("3.000000e+00", "7.000000e+00"))
    take_as_it_is(tmp_path / "out")
    (found,) = Executable.load(tmp_path / "out").run(x).values()
    assert np.array_equal(found, value + np.array([1, 2, 7, 4], np.float32))


def test_symbolic_dims_take_the_extents_given(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx", rows="batch")
    executable = t10.compile(path, chip="test-4", shapes={"batch": 3})
    assert executable.inputs[0].shape == (3, 24)


def test_a_dim_left_open_is_refused_with_what_to_say(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="batch"):
        t10.compile(models.mlp(tmp_path / "mlp.onnx", rows="batch"), chip="test-4")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "inputs missing: x"),
        ({"x": np.zeros((4, 24), np.float32), "z": 0}, "unknown inputs: z"),
        ({"x": np.zeros((4, 23), np.float32)}, r"shape \(4, 23\), expected \(4, 24\)"),
        ({"x": np.zeros((4, 24), np.float64)}, "type float64, expected float32"),
        ({"x": np.zeros((4, 24), np.complex64)}, "type complex64"),
    ],
)
def test_wrong_inputs_are_refused(executable: Executable, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        executable.run(inputs)


def test_inputs_of_a_narrower_type_and_lists_are_taken(executable: Executable) -> None:
    narrow = checked_inputs(executable.inputs, {"x": np.ones((4, 24), np.float16)})
    listed = checked_inputs(executable.inputs, {"x": [[1.0] * 24] * 4})
    assert narrow["x"].dtype == listed["x"].dtype == np.float32
    assert np.array_equal(narrow["x"], listed["x"])


def test_a_model_without_its_weights_is_planned_but_not_run(tmp_path: Path) -> None:
    executable = t10.compile(models.without_data(tmp_path / "mlp.onnx"), chip="test-4")
    assert len(executable.missing_weights) == 3
    executable.save(tmp_path / "out")
    loaded = Executable.load(tmp_path / "out")
    assert loaded.plan == executable.plan
    with pytest.raises(InputError, match=r"3 weights have no values.*external data"):
        loaded.run(x_of(loaded))


def test_what_is_not_supported_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOpError, match="positions"):
        t10.compile(models.unsupported(tmp_path / "model.onnx"), chip="test-4")


def test_what_does_not_fit_names_operator_and_bytes(tmp_path: Path) -> None:
    with pytest.raises(InfeasiblePlanError, match="bytes"):
        t10.compile(models.too_large(tmp_path / "model.onnx"), chip="test-4")


def test_a_model_in_memory_is_refused_with_what_to_do() -> None:
    given: Any = object()
    with pytest.raises(InputError, match="the model is of type object"):
        t10.compile(given, chip="test-16")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shapes": {"x": "1x2"}}, "shapes: found '1x2' of type str for x, expected a number or a tuple"),
        ({"shapes": [1]}, r"shapes: found \[1\] of type list, expected a mapping"),
        ({"shapes": {"x": (1, True)}}, "expected a number or a tuple of numbers"),
        ({"options": {"gap": 1}}, r"options: found \{'gap': 1\} of type dict, expected .*PlanOptions"),
        ({"constants": [1]}, "constants: found .* expected a mapping from names, as {'k': 3}"),
        ({"bounds": {1: 2}}, "bounds: found .* expected a mapping from names"),
        ({"codelets": "none.yaml"}, "none.yaml"),
        ({"cache": False}, "cache: found False of type bool, expected .*PlanCache"),
    ],
)
def test_a_wrong_argument_is_one_clear_error(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        t10.compile(models.mlp(tmp_path / "mlp.onnx"), chip="test-16", **given)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "inputs: found None of type NoneType, expected a mapping"),
        (np.ones(3), "inputs: found array.* expected a mapping"),
        ({"x": [[1.0, 2.0], [3.0]]}, "input x is no array"),
    ],
)
def test_wrong_inputs_are_one_clear_error(inputs: Any, message: str, tmp_path: Path) -> None:
    executable = t10.compile(models.mlp(tmp_path / "mlp.onnx"), chip="test-16")
    with pytest.raises(InputError, match=message):
        executable.run(inputs)


def test_loading_what_is_no_folder_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="t10 compile"):
        Executable.load(tmp_path / "none")


def test_an_executable_shows_itself_in_a_line(executable: Executable) -> None:
    shown = repr(executable)
    assert len(shown) < 240
    assert "\n" not in shown
    total = executable.report().total_cycles
    for part in (
        executable.chip.name,
        f"{total:,} cycles",
        f"{len(executable.plan.operators)} operators",
        "bytes per core",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "module.mlir: module has 0 functions"),
        (
            "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n",
            "module.mlir",
        ),
    ],
)
def test_a_module_of_another_level_is_refused_by_name(
    executable: Executable, tmp_path: Path, text: str, message: str
) -> None:
    executable.save(tmp_path / "out")
    (tmp_path / "out" / "module.mlir").write_text(text)
    take_as_it_is(tmp_path / "out")
    with pytest.raises(T10Error, match=message):
        Executable.load(tmp_path / "out")


def test_a_broken_weights_file_is_an_input_error(executable: Executable, tmp_path: Path) -> None:
    executable.save(tmp_path / "out")
    (tmp_path / "out" / "weights.npz").write_bytes(b"PK\x03\x04 not really")
    take_as_it_is(tmp_path / "out")
    with pytest.raises(InputError, match=r"weights.npz"):
        Executable.load(tmp_path / "out")


def test_random_inputs_follow_from_the_seed(executable: Executable) -> None:
    graph = executable.plan.graph
    assert np.array_equal(random_inputs(graph, 5)["x"], random_inputs(graph, 5)["x"])
    assert not np.array_equal(random_inputs(graph, 5)["x"], random_inputs(graph, 6)["x"])


def test_progress_names_the_stages(tmp_path: Path) -> None:
    seen: list[str] = []
    executable = t10.compile(
        models.mlp(tmp_path / "mlp.onnx"),
        chip="test-4",
        progress=lambda stage, done, total: seen.append(stage),
    )
    assert list(dict.fromkeys(seen))[:2] == ["import", "fuse"]
    assert set(executable.planner_seconds) == set(seen)
    executable = replace(executable, planner_seconds={})
    assert executable.report().planner_seconds == {}


def test_a_model_is_compiled_and_run_under_the_cost_model_that_was_named(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    ours, paper = (t10.compile(path, chip="test-16", cost_model=name) for name in ("ipu", "t10-paper"))
    assert (ours.report().cost_model, paper.report().cost_model) == ("ipu", "t10-paper")
    assert 't10.cost_model = "t10-paper"' in paper.module
    for each in (ours, paper):
        x = {"x": models.weights(9, 4, 24)}
        assert each.execute(x).cycles == sum(op.active.cycles.total for op in each.plan.operators)
    with pytest.raises(InputError, match="unknown cost model"):
        t10.compile(path, chip="test-16", cost_model="fast")
