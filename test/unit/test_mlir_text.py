"""Text that is not UTF-8 is refused with its line before MLIR's bindings, which it would end the process in."""

from __future__ import annotations

from pathlib import Path

import pytest

from t10.errors import InputError
from t10.frontend.importer import import_model
from t10.frontend.mlir_text import mlir_text
from t10.inspect import model_facts

TEXT = """module {
  func.func @main_graph(%x: tensor<2xf32> {onnx.name = "NAME"}) -> tensor<2xf32> {
    %0 = "onnx.Relu"(%x) {onnx_node_name = "relu"} : (tensor<2xf32>) -> tensor<2xf32>
    onnx.Return %0 : tensor<2xf32>
  }
}"""


@pytest.mark.parametrize("name", [b"\xff", b"\\FF", b"\\C3", b"a\\80b"])
def test_names_that_are_no_text_are_refused_with_their_line(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_bytes(TEXT.encode().replace(b"NAME", name))
    for read in (import_model, model_facts):
        with pytest.raises(InputError, match=r"m\.mlir:2: .*UTF-8"):
            read(path)


@pytest.mark.parametrize("name", ["é", "\\C3\\A9", "\\22", "\\0A", "plain", "\\\\FF"])
def test_text_in_any_language_is_taken(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT.replace("NAME", name), encoding="utf-8")
    assert len(import_model(path).input_names) == 1
    assert len(model_facts(path).inputs) == 1


def test_bytecode_is_no_text() -> None:
    assert mlir_text(b"ML\xefR\xff\xfe", "m") == ""
