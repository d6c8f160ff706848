"""StableHLO is read as text and as a portable artifact, and computes what JAX says it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import t10
from t10.backend import run_on_tiles
from t10.errors import InputError, UnsupportedOpError

MLP = """
module @jit_f {
  func.func public @main(%arg0: tensor<4x8xf32> loc("x"), %arg1: tensor<20x3xf32> loc("w.out")) -> (tensor<4x3xf32>) {
    %w = stablehlo.constant dense<WEIGHT> : tensor<8x20xf32>
    %0 = stablehlo.dot_general %arg0, %w, contracting_dims = [1] x [0]
      : (tensor<4x8xf32>, tensor<8x20xf32>) -> tensor<4x20xf32>
    %1 = call @activation(%0) : (tensor<4x20xf32>) -> tensor<4x20xf32>
    %2 = stablehlo.dot_general %1, %arg1, contracting_dims = [1] x [0]
      : (tensor<4x20xf32>, tensor<20x3xf32>) -> tensor<4x3xf32>
    return %2 : tensor<4x3xf32>
  }
  func.func private @activation(%arg0: tensor<4x20xf32>) -> tensor<4x20xf32> {
    %0 = chlo.erf %arg0 : tensor<4x20xf32> -> tensor<4x20xf32>
    %1 = stablehlo.maximum %0, %arg0 : tensor<4x20xf32>
    return %1 : tensor<4x20xf32>
  }
}
"""

JOINED = """
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2x5xf32>) -> tensor<8xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""

SORTED = """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %less = stablehlo.compare LT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


OPEN = "tensor<?x3xf32>"


def written(folder: Path, text: str) -> Path:
    path = folder / "model.mlir"
    path.write_text(text, encoding="utf-8")
    return path


def test_functions_are_inlined_constants_lifted_and_numbers_those_of_numpy(tmp_path: Path) -> None:
    from math import erf

    random = np.random.default_rng(1)
    weight = random.normal(size=(8, 20)).astype(np.float32)
    path = written(tmp_path, MLP.replace("WEIGHT", '"0x' + weight.tobytes().hex() + '"'))
    executable = t10.compile(path, chip="test-4")
    assert [value.name for value in executable.inputs] == ["x", "w.out"]
    assert [array.shape for array in executable.weights.values()] in ([(8, 20)], [(20, 8)])
    x, out = (random.normal(size=shape).astype(np.float32) for shape in ((4, 8), (20, 3)))
    hidden = x @ weight
    wanted = np.maximum(np.vectorize(erf)(hidden), hidden) @ out
    found = executable.run({"x": x, "w.out": out})[executable.output_names[0]]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_concatenations_are_views(tmp_path: Path) -> None:
    executable = t10.compile(written(tmp_path, JOINED), chip="test-4")
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(10, dtype=np.float32).reshape(2, 5)
    (found,) = executable.run({"arg0": a, "arg1": b}).values()
    np.testing.assert_array_equal(found, np.concatenate([a, b], axis=1).sum(axis=0))


def test_what_is_no_tensor_expression_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOpError, match=r"stablehlo\.sort"):
        t10.compile(written(tmp_path, SORTED), chip="test-4")


def test_dynamic_shapes_are_refused_with_the_type_that_is_dynamic(tmp_path: Path) -> None:
    text = (
        f"func.func @f(%a: {OPEN}) -> {OPEN} {{\n  %0 = stablehlo.abs %a : {OPEN}\n  return %0 : {OPEN}\n}}\n"
    )
    with pytest.raises(InputError, match=r"tensor<\?x3xf32>"):
        t10.compile(written(tmp_path, text), chip="test-4")


def test_integers_without_sign_are_computed_and_returned_as_such(tmp_path: Path) -> None:
    text = """func.func @main(%x: tensor<4xui8>, %y: tensor<4xui8>) -> (
        tensor<4xui8>, tensor<4xui8>, tensor<4xf32>, tensor<4xi1>, tensor<4xui8>) {
      %0 = stablehlo.maximum %x, %y : tensor<4xui8>
      %1 = stablehlo.divide %x, %y : tensor<4xui8>
      %2 = stablehlo.convert %x : (tensor<4xui8>) -> tensor<4xf32>
      %3 = stablehlo.compare LT, %x, %y : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xi1>
      return %0, %1, %2, %3, %y : tensor<4xui8>, tensor<4xui8>, tensor<4xf32>, tensor<4xi1>, tensor<4xui8>
    }"""
    executable = t10.compile(written(tmp_path, text), chip="test-4")
    x, y = np.array([255, 128, 200, 3], np.uint8), np.array([2, 129, 7, 9], np.uint8)
    due = [np.maximum(x, y), x // y, x.astype(np.float32), x < y, y]
    given = dict(zip([value.name for value in executable.inputs], (x, y), strict=True))
    for outputs in (executable.run(given), run_on_tiles(executable, given).outputs):
        for found, expected in zip(outputs.values(), due, strict=True):
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)


def test_text_that_does_not_parse_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be parsed"):
        t10.compile(written(tmp_path, "func.func @f() { stablehlo.nothing }"), chip="test-4")


def test_portable_artifacts_of_jax_keep_the_names_of_arguments(tmp_path: Path) -> None:
    jax: Any = pytest.importorskip("jax", reason="JAX is optional")

    def attention(query: Any, key: Any, value: Any) -> Any:
        return jax.nn.softmax(query @ key.T / 2.0, axis=-1) @ value

    random = np.random.default_rng(2)
    arrays = [random.normal(size=(6, 4)).astype(np.float32) for _ in range(3)]
    path = tmp_path / "attention.mlirbc"
    path.write_bytes(jax.export.export(jax.jit(attention))(*arrays).mlir_module_serialized)
    executable = t10.compile(path, chip="test-4")
    assert [value.name for value in executable.inputs] == ["query", "key", "value"]
    (found,) = executable.run(dict(zip(("query", "key", "value"), arrays, strict=True))).values()
    np.testing.assert_allclose(found, np.asarray(attention(*arrays)), rtol=1e-4, atol=1e-5)
