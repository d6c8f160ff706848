"""Convolutions that onnx-mlir writes as columns and a product are convolutions again; other columns are computed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import t10
from t10.dialect.mlir import ir, new_context
from t10.errors import T10Error
from t10.frontend.im2col import use_convolutions
from t10.frontend.importer import import_model
from t10.frontend.onnx_dialect import to_onnx
from t10.frontend.onnx_text import normalize
from t10.frontend.shapes import set_shapes

UNIT = """func.func @main_graph(%x: tensor<1x3x9x8xf32> {{onnx.name = "x"}}, %w: tensor<4x18xf32> {{onnx.name = "w"}},
    %b: tensor<4x1xf32> {{onnx.name = "b"}}) -> (tensor<1x4x{o}xf32> {{onnx.name = "y"}}) {{
  %0 = onnx.Constant dense<[18, {p}]> : tensor<2xi64>
  %1 = onnx.Constant dense<[1, 4, {dims}]> : tensor<4xi64>
  %2 = "onnx.Im2Col"(%x) <{{{window}}}> {{onnx_node_name = "/c/cols"}} : (tensor<1x3x9x8xf32>) -> tensor<1x18x{p}xf32>
  %3 = "onnx.Reshape"(%2, %0) : (tensor<1x18x{p}xf32>, tensor<2xi64>) -> tensor<18x{p}xf32>
  %4 = {product} -> tensor<4x{p}xf32>
  %5 = "onnx.Reshape"(%4, %1) : (tensor<4x{p}xf32>, tensor<4xi64>) -> tensor<1x4x{o}xf32>
  return %5 : tensor<1x4x{o}xf32>
}}
"""
MATMUL = '"onnx.MatMul"(%w, %3) {{onnx_node_name = "/c"}} : (tensor<4x18xf32>, tensor<18x{p}xf32>)'
GEMM = (
    '"onnx.Gemm"(%w, %3, %b) <{{alpha = 1.0 : f32, beta = 1.0 : f32, transA = 0 : si64, transB = 0 : si64}}> '
    '{{onnx_node_name = "/c"}} : (tensor<4x18xf32>, tensor<18x{p}xf32>, tensor<4x1xf32>)'
)
WINDOWS: list[tuple[str, tuple[int, int], dict[str, Any]]] = [
    ('auto_pad = "NOTSET", kernel_shape = [2, 3]', (8, 6), {}),
    ('auto_pad = "NOTSET", kernel_shape = [2, 3], pads = [1, 0, 2, 1]', (11, 7), {"pads": [1, 0, 2, 1]}),
    (
        'kernel_shape = [2, 3], dilations = [3, 2], strides = [2, 1], pads = [0, 2, 1, 2]',
        (4, 8),
        {"dilations": [3, 2], "strides": [2, 1], "pads": [0, 2, 1, 2]},
    ),
    (
        'auto_pad = "SAME_UPPER", kernel_shape = [2, 3], strides = [2, 3]',
        (5, 3),
        {"auto_pad": "SAME_UPPER", "strides": [2, 3]},
    ),
    (
        'auto_pad = "SAME_LOWER", kernel_shape = [2, 3], strides = [1, 3]',
        (9, 3),
        {"auto_pad": "SAME_LOWER", "strides": [1, 3]},
    ),
]  # fmt: skip
BATCHED = """func.func @main_graph(%x: tensor<?x2x6x6xf32> {onnx.dim_params = "0:n", onnx.name = "x"})
    -> (tensor<?x3x4x4xf32> {onnx.dim_params = "0:n", onnx.name = "y"}) {
  %w = onnx.Constant dense<VALUES> : tensor<3x2x3x3xf32>
  %b = onnx.Constant dense<[[1.0], [2.0], [3.0]]> : tensor<3x1xf32>
  %s = onnx.Constant dense<[3, 18]> : tensor<2xi64>
  %t = onnx.Constant dense<[3, 4, 4]> : tensor<3xi64>
  %0 = "onnx.Reshape"(%w, %s) : (tensor<3x2x3x3xf32>, tensor<2xi64>) -> tensor<3x18xf32>
  %1 = "onnx.Im2Col"(%x) <{kernel_shape = [3, 3]}> : (tensor<?x2x6x6xf32>) -> tensor<?x18x?xf32>
  %2 = "onnx.MatMul"(%0, %1) : (tensor<3x18xf32>, tensor<?x18x?xf32>) -> tensor<?x3x?xf32>
  %3 = "onnx.Add"(%2, %b) : (tensor<?x3x?xf32>, tensor<3x1xf32>) -> tensor<?x3x?xf32>
  %4 = "onnx.Dim"(%x) <{axis = 0 : si64}> : (tensor<?x2x6x6xf32>) -> tensor<1xi64>
  %5 = "onnx.Concat"(%4, %t) <{axis = 0 : si64}> : (tensor<1xi64>, tensor<3xi64>) -> tensor<4xi64>
  %6 = "onnx.Reshape"(%3, %5) : (tensor<?x3x?xf32>, tensor<4xi64>) -> tensor<?x3x4x4xf32>
  return %6 : tensor<?x3x4x4xf32>
}
"""


def model_of(text: str, **shapes: int) -> Any:
    with new_context(allow_unregistered=True):
        model = to_onnx(ir.Module.parse(normalize(text)))
    set_shapes(model, shapes)
    return model


def evaluated(model: Any, feeds: dict[str, NDArray[Any]]) -> NDArray[Any]:
    evaluator: Any = ReferenceEvaluator(model)
    return np.asarray(evaluator.run(None, {k: feeds[k] for k in [v.name for v in model.graph.input]})[0])


def operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node if node.op_type != "Identity"]


def random(*shape: int) -> NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def convolution(x: Any, w: Any, b: Any, **attributes: Any) -> NDArray[Any]:
    node = onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    infos = [onnx.helper.make_tensor_value_info(name, 1, None) for name in "xwby"]
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "c", infos[:3], infos[3:]))
    return evaluated(model, {"x": x, "w": w, "b": b})


@pytest.mark.parametrize("product", [MATMUL, GEMM], ids=["MatMul", "Gemm"])
@pytest.mark.parametrize(("window", "out", "attributes"), WINDOWS)
def test_a_product_with_columns_is_a_convolution(
    product: str, window: str, out: tuple[int, int], attributes: dict[str, Any]
) -> None:
    dims = {"p": out[0] * out[1], "o": f"{out[0]}x{out[1]}", "dims": f"{out[0]}, {out[1]}"}
    text = UNIT.format(window=window, product=product.format(**dims), **dims)
    x, w, b = random(1, 3, 9, 8), random(4, 18), random(4, 1)
    bias = b.reshape(4) if product is GEMM else np.zeros(4, np.float32)
    wanted = convolution(x, w.reshape(4, 3, 2, 3), bias, **attributes)
    model = model_of(text)
    feeds = {"x": x, "w": w, "b": b}
    np.testing.assert_allclose(evaluated(model, feeds), wanted, atol=1e-5)
    use_convolutions(model, "m")
    assert [name for name in operators(model) if name != "Reshape"] == ["Conv"]
    np.testing.assert_allclose(evaluated(model, feeds), wanted, atol=1e-5)


def test_a_batch_and_a_bias_of_its_own_are_taken_in() -> None:
    w = random(3, 2, 3, 3)
    model = model_of(BATCHED.replace("VALUES", str(w.tolist())), n=2)
    x = random(2, 2, 6, 6)
    wanted = convolution(x, w, np.array([1, 2, 3], np.float32))
    np.testing.assert_allclose(evaluated(model, {"x": x}), wanted, atol=1e-5)
    use_convolutions(model, "m")
    assert operators(model) == ["Conv"]
    np.testing.assert_allclose(evaluated(model, {"x": x}), wanted, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ("transB = 0", "transB = 1"),
        ("alpha = 1.0", "alpha = 2.0"),
        ("beta = 1.0", "beta = 2.0"),
    ],
)
def test_other_products_stay_as_they_are(change: str, by: str) -> None:
    dims = {"p": 48, "o": "8x6", "dims": "8, 6"}
    text = UNIT.format(window="kernel_shape = [2, 3]", product=GEMM.format(**dims), **dims)
    model = model_of(text.replace(change, by))
    use_convolutions(model, "m")
    assert "Conv" not in operators(model)
    assert any(name.startswith("Im2Col") for name in operators(model))


def test_columns_that_others_read_are_computed_as_well() -> None:
    dims = {"p": 48, "o": "8x6", "dims": "8, 6"}
    text = UNIT.format(window="kernel_shape = [2, 3]", product=MATMUL.format(**dims), **dims)
    text = text.replace("-> (tensor<1x4x8x6xf32>", "-> (tensor<1x18x48xf32>, tensor<1x4x8x6xf32>")
    text = text.replace("return %5 : ", "return %2, %5 : tensor<1x18x48xf32>, ")
    model = model_of(text)
    use_convolutions(model, "m")
    assert [name.partition("_")[0] for name in operators(model)] == ["Im2Col", "Reshape", "Conv"]


def test_an_infinity_stays_in_its_own_columns() -> None:
    """Columns that are computed, and not multiplied, are exact: no 0 · infinity."""
    text = """func.func @main_graph(%x: tensor<1x1x3x3xf32>) -> tensor<1x4x4xf32> {
  %0 = "onnx.Im2Col"(%x) <{kernel_shape = [2, 2]}> : (tensor<1x1x3x3xf32>) -> tensor<1x4x4xf32>
  return %0 : tensor<1x4x4xf32>
}"""
    x = np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3)
    x[0, 0, 0, 0] = np.inf
    columns = evaluated(model_of(text), {"arg0": x})[0]
    assert [list(row) for row in columns] == [[np.inf, 1, 3, 4], [1, 2, 4, 5], [3, 4, 6, 7], [4, 5, 7, 8]]


def test_a_namesake_of_the_function_is_not_taken_for_it(tmp_path: Path) -> None:
    dims = {"p": 48, "o": "8x6", "dims": "8, 6"}
    text = UNIT.format(window="kernel_shape = [2, 3]", product=MATMUL.format(**dims), **dims)
    model = model_of(text)
    before = operators(model)
    model.functions[0].node[-1].output[0] = "other"
    use_convolutions(model, "m")
    assert operators(model) == before


def test_a_compiled_convolution_has_no_columns_in_memory(tmp_path: Path) -> None:
    dims = {"p": 48, "o": "8x6", "dims": "8, 6"}
    text = UNIT.format(window="kernel_shape = [2, 3]", product=GEMM.format(**dims), **dims)
    file = tmp_path / "m.onnx.mlir"
    file.write_text(f"module {{\n{text}}}\n")
    module = str(import_model(file).module)
    assert "linalg.conv_2d_nchw_fchw" in module
    assert "tensor.concat" not in module
    x, w, b = random(1, 3, 9, 8), random(4, 18), random(4, 1)
    y = t10.compile(file, "test-16").run({"x": x, "w": w, "b": b})["y"]
    np.testing.assert_allclose(y, convolution(x, w.reshape(4, 3, 2, 3), b.reshape(4)), atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "strides", "pads"),
    [
        ((1, 2, 3, 4), [2, 3], [1, 0, 2, 1]),
        ((1, 2, 3, 4), [1, 2], [0, -1, 1, -2]),
        ((4, 5), [2], [1, 1]),
        ((2, 2, 2, 2, 2), [2, 1, 3], [1, 1, 1, 1, 1, 1]),
        ((2, 3), [], [1, 2]),
        ((2, 3), [3, 2], []),
    ],
)
@pytest.mark.parametrize("is_static", [True, False])
def test_zeros_go_between_elements_and_around_them(
    shape: tuple[int, ...], strides: list[int], pads: list[int], is_static: bool
) -> None:
    n_dims = len(strides) or len(pads) // 2
    steps, around = strides or [1] * n_dims, pads or [0] * (2 * n_dims)
    kind = f"tensor<{'x'.join(map(str, shape)) if is_static else 'x'.join('?' * len(shape))}xf32>"
    given = ", ".join(f"{k} = {v}" for k, v in (("strides", strides), ("pads", pads)) if v)
    text = f"""func.func @main_graph(%x: {kind} {{onnx.name = "x"}}) -> tensor<*xf32> {{
  %0 = "onnx.UpsampleAndPad"(%x) <{{{given}}}> : ({kind}) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}}"""
    x = random(*shape)
    outer = len(shape) - n_dims
    wide = np.zeros(
        (*shape[:outer], *((n - 1) * s + 1 for n, s in zip(shape[outer:], steps, strict=True))), "f4"
    )
    wide[(..., *(slice(None, None, s) for s in steps))] = x
    for dim, (before, after) in enumerate(zip(around[:n_dims], around[n_dims:], strict=True), start=outer):
        keep = slice(max(0, -before), wide.shape[dim] - max(0, -after))
        wide = wide[(*[slice(None)] * dim, keep)]
        wide = np.pad(
            wide, [(max(0, before), max(0, after)) if d == dim else (0, 0) for d in range(wide.ndim)]
        )
    np.testing.assert_array_equal(evaluated(model_of(text), {"x": x}), wide)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ('"onnx.Im2Col"(%x) <{kernel_shape = [2, 0]}>', "Im2Col of window"),
        ('"onnx.Im2Col"(%x) <{kernel_shape = [2], strides = [1, 1]}>', "Im2Col of window"),
        ('"onnx.Im2Col"(%x) <{strides = [1, 1]}>', "Im2Col of window"),
        ('"onnx.UpsampleAndPad"(%x) <{strides = [0]}>', r"UpsampleAndPad of strides \[0\]"),
        ('"onnx.UpsampleAndPad"(%x) <{strides = [2], pads = [1]}>', "UpsampleAndPad of strides"),
        (
            '"onnx.Im2Col"(%x) <{auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [2, 2]}>',
            "extents that the text does not state",
        ),
    ],
)
def test_wrong_attributes_are_refused(operation: str, message: str) -> None:
    text = f"""func.func @main_graph(%x: tensor<?x?x?x?xf32>) -> tensor<*xf32> {{
  %0 = {operation} : (tensor<?x?x?x?xf32>) -> tensor<*xf32>
  return %0 : tensor<*xf32>
}}"""
    with pytest.raises(T10Error, match=re.compile(message)):
        model_of(text)
