"""A file of linalg with calls, loops and branches is compiled as the straight code that it means."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import t10
from t10.dialect.mlir import ir, new_context
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.flatten import flatten
from t10.frontend.importer import import_model

TEXT = """
func.func private @scaled(%x: tensor<4xf32>, %by: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.mul ins(%x, %by : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32> {t10.name = "x"}, %rows: tensor<3x4xf32> {t10.name = "rows"}) -> tensor<4xf32> {
  %low = arith.constant 0 : index
  %high = arith.constant 3 : index
  %step = arith.constant 1 : index
  %r = scf.for %i = %low to %high step %step iter_args(%y = %x) -> (tensor<4xf32>) {
    %row = tensor.extract_slice %rows[%i, 0] [1, 4] [1, 1] : tensor<3x4xf32> to tensor<4xf32>
    %z = func.call @scaled(%y, %row) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    scf.yield %z : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""


def test_calls_and_loops_are_computed(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT)
    model = import_model(file)
    x, rows = np.array([1, 2, 3, 4], np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)
    assert "call" not in str(model.module)
    y = t10.compile(model, "test-4").run({"x": x, "rows": rows})["result0"]
    np.testing.assert_array_equal(y, x * rows.prod(axis=0))


def test_a_file_of_several_models_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT + TEXT.replace("@scaled", "@other").replace("@main", "@second"))
    with pytest.raises(InputError, match=r"m\.mlir has 2 functions with a body \(expected one\)"):
        import_model(file)


@pytest.mark.parametrize("operation", ["arith.addf", "stablehlo.add"])
def test_calls_that_double_again_and_again_are_refused_before_they_are_inlined(
    operation: str, tmp_path: Path
) -> None:
    sums = f"%y = {operation} %x, %x : tensor<4xf32>\n  return %y : tensor<4xf32>"
    text = [f"func.func private @f0(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {sums}\n}}"]
    for i in range(1, 41):
        visibility, name = ("", "main") if i == 40 else ("private ", f"f{i}")
        text.append(
            f"func.func {visibility}@{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n"
            f"  %a = func.call @f{i - 1}(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
            f"  %b = func.call @f{i - 1}(%a) : (tensor<4xf32>) -> tensor<4xf32>\n"
            "  return %b : tensor<4xf32>\n}"
        )
    file = tmp_path / "m.mlir"
    file.write_text("\n".join(text))
    with pytest.raises(UnsupportedOpError, match=r"'func.call' op would be written out to more"):
        import_model(file)


def test_loops_are_written_out_in_a_time_that_grows_with_what_is_written() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %low = arith.constant 0 : index
  %step = arith.constant 1 : index
  %high = arith.constant 30000 : index
  %r = scf.for %i = %low to %high step %step iter_args(%y = %x) -> tensor<4xf32> {
    %never = arith.constant false
    %z = scf.if %never -> tensor<4xf32> {
      scf.yield %x : tensor<4xf32>
    } else {
      scf.yield %y : tensor<4xf32>
    }
    scf.yield %z : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        began = time.process_time()
        flatten(module)
        assert time.process_time() - began < 20
        assert len(module.body.operations[0].regions[0].blocks[0].operations) == 1


def test_private_functions_alone_are_inlined_into_the_one_that_is_not_called(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT.replace("func.func @main", "func.func private @main"))
    assert import_model(file).input_names == ("x", "rows")


def test_errors_of_text_without_a_module_name_its_file(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(TEXT.replace("linalg.mul", "linalg.copy"))
    with pytest.raises(InputError, match=rf'error: "{file}":\d+:\d+'):
        import_model(file)
    file.write_text(
        "func.func @main(%x: tensor<4xf32>, %n: i1) -> tensor<4xf32> {\n"
        "  %y = scf.if %n -> tensor<4xf32> {\n    scf.yield %x : tensor<4xf32>\n"
        "  } else {\n    scf.yield %x : tensor<4xf32>\n  }\n  return %y : tensor<4xf32>\n}\n"
    )
    with pytest.raises(UnsupportedOpError) as caught:
        import_model(file)
    assert caught.value.location == f"{file}:2:8"
