"""`t10 verify TEXT --reference MODEL`: what onnx-mlir changed on the way is found; without it that is not claimed."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from t10.cli.entry import main

TEXT = """module {
  func.func @main_graph(%arg0: tensor<4x8xf32> {onnx.name = "x"}) -> (tensor<4x8xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<1.0> : tensor<8xf32>
    %1 = "onnx.NoValue"() {value} : () -> none
    %Y, %Mean, %InvStdDev = "onnx.LayerNormalization"(%arg0, %0, %1) <{epsilon = 1.0e-02 : f32}>
      {onnx_node_name = "norm"} : (tensor<4x8xf32>, tensor<8xf32>, none) -> (tensor<4x8xf32>, none, none)
    return %Y : tensor<4x8xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}
"""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "m.onnx.mlir"
    file.write_text(TEXT)
    return file


def source(folder: Path, epsilon: str, name: str = "x") -> Path:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[4,8] {name}) => (float[4,8] y)
        <float[8] one = {{1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}}> {{
            y = LayerNormalization <epsilon: float = {epsilon}> ({name}, one)
        }}"""
    )
    file = folder / f"{name}{epsilon}.onnx"
    file.write_bytes(model.SerializeToString())
    return file


def verify(text: Path, *more: str) -> int:
    return main(["verify", str(text), "--chip", "test-4", "--seeds", "1", *more])


def test_a_text_is_compared_with_itself_and_that_is_said(
    text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(text) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "not compared: m.onnx.mlir with the model that it was made from (--reference MODEL.onnx)" in told


def test_a_changed_epsilon_is_found(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(text, "--reference", str(source(tmp_path, "0.01"))) == 0
    assert "not compared" not in capsys.readouterr().out
    assert verify(text, "--reference", str(source(tmp_path, "0.00001"))) == 1
    assert "FAILED" in capsys.readouterr().out


def test_a_model_of_other_inputs_is_no_reference(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(text, "--reference", str(source(tmp_path, "0.01", "other"))) == 2
    assert "has no input 'x' (inputs: other)" in " ".join(capsys.readouterr().err.split())
