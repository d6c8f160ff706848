"""`--frontend=onnx-mlir`: the tool is found, given the model, and what it writes is compiled; its failures are told."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from support.models import mlp

import t10
from t10.cli.entry import main
from t10.errors import InputError, T10Error

TEXT = """module attributes {"onnx-mlir.symbol-postfix" = "m"} {
  func.func @main_graph(%arg0: tensor<2x4xf32> {onnx.name = "x"}) -> (tensor<2x4xf32> {onnx.name = "y"}) {
    %0 = "onnx.Relu"(%arg0) {onnx_node_name = "/relu"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}
"""
WRITES = """
text = {text!r}
assert {flag!r} in sys.argv[1:], sys.argv
assert any(pathlib.Path(word).name == {model!r} for word in sys.argv[1:]), sys.argv
out = sys.argv[sys.argv.index("-o") + 1]
pathlib.Path(out if out.endswith(".mlir") else out + ".onnx.mlir").write_text(text)
if not out.endswith(".mlir"):
    pathlib.Path(out + ".tmp").write_text("elided")
"""
X = np.array([[1, -2, 3, -4], [0, 5, -6, 7]], np.float32)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def install(folder: Path, name: str, body: str) -> None:
    tool = folder / name
    tool.write_text(f"#!{sys.executable}\nimport pathlib, sys, os, signal\n{body}")
    tool.chmod(0o755)


def test_what_the_importer_writes_is_compiled(tools: Path, tmp_path: Path) -> None:
    install(tools, "onnx-mlir", WRITES.format(text=TEXT, flag="--EmitONNXIR", model="some.onnx"))
    model = mlp(tmp_path / "some.onnx")
    executable = t10.compile(model, "test-4", frontend="onnx-mlir")
    np.testing.assert_array_equal(executable.run({"x": X})["y"], np.maximum(X, 0))
    assert executable.source == "some.onnx"


def test_the_optimizer_alone_reads_text(tools: Path, tmp_path: Path) -> None:
    install(tools, "onnx-mlir-opt", WRITES.format(text=TEXT, flag="--shape-inference", model="some.mlir"))
    text = tmp_path / "some.mlir"
    text.write_text(TEXT)
    assert t10.compile(text, "test-4", frontend="onnx-mlir").output_names == ("y",)
    with pytest.raises(InputError, match=r"only onnx-mlir-opt is, which does not read \.onnx"):
        t10.compile(mlp(tmp_path / "some.onnx"), "test-4", frontend="onnx-mlir")


def test_the_command_says_what_to_do_without_it(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not list(tools.iterdir())
    model = str(mlp(tmp_path / "m.onnx"))
    assert (
        main(["compile", model, "-o", str(tmp_path / "out"), "--chip", "test-4", "--frontend=onnx-mlir"]) == 2
    )
    told = " ".join(capsys.readouterr().err.split())
    assert "onnx-mlir is not on the path" in told
    assert "T10 reads ONNX by itself" in told


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "print('Unsupported data type'); sys.exit(4)",
            r"refuses the model \(exit code 4\): Unsupported data type",
        ),
        ("os.kill(os.getpid(), signal.SIGABRT)", r"refuses the model \(signal SIGABRT\): it wrote nothing"),
        ("", r"wrote no \.mlir file"),
    ],
)
def test_its_failures_are_told(tools: Path, tmp_path: Path, body: str, message: str) -> None:
    install(tools, "onnx-mlir", body)
    with pytest.raises(InputError, match=message):
        t10.compile(mlp(tmp_path / "m.onnx"), "test-4", frontend="onnx-mlir")


def test_unknown_frontends_and_absent_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--frontend is 'iree'"):
        t10.compile(mlp(tmp_path / "m.onnx"), "test-4", frontend="iree")
    with pytest.raises(InputError, match="does not exist"):
        t10.compile(tmp_path / "none.onnx", "test-4", frontend="onnx-mlir")


def test_flags_are_handed_on(tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(tools, "onnx-mlir", WRITES.format(text=TEXT, flag="--shapeInformation=0:2x4", model="some.onnx"))
    model = mlp(tmp_path / "some.onnx")
    for flags in ("--O3 '--shapeInformation=0:2x4'", ["--shapeInformation=0:2x4"]):
        assert t10.compile(model, "test-4", frontend="onnx-mlir", frontend_flags=flags).output_names == ("y",)
    command = ["compile", str(model), "-o", str(tmp_path / "out"), "--chip", "test-4", "--frontend=onnx-mlir"]
    assert main([*command, "--frontend-flags=--shapeInformation=0:2x4 -O3"]) == 0
    assert main([*command, "--frontend-flags=--O3"]) == 2
    assert "AssertionError" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("frontend", "flags", "message"),
    [("t10", "--O3", "T10 reads the model itself"), ("onnx-mlir", "'--O3", "No closing quotation")],
)
def test_flags_for_nobody_are_refused(tmp_path: Path, frontend: str, flags: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        t10.compile(mlp(tmp_path / "m.onnx"), "test-4", frontend=frontend, frontend_flags=flags)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (TEXT.replace('"onnx.Relu"', '"onnx.Frob"'), ":3:10: operator '/relu'"),
        (TEXT.replace("return %0", "return %9"), " cannot be parsed"),
        (TEXT.replace("onnx.Relu", "krnl.relu"), ":3:10: operation krnl.relu"),
        (TEXT.replace("2x4", "?x4"), ":2:25: dim 0 of input 'x'"),
    ],
)
def test_errors_name_the_model_and_no_file_that_is_gone(
    tools: Path, tmp_path: Path, text: str, place: str
) -> None:
    install(tools, "onnx-mlir", WRITES.format(text=text, flag="--EmitONNXIR", model="some.onnx"))
    model = mlp(tmp_path / "some.onnx")
    with pytest.raises(T10Error) as caught:
        t10.compile(model, "test-4", frontend="onnx-mlir")
    assert f"{model} as onnx-mlir gives it{place}" in str(caught.value)
    assert "t10-onnx-mlir-" not in str(caught.value)


def test_what_the_tool_says_of_its_folder_is_left_out(tools: Path, tmp_path: Path) -> None:
    install(tools, "onnx-mlir", "print('cannot write ' + os.getcwd() + '/some.onnx.mlir'); sys.exit(1)")
    with pytest.raises(InputError, match=r"exit code 1\): cannot write some\.onnx"):
        t10.compile(mlp(tmp_path / "some.onnx"), "test-4", frontend="onnx-mlir")
