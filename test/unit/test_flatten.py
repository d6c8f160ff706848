"""A file of linalg with calls, loops and branches is compiled as the straight code that it means."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import t10
from t10.errors import InputError
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
