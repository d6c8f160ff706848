"""`--dtype fp16` makes the model an exporter would have made in half precision; names stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx as untyped_onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import models

from t10.cli.entry import main
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.half import LARGEST, half_array
from t10.frontend.importer import import_model, import_proto

onnx: Any = untyped_onnx

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "models"
node = helper.make_node


def _model(nodes: list[Any], kind: int = TensorProto.FLOAT, **constants: Any) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, [1, 1, 4, 4])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx.shape_inference.infer_shapes(model)


def _types(module: Any) -> str:
    """Return the signature of the one function of a module."""
    return next(line for line in str(module).splitlines() if "func.func" in line)


def test_rounding_saturates_and_keeps_infinities() -> None:
    values = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 1.0009765625, 65504.0], np.float32)
    found = half_array(values)
    expected = np.array([LARGEST, -LARGEST, np.inf, -np.inf, np.nan, 1.0009765625, 65504.0])
    np.testing.assert_array_equal(found.astype(np.float64), expected)
    assert half_array(np.array([1e300, -1e300])).tolist() == [LARGEST, -LARGEST]


@pytest.mark.parametrize("name", ["mlp", "bert_fp32"])
def test_all_floats_of_a_model_become_f16_and_names_stay(name: str) -> None:
    wide = import_model(EXAMPLES / f"{name}.onnx")
    half = import_model(EXAMPLES / f"{name}.onnx", dtype="fp16")
    assert (half.input_names, half.output_names, half.weight_names) == (
        wide.input_names,
        wide.output_names,
        wide.weight_names,
    )
    assert "xf32>" not in _types(half.module)
    assert "xf16>" in _types(half.module)
    for weight in half.weight_names:
        assert half.weights[weight].dtype == (
            np.float16 if wide.weights[weight].dtype == np.float32 else wide.weights[weight].dtype
        )
        found, given = (
            np.asarray(half.weights[weight], np.float64),
            np.asarray(wide.weights[weight], np.float64),
        )
        np.testing.assert_allclose(found, given, rtol=1e-3)


def test_a_model_without_values_is_converted_too() -> None:
    half = import_model(EXAMPLES / "weight_free.onnx", dtype="fp16")
    assert half.weights == {}
    assert "xf32>" not in _types(half.module)


def test_what_takes_no_f16_keeps_its_type() -> None:
    """The scales of a Resize are f32 only; the same constant elsewhere becomes f16."""
    nodes = [
        node("Resize", ["x", "", "scales"], ["r"], name="up", mode="nearest"),
        node("Add", ["r", "scales"], ["y"], name="again"),
    ]
    imported = import_proto(
        _model(nodes, scales=np.array([1, 1, 1, 1], np.float32)), source="m", dtype="fp16"
    )
    assert "xf32>" not in _types(imported.module)


@pytest.mark.parametrize("kind", [TensorProto.DOUBLE, TensorProto.BFLOAT16])
def test_other_wide_floats_are_converted(kind: int) -> None:
    model = _model([node("Cast", ["x"], ["c"], to=kind), node("Relu", ["c"], ["y"])], kind)
    assert _types(import_proto(model, source="m", dtype="fp16").module).count("f16") >= 2


@pytest.mark.parametrize(("dtype", "text"), [("bf16=f32", "f32"), ("bf16=f16", "f16"), ("fp16", "f16")])
def test_bf16_is_computed_in_another_type(dtype: str, text: str) -> None:
    weights = np.linspace(-3, 3, 20, dtype=np.float32).astype(ml_dtypes.bfloat16)
    nodes = [
        node("Cast", ["x"], ["c"], to=TensorProto.BFLOAT16),
        node("Mul", ["c", "w"], ["m"]),
        node("Cast", ["m"], ["y"], to=TensorProto.FLOAT),
    ]
    model = _model(nodes, w=weights)
    del model.graph.input[0].type.tensor_type.shape.dim[:]
    for extent in (4, 20):
        model.graph.input[0].type.tensor_type.shape.dim.add().dim_value = extent
    imported = import_proto(model, source="m", dtype=dtype)
    assert imported.weights["w"].dtype == np.dtype(f"float{text[1:]}")
    np.testing.assert_array_equal(imported.weights["w"].astype(np.float32), weights.astype(np.float32))
    assert "bf16" not in _types(imported.module)
    assert f"xf{text[1:]}>" in _types(imported.module)


def test_bf16_without_a_choice_is_refused_and_says_so() -> None:
    model = _model(
        [node("Cast", ["x"], ["c"], to=TensorProto.BFLOAT16), node("Relu", ["c"], ["y"])],
        TensorProto.BFLOAT16,
    )
    with pytest.raises(UnsupportedOpError, match="--bf16 f32"):
        import_proto(model, source="m")


BF16_WEIGHTS = np.linspace(-3, 3, 4 * 20, dtype=np.float32).reshape(4, 20).astype(ml_dtypes.bfloat16)


def _product_of_casts(to: int, *, is_node: bool = False) -> Any:
    nodes = [
        node("Cast", ["w"], ["c"], to=to),
        node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        node("MatMul", ["x", "f"], ["y"]),
    ]
    if not is_node:
        return _model(nodes, w=BF16_WEIGHTS)
    return _model([node("Constant", [], ["w"], value=numpy_helper.from_array(BF16_WEIGHTS)), *nodes])


@pytest.mark.parametrize("is_node", [False, True])
@pytest.mark.parametrize("to", [TensorProto.FLOAT, TensorProto.FLOAT16])
def test_bf16_weights_that_are_cast_are_f32(to: int, is_node: bool, tmp_path: Path) -> None:
    model = _product_of_casts(to, is_node=is_node)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    imported = import_model(tmp_path / "m.onnx")
    assert imported.weights["w"].dtype == np.float32
    np.testing.assert_array_equal(imported.weights["w"], BF16_WEIGHTS.astype(np.float32))
    assert main(["verify", str(tmp_path / "m.onnx"), "--chip", "test-4", "--no-cache"]) == 0


def test_bf16_weights_that_are_also_read_as_they_are_need_a_choice() -> None:
    model = _product_of_casts(TensorProto.FLOAT)
    model.graph.node.append(node("Transpose", ["w"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.BFLOAT16, [20, 4]))
    with pytest.raises(UnsupportedOpError, match="--bf16 f32"):
        import_proto(model, source="m")


def test_casts_and_constants_inside_nodes_follow() -> None:
    nodes = [
        node("Constant", [], ["c"], value_float=1e9),
        node("Cast", ["x"], ["i"], to=TensorProto.INT32),
        node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        node("Add", ["f", "c"], ["y"]),
    ]
    text = str(import_proto(_model(nodes), source="m", dtype="fp16").module)
    assert "f32" not in text.replace("i32", "")


def test_the_command_compiles_and_verifies_in_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "m.onnx")
    assert main(["verify", str(path), "--chip", "test-4", "--dtype", "fp16", "--no-cache"]) == 0
    assert "float16" in capsys.readouterr().out


def test_text_that_states_its_types_is_not_converted(tmp_path: Path) -> None:
    (tmp_path / "f.mlir").write_text(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    with pytest.raises(InputError, match="--dtype needs an ONNX model"):
        import_model(tmp_path / "f.mlir", dtype="fp16")
    with pytest.raises(InputError, match="--dtype is 'fp8'"):
        import_model(EXAMPLES / "mlp.onnx", dtype="fp8")
