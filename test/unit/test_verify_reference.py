"""`t10 verify TEXT --reference MODEL`: what onnx-mlir changed on the way is found; without it that is not claimed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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


def verified(folder: Path, graph: str, *more: str) -> int:
    file = folder / "m.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')
    file.write_bytes(model.SerializeToString())
    return main(["verify", str(file), "--chip", "test-4", "--seeds", "1", *more])


@pytest.mark.parametrize("shape", ["past=2x0x4", "length=0"])
def test_a_cache_that_is_empty_has_no_rows_in_the_reference_either(shape: str, tmp_path: Path) -> None:
    graph = """g (float[2,length,4] past, float[2,3,4] new) => (float[2,total,4] y) {
        both = Concat <axis = 1> (past, new)
        y = Neg (both)
    }"""
    assert verified(tmp_path, graph, "--shape", shape) == 0


def test_an_extent_is_that_of_a_dim_where_an_input_of_its_name_has_more_dims(tmp_path: Path) -> None:
    assert (
        verified(
            tmp_path, "g (float[past,4] past) => (float[past,4] y) { y = Neg (past) }", "--shape", "past=3"
        )
        == 0
    )


def test_bf16_is_compared_in_f32(tmp_path: Path) -> None:
    graph = "g (bfloat16[4,8] x, bfloat16[8,4] w) => (bfloat16[4,4] y) { y = MatMul (x, w) }"
    assert verified(tmp_path, graph, "--bf16", "f32") == 0


def test_words_between_two_conversions_are_floats_that_are_rounded(tmp_path: Path) -> None:
    graph = """g (float[4,8] x, float[8,4] w) => (float[4,4] y)
        <float s = {0.001}, uint16 z = {30000}, int16 v = {-5}, int64[2] places = {3, 2}> {
        q = QuantizeLinear (x, s, z)
        none = Constant <value: tensor = int64 {0}> ()
        last = Loop (none, , x) <
            body: graph = step (int64 i, bool go, float[4,8] v) => (bool on, float[4,8] made) {
                on = Identity (go)
                made = DequantizeLinear (q, s, z)
            }
        >
        upper, rest = Split <axis = 0, num_outputs = 2> (q)
        lower = Gather <axis = 0> (q, places)
        u1 = DequantizeLinear (upper, s, z)
        l1 = DequantizeLinear (lower, s, z)
        both = Concat <axis = 0> (u1, l1)
        x1 = Add (both, last)
        p = QuantizeLinear (w, s, v)
        t = Transpose (p)
        w1 = DequantizeLinear (t, s, v)
        w2 = Transpose (w1)
        y = MatMul (x1, w2)
    }"""
    file = tmp_path / "m.onnx"
    file.write_bytes(
        onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {graph}').SerializeToString()
    )
    assert main(["verify", str(file), "--chip", "test-4", "--seeds", "2"]) == 0


def test_outputs_have_the_shapes_that_their_operators_make(tmp_path: Path) -> None:
    """ONNX's inference says 8 bins of a one-sided STFT, and 11 rows of the ConvTranspose."""
    graph = """g (float[1,32,1] x, float[1,3,5,5] z) => (float[b,frames,bins,parts] y, float[b,c,h,w] o)
        <int64 step = {4}, int64 length = {8}, float[3,2,3,3] weights> {
        y = STFT (x, step, , length)
        o = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 2], output_padding = [1, 1]> (z, weights)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')
    weights = np.linspace(-1, 1, 54, dtype=np.float32).reshape(3, 2, 3, 3)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "weights"))
    file = tmp_path / "m.onnx"
    file.write_bytes(model.SerializeToString())
    assert main(["verify", str(file), "--chip", "test-4", "--seeds", "1"]) == 0
