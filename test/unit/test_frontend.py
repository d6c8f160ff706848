"""Model files become linalg with static shapes; what is wrong with one is said plainly."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.dialect.mlir import ir, walk
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.imported import ImportedModel
from t10.frontend.importer import import_model, import_proto
from t10.frontend.onnx_file import load_onnx
from t10.frontend.rewrites.rules import rules
from t10.frontend.shapes import parse_shape
from t10.passes.fuse import Fuse

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"


def _function(module: Any) -> Any:
    return next(op.operation for op in module.body.operations if op.operation.name == "func.func")


def _operations(imported: ImportedModel) -> list[Any]:
    """Return all operations of a module; the caller keeps the module alive."""
    return [op.operation for op in walk(imported.module)]


def _rows(function: Any, key: str) -> list[Any]:
    return [ir.DictAttr(row) for row in ir.ArrayAttr(function.attributes[key])]


def _model(
    nodes: list[Any], inputs: dict[str, list[Any]], outputs: dict[str, list[Any]], **constants: Any
) -> Any:
    """Return a float model of opset 18 without weights but `constants`."""
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()]
    results = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", infos, results, initializer=tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_arguments_are_inputs_then_weights_with_names() -> None:
    imported = import_model(MODELS / "mlp.onnx")
    rows = _rows(_function(imported.module), "arg_attrs")
    names = [ir.StringAttr(row["t10.name"]).value for row in rows]
    assert names == [*imported.input_names, *imported.weight_names]
    assert [("t10.weight" in row) for row in rows] == [False] + [True] * len(imported.weight_names)
    results = _rows(_function(imported.module), "res_attrs")
    assert [ir.StringAttr(row["t10.name"]).value for row in results] == list(imported.output_names) == ["y"]


def test_weights_are_values_of_the_file_and_stay_out_of_the_text() -> None:
    imported = import_model(MODELS / "bert_fp32.onnx")
    graph = onnx.ModelProto.FromString((MODELS / "bert_fp32.onnx").read_bytes()).graph
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for name in imported.weight_names:
        np.testing.assert_array_equal(imported.weights[name], tensors[name])
    text = str(imported.module)
    assert "dense_resource" not in text
    assert len(text) < 80_000


def test_small_constants_stay_in_the_ir() -> None:
    node = helper.make_node("Add", ["x", "c"], ["y"], name="add")
    kept = import_proto(_model([node], {"x": [4]}, {"y": [4]}, c=np.ones(4, np.float32)), source="small")
    lifted = import_proto(_model([node], {"x": [64]}, {"y": [64]}, c=np.ones(64, np.float32)), source="large")
    assert kept.weight_names == ()
    assert lifted.weight_names == ("c",)


def test_locations_keep_node_names() -> None:
    imported = import_model(MODELS / "mlp.onnx")
    found = {str(op.location) for op in _operations(imported)}
    assert any('"/fc1/MatMul"' in text for text in found)


def test_run_time_checks_of_the_lowering_are_removed() -> None:
    imported = import_model(MODELS / "bert_fp32.onnx")
    names = {op.name for op in _operations(imported)}
    assert "cf.assert" not in names
    assert not any(name.startswith("torch.") for name in names)


def test_external_data_is_read_from_beside_the_model() -> None:
    plain, external = import_model(MODELS / "mlp.onnx"), import_model(MODELS / "external.onnx")
    assert external.has_all_weights
    for name in plain.weight_names:
        np.testing.assert_array_equal(plain.weights[name], external.weights[name])


def test_model_without_its_data_is_imported_without_weights() -> None:
    plain, free = import_model(MODELS / "mlp.onnx"), import_model(MODELS / "weight_free.onnx")
    assert not free.has_all_weights
    assert free.weights == {}
    assert set(plain.weight_names) <= set(free.weight_names)


def test_external_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    shutil.copy(MODELS / "external.onnx", tmp_path)
    (tmp_path / "external.bin").write_bytes((MODELS / "external.bin").read_bytes()[:100])
    with pytest.raises(InputError, match=r"external data"):
        load_onnx(tmp_path / "external.onnx")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.onnx", "does not exist"),
        ("broken_cut.onnx", "is not an ONNX model"),
        ("broken_text.onnx", "is not an ONNX model"),
        ("broken_empty.onnx", "holds no graph"),
    ],
)
def test_file_that_is_no_model_is_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_model(MODELS / name)


def test_folder_is_refused() -> None:
    with pytest.raises(InputError, match="is not a file"):
        import_model(MODELS)


def test_model_that_breaks_onnx_rules_is_refused() -> None:
    model = _model([helper.make_node("Add", ["x", "nowhere"], ["y"])], {"x": [4]}, {"y": [4]})
    with pytest.raises(InputError, match="nowhere"):
        import_proto(model, source="bad")


def test_inputs_that_do_not_fit_together_are_refused() -> None:
    model = _model([helper.make_node("MatMul", ["a", "b"], ["y"])], {"a": [2, 3], "b": [4, 5]}, {"y": [2, 5]})
    with pytest.raises(InputError, match="shapes do not fit together"):
        import_proto(model, source="bad")


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_vectors_of_different_lengths_fit_together_as_rows_and_columns(operator: str, kind: str) -> None:
    """ONNX's propagation of data takes them for shapes, which do not broadcast."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]> g ({kind}[8] a, {kind}[4] b) => ({kind}[8, 4] y)
        <int64[1] first = {{0}}, int64[1] second = {{1}}> {{
            column = Unsqueeze (a, second)  row = Unsqueeze (b, first)  y = {operator} (column, row) }}"""
    )
    dtype = np.float32 if kind == "float" else np.int64
    inputs = {"a": np.arange(8, dtype=dtype), "b": np.arange(2, 6, dtype=dtype)}
    imported = import_proto(model, source="outer")
    with imported.module.context:
        found = run_module(imported.module, inputs)["y"]
    outer = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[operator].outer
    np.testing.assert_array_equal(found, outer(inputs["a"], inputs["b"]))


def test_dynamic_dim_is_named_with_the_remedy() -> None:
    with pytest.raises(InputError, match=r"dim 0 of input 'x' is 'batch'.*--shape x=1x16 or --shape batch=1"):
        import_model(MODELS / "symbolic.onnx")


@pytest.mark.parametrize("shapes", [{"x": (3, 16)}, {"batch": 3}])
def test_shape_is_given_by_input_or_by_symbol(shapes: dict[str, Any]) -> None:
    imported = import_model(MODELS / "symbolic.onnx", shapes=shapes)
    assert "tensor<3x16xf32>" in str(imported.module)
    assert "-> (tensor<3x8xf32>" in str(imported.module)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"nonsense": (1, 2)}, r"no such input or symbolic dim \(inputs: x\[batchx16\]\)"),
        ({"x": (3,)}, r"has 1 dims \(expected 2: batchx16\)"),
        ({"x": (3, 17)}, "contradicts the model"),
        ({"x": (0, 16)}, "at least 1"),
        ({"x": (3, 16), "batch": 4}, "two extents, 3 and 4"),
    ],
)
def test_wrong_shape_is_refused(shapes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        import_model(MODELS / "symbolic.onnx", shapes=shapes)


def test_shape_option_is_parsed() -> None:
    assert parse_shape("input_ids=1x128") == ("input_ids", (1, 128))
    assert parse_shape("a=b=4") == ("a=b", (4,))
    for text in ("x", "x=", "=3", "x=3x", "x=ax3"):
        with pytest.raises(InputError, match="malformed"):
            parse_shape(text)


def test_every_node_that_cannot_be_lowered_is_named() -> None:
    nodes = [
        helper.make_node("Bernoulli", ["x"], ["d"], name="first", seed=1.0),
        helper.make_node("Relu", ["x"], ["r"], name="fine"),
        helper.make_node("Bernoulli", ["r"], ["y"], name="second", seed=2.0),
    ]
    model = _model(nodes, {"x": [3]}, {"d": [3], "y": [3]})
    with pytest.raises(UnsupportedOpError, match="2 of 3 nodes cannot be lowered") as caught:
        import_proto(model, source="random")
    assert "'first'" in str(caught.value)
    assert "'second'" in str(caught.value)
    assert "'fine'" not in str(caught.value)


def test_node_that_becomes_a_loop_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(rules(), "ReverseSequence")
    node = helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="/reversed")
    model = _model([node], {"x": [4, 3], "n": [3]}, {"y": [4, 3]})
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    with pytest.raises(UnsupportedOpError, match=r"operator '/reversed': ReverseSequence becomes scf\.for"):
        import_proto(model, source="m")


def test_the_bundled_model_that_is_not_supported_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedOpError, match="operator '/regions': MaxRoiPool is not lowered"):
        import_model(MODELS / "unsupported.onnx")


@pytest.mark.parametrize(("axis", "exclusive", "reverse"), [(0, 0, 0), (1, 1, 0), (-1, 0, 1), (0, 1, 1)])
def test_running_sum_goes_either_way(axis: int, exclusive: int, reverse: int) -> None:
    node = helper.make_node(
        "CumSum", ["x", "axis"], ["y"], name="running", exclusive=exclusive, reverse=reverse
    )
    model = _model([node], {"x": [3, 4]}, {"y": [3, 4]}, axis=np.array(axis))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    evaluator: Any = ReferenceEvaluator(model)
    expected = evaluator.run(None, {"x": x})
    imported = import_proto(model, source="cumsum")
    with imported.module.context:
        Fuse().apply(imported.module)
        found = run_module(imported.module, {"x": x, **imported.weights})
    np.testing.assert_array_equal(found["y"], expected[0])


def test_trailing_inputs_without_a_name_are_dropped() -> None:
    node = helper.make_node("Conv", ["x", "w", ""], ["y"])
    model = _model([node], {"x": [1, 2, 5, 5]}, {"y": [1, 3, 3, 3]}, w=np.ones((3, 2, 3, 3), np.float32))
    assert any(
        op.name.startswith("linalg.conv_2d") for op in _operations(import_proto(model, source="absent bias"))
    )


def test_a_node_without_its_first_input_is_refused() -> None:
    node = helper.make_node("Transpose", [""], ["y"], name="of nothing")
    with pytest.raises(InputError, match="shapes do not fit together"):
        import_proto(_model([node], {"x": [4]}, {"y": [4]}), source="absent operand")


def test_shape_that_depends_on_data_is_refused() -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["i"], name="nz"),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    with pytest.raises(UnsupportedOpError, match="operator 'nz': NonZero makes 'i'"):
        import_proto(_model(nodes, {"x": [4]}, {"y": [1, 4]}), source="nz")


def test_shapes_computed_from_shapes_are_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["y"]),
    ]
    model = _model(nodes, {"x": [2, 3, 4]}, {"y": [2, 12]}, zero=np.array([0]), rest=np.array([-1]))
    imported = import_proto(model, source="fold")
    names = {op.name for op in _operations(imported)}
    assert names <= {"builtin.module", "func.func", "func.return", "tensor.collapse_shape"}


def test_import_is_deterministic() -> None:
    assert str(import_model(MODELS / "vit_fp16.onnx").module) == str(
        import_model(MODELS / "vit_fp16.onnx").module
    )


def test_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(
        "func.func @f(%x: tensor<4xf32> {t10.name = 3}) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    with pytest.raises(InputError, match=r"m\.mlir: it contradicts itself, or is of another form"):
        import_model(path)


def test_linalg_text_is_read_as_it_is(tmp_path: Path) -> None:
    text = """
    func.func @f(%x: tensor<4xf32>, %w: tensor<4xf32> {t10.name = "w", t10.weight}) -> tensor<4xf32> {
      %e = tensor.empty() : tensor<4xf32>
      %y = linalg.add ins(%x, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      return %y : tensor<4xf32>
    }"""
    (tmp_path / "f.mlir").write_text(text)
    imported = import_model(tmp_path / "f.mlir")
    assert (imported.input_names, imported.weight_names, imported.output_names) == (
        ("arg0",),
        ("w",),
        ("result0",),
    )
    (tmp_path / "bad.mlir").write_text("func.func @f(")
    with pytest.raises(InputError, match="cannot be parsed"):
        import_model(tmp_path / "bad.mlir")
