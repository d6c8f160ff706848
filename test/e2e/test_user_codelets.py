"""Models compiled with codelets of a user's: planned with their costs, executed from their code, and remembered."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

import t10
from t10.backend import lowered, run_on_tiles
from t10.cli import main

DECLARED = Path(__file__).resolve().parents[2] / "examples" / "codelets" / "codelets.yaml"
ROWS, COLUMNS, SLOPE = 20, 50, 0.125


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=SLOPE)
    shape = (TensorProto.FLOAT, [ROWS, COLUMNS])
    return save(tmp_path_factory.mktemp("model") / "leaky.onnx", [node], {"x": shape}, {"y": shape})


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    return save(
        tmp_path_factory.mktemp("model") / "sums.onnx",
        [node],
        {"x": (TensorProto.FLOAT, [40, 256])},
        {"y": (TensorProto.FLOAT, [256])},
        axes=np.array([0], np.int64),
    )


def codelet_names(executable: t10.Executable) -> list[str]:
    return [codelet.name.rpartition("_")[0] for codelet in lowered(executable).program.codelets]


def test_code_in_cpp_is_planned_with_its_costs_and_executed_on_tiles(leaky: Path) -> None:
    executable = t10.compile(leaky, "test-16", codelets=[DECLARED])
    assert set(codelet_names(executable)) == {"User_LeakyReluFloat"}
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    found = run_on_tiles(executable, {"x": x}).outputs["y"]
    assert np.array_equal(found, np.where(x >= 0, x, x * np.float32(SLOPE)))
    assert np.array_equal(found, executable.run({"x": x})["y"])
    # 120 cycles, and 60 for every six elements of the largest part.
    cycles = executable.report().cycles.compute
    assert (cycles - 120) % 60 == 0


def test_assembly_of_the_supervisor_is_executed_on_tiles(sums: Path) -> None:
    executable = t10.compile(sums, "test-16", codelets=[DECLARED])
    assert codelet_names(executable) == ["User_ReduceAddFloat"]
    x = np.random.default_rng(0).standard_normal((40, 256)).astype(np.float32)
    assert np.allclose(run_on_tiles(executable, {"x": x}).outputs["y"], x.sum(axis=0), atol=1e-5)


def test_codelets_of_a_folder_run_only_if_they_are_named_again(
    leaky: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    mine = shutil.copytree(DECLARED.parent, tmp_path / "mine")
    given = str(mine / DECLARED.name)
    assert (
        main(
            ["compile", str(leaky), "-o", str(folder), "--chip", "test-16", "--codelets", given, "--no-cache"]
        )
        == 0
    )
    assert "class User_LeakyReluFloat" in (folder / "program" / "codelets.cpp").read_text()
    assert codelet_names(t10.Executable.load(folder, codelets=[given]))[0] == "User_LeakyReluFloat"
    assert main(["run", str(folder), "--engine", "iss", "--codelets", given]) == 0
    assert main(["run", str(folder), "--engine", "iss"]) == 2
    assert f"add --codelets {given}" in capsys.readouterr().err
    for name, line in (("leaky_relu_float.cpp", "\n"), ("common.h", "\n.set OTHER, 1\n")):
        text = (mine / name).read_text()
        (mine / name).write_text(text + line)
        assert main(["run", str(folder), "--codelets", given]) == 2
        assert f"is not the codelets file that {folder} was made with" in capsys.readouterr().err
        (mine / name).write_text(text)
    assert main(["run", str(folder), "--codelets", given]) == 0


def test_without_declarations_the_bundled_families_are_used(leaky: Path) -> None:
    names = codelet_names(t10.compile(leaky, "test-16"))
    assert not any(name.startswith("User_") for name in names)
