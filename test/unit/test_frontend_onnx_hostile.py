"""Text that is no text of onnx-mlir, although MLIR reads it: one clear error each, never a traceback."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from t10.errors import T10Error
from t10.frontend.importer import import_model

TEXT = """module {
  func.func @main_graph(%arg0: tensor<4x3xf32> {onnx.name = "x"}) -> (tensor<4x3xf32> {onnx.name = "y"}) {
    %0 = onnx.Constant dense<[4, 4, 2]> : tensor<3xi64>
    %1 = "onnx.ReverseSequence"(%arg0, %0) <{batch_axis = 1 : si64, time_axis = 0 : si64}> {onnx_node_name = "r"}
      : (tensor<4x3xf32>, tensor<3xi64>) -> tensor<4x3xf32>
    %2 = "onnx.Softmax"(%1) <{axis = 1 : si64}> : (tensor<4x3xf32>) -> tensor<4x3xf32>
    onnx.Return %2 : tensor<4x3xf32>
  }
  "onnx.EntryPoint"() <{func = @main_graph}> : () -> ()
}
"""
BROKEN = {
    "entry point without function": ("<{func = @main_graph}>", "", "onnx.EntryPoint makes no sense"),
    "entry point with text": ("func = @main_graph", 'func = "main_graph"', "onnx.EntryPoint makes no sense"),
    "name that is no text": ('onnx.name = "x"', "onnx.name = f32", "func.func makes no sense"),
    "dims without numbers": ('onnx.name = "x"', 'onnx.dim_params = "a:b"', "func.func makes no sense"),
    "node name that is no text": (
        'onnx_node_name = "r"',
        "onnx_node_name = 7",
        "onnx.ReverseSequence makes no sense",
    ),
    "mixed list": ("axis = 1 : si64}> :", 'axis = [1, "a"]}> :', r"onnx.Softmax makes no sense|breaks|axis"),
    "axis beyond the rank": ("time_axis = 0", "time_axis = 7", "ReverseSequence"),
    "lengths beyond the axis": ("[4, 4, 2]", "[4, 4, 9]", "lengths"),
    "another dialect": ('"onnx.Softmax"', '"tosa.exp"', "tosa.exp"),
    "no result": ("onnx.Return %2 : tensor<4x3xf32>", "onnx.Return", "."),
    "unfinished": ("  }\n", "", "cannot be parsed"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_text_is_one_clear_error(tmp_path: Path, what: str) -> None:
    old, new, message = BROKEN[what]
    assert old in TEXT
    file = tmp_path / "m.mlir"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(T10Error, match=message):
        import_model(file)


def test_text_without_a_function_is_refused(tmp_path: Path) -> None:
    body = TEXT.split("{\n", 1)[1].split('  "onnx.EntryPoint"')[0]
    file = tmp_path / "m.mlir"
    file.write_text(f'"onnx.If"() ({{\n{body}}}) : () -> ()\n')
    with pytest.raises(T10Error, match="0 functions with a body"):
        import_model(file)


def test_changed_words_never_leave_a_traceback(tmp_path: Path) -> None:
    draw = random.Random(0)
    words = re.findall(r'"[^"]*"|[\w.%@$]+|\s+|.', TEXT)
    places = [i for i, word in enumerate(words) if not word.isspace()]
    file = tmp_path / "m.mlir"
    n_read = 0
    for _ in range(60):
        changed = list(words)
        changed[draw.choice(places)] = words[draw.choice(places)]
        file.write_text("".join(changed))
        try:
            import_model(file)
            n_read += 1
        except T10Error:
            continue
    assert n_read < 60
