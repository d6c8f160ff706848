"""Operations of the onnx dialect mean what the ONNX nodes mean that they become."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from support.onnx_text import function_text, model_of

from t10.driver import compile
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.importer import import_model


def _run(text: str, **inputs: Any) -> list[Any]:
    """Return what ONNX's evaluator computes on the model of a text; the model obeys ONNX's rules."""
    model = model_of(text)
    _onnx.checker.check_model(model, full_check=True)
    evaluator: Any = ReferenceEvaluator(model)
    return evaluator.run(None, inputs)


def _one(body: str, n_out: str, kind: str = "tensor<2x4xf32>") -> str:
    """Return a function of `%x` of a type, whose body makes `%r` of another."""
    arguments = f'%x: {kind} {{onnx.name = "x"}}'
    return function_text(f"{body}\nonnx.Return %r : {n_out}", arguments, f'{n_out} {{onnx.name = "y"}}')


_onnx: Any = onnx  # typed in part only
Floats = NDArray[np.float32]

X = np.arange(8, dtype=np.float32).reshape(2, 4) - 3
IMAGE: Floats = np.arange(32, dtype=np.float32).reshape(1, 2, 4, 4) / np.float32(7)


def test_branches_of_if_become_graphs() -> None:
    body = """%r = "onnx.If"(%c) ({
      %0 = "onnx.Neg"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      onnx.Yield %0 : tensor<2xf32>
    }, {
      onnx.Yield {onnx_node_name = "y"} %x : tensor<2xf32>
    }) {onnx_node_name = "branch", output_names = ["t"]} : (tensor<i1>) -> tensor<2xf32>
    onnx.Return %r : tensor<2xf32>"""
    arguments = '%c: tensor<i1> {onnx.name = "c"}, %x: tensor<2xf32> {onnx.name = "x"}'
    text = function_text(body, arguments, "tensor<2xf32>")
    x = np.array([1, 2], np.float32)
    for condition, expected in ((True, -x), (False, x)):
        np.testing.assert_array_equal(_run(text, c=np.array(condition), x=x)[0], expected)


def test_body_of_loop_reads_outer_values_and_constants() -> None:
    body = """%n = onnx.Constant dense<3> : tensor<i64>
    %true = onnx.Constant dense<true> : tensor<i1>
    %r:2 = "onnx.Loop"(%n, %true, %x) ({
    ^bb0(%i: tensor<i64>, %c: tensor<i1>, %acc: tensor<2xf32>):
      %two = onnx.Constant dense<2.0> : tensor<f32>
      %0 = "onnx.Mul"(%acc, %two) : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
      %1 = "onnx.Add"(%0, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      onnx.Yield {onnx_node_name = "onnx.Yield_8"} %c, %1, %1 : tensor<i1>, tensor<2xf32>, tensor<2xf32>
    }) {input_names = ["i", "c", "acc"]} : (tensor<i64>, tensor<i1>, tensor<2xf32>) -> (tensor<2xf32>, tensor<3x2xf32>)
    onnx.Return %r#0, %r#1 : tensor<2xf32>, tensor<3x2xf32>"""
    text = function_text(body, '%x: tensor<2xf32> {onnx.name = "x"}', "tensor<2xf32>, tensor<3x2xf32>")
    x = np.array([1, -1], np.float32)
    last, all_of_them = _run(text, x=x)
    np.testing.assert_array_equal(last, 15 * x)
    np.testing.assert_array_equal(all_of_them, np.outer([3, 7, 15], x))


def test_custom_operations_get_their_domain_back() -> None:
    body = """%r = "onnx.Custom"(%x) <{function_name = "Thing", shape_infer_pattern = "SameAs"}>
      {alpha = 5.0e-01 : f32, axes = [0, 1], domain_name = "com.acme", k = 3 : si64, mode = "fast"}
      : (tensor<2x4xf32>) -> tensor<2x4xf32>"""
    model = model_of(_one(body, "tensor<2x4xf32>"))
    node = model.graph.node[0]
    values = {each.name: _onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert (node.domain, node.op_type) == ("com.acme", "Thing")
    assert values == {"alpha": 0.5, "axes": [0, 1], "k": 3, "mode": b"fast"}
    assert {entry.domain for entry in model.opset_import} == {"", "com.acme"}


def test_the_opset_is_the_first_that_takes_the_operands() -> None:
    """Integers with a sign are shifted in later opsets only; those without one do not need these."""
    opsets: dict[str, int] = {}
    for kind in ("i32", "ui32"):
        value = f"tensor<4x{kind}>"
        body = f'%r = "onnx.BitShift"(%x, %x) <{{direction = "LEFT"}}> : ({value}, {value}) -> {value}'
        model = model_of(_one(body, value, value))
        _onnx.checker.check_model(model, full_check=True)
        opsets[kind] = model.opset_import[0].version
    assert opsets["ui32"] == 22 < opsets["i32"]


def test_unknown_operations_are_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    unknown = '%r = "onnx.ShapeTransform"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>'
    file.write_text(_one(unknown, "tensor<2x4xf32>"))
    with pytest.raises(UnsupportedOpError, match=r"m\.mlir:3:.*ShapeTransform"):
        import_model(file)


def test_operands_that_an_operator_does_not_take_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    two = '%r = "onnx.Relu"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>'
    file.write_text(_one(two, "tensor<2x4xf32>"))
    with pytest.raises(InputError, match=r"m\.mlir:3:.*Relu has 2 operands \(expected at most 1\)"):
        import_model(file)


def test_layouts_are_dropped() -> None:
    kind = 'tensor<1x2x4x4xf32, #onnx.layout<{dataLayout = "NCHW4C"}>>'
    layout = '#onnx.layout<{dataLayout = "NCHW4C"}>'
    body = f"""%0 = "onnx.LayoutTransform"(%x) <{{target_layout = {layout}}}> : (tensor<1x2x4x4xf32>) -> {kind}
    %1 = "onnx.Relu"(%0) : ({kind}) -> {kind}
    %r = "onnx.LayoutTransform"(%1) <{{target_layout = "STANDARD"}}> : ({kind}) -> tensor<1x2x4x4xf32>"""
    text = _one(body, "tensor<1x2x4x4xf32>", "tensor<1x2x4x4xf32>")
    np.testing.assert_array_equal(_run(text, x=IMAGE - 2)[0], np.maximum(IMAGE - 2, 0))


def test_groups_are_written_in_place() -> None:
    body = """"onnx.DimGroup"(%x) <{axis = 0 : si64, group_id = 1 : si64}> : (tensor<2x4xf32>) -> ()
    "onnx.PrintSignature"(%x) <{op_name = "p", print_data = 0 : si64}> : (tensor<2x4xf32>) -> ()
    %r = "onnx.Fused"(%x) ({
    ^bb0(%a: tensor<2x4xf32>):
      %0 = "onnx.Abs"(%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      %1 = "onnx.Sqrt"(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
      onnx.Yield %1 : tensor<2x4xf32>
    }) : (tensor<2x4xf32>) -> tensor<2x4xf32>"""
    np.testing.assert_allclose(_run(_one(body, "tensor<2x4xf32>"), x=X)[0], np.sqrt(np.abs(X)), rtol=1e-6)


def test_rms_normalization_with_bias() -> None:
    body = """%s = onnx.Constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
    %b = onnx.Constant dense<0.5> : tensor<4xf32>
    %r, %i = "onnx.RMSLayerNormalization"(%x, %s, %b) <{axis = -1 : si64, epsilon = 1.0e-3 : f32}>
      {onnx_node_name = "rms"} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, none)"""
    expected = X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-3) * [1, 2, 3, 4] + 0.5
    np.testing.assert_allclose(_run(_one(body, "tensor<2x4xf32>"), x=X)[0], expected, rtol=1e-5)


def test_concat_shape_transpose() -> None:
    body = """%s, %r = "onnx.ConcatShapeTranspose"(%x, %x) <{axis = 1 : si64, start = 0 : si64, perm = [1, 0]}>
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<2xi64>, tensor<8x2xf32>)"""
    np.testing.assert_array_equal(_run(_one(body, "tensor<8x2xf32>"), x=X)[0], np.concatenate([X, X], 1).T)


def _softmax(x: Floats) -> Floats:
    return np.exp(x - x.max()) / np.exp(x - x.max()).sum()


OLD_FORMS: dict[str, Floats] = {
    'SoftmaxV11"(%x) <{axis = 0 : si64}>': _softmax(IMAGE),
    'ClipV6"(%x) <{max = 2.0 : f32, min = -1.0 : f32}>': IMAGE.clip(-1, 2),
    'SqueezeV11"(%x) <{axes = [0]}>': IMAGE[0],
    'ReduceMeanV13"(%x) <{axes = [3], keepdims = 0 : si64}>': IMAGE.mean(3),
    'PadV2"(%x) <{mode = "constant", pads = [0, 0, 1, 0, 0, 0, 0, 2], value = 5.0 : f32}>': np.pad(
        IMAGE, ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=5
    ),
    'UpsampleV7"(%x) <{mode = "nearest", scales = [1.0 : f32, 1.0 : f32, 2.0 : f32, 3.0 : f32]}>': IMAGE.repeat(
        2, 2
    ).repeat(3, 3),
    'MaxPoolSingleOut"(%x) <{kernel_shape = [4, 4]}>': IMAGE.max((2, 3), keepdims=True),
}


@pytest.mark.parametrize("operation", OLD_FORMS)
def test_old_and_own_forms(operation: str) -> None:
    expected = OLD_FORMS[operation]
    kind = f"tensor<{'x'.join(map(str, expected.shape))}xf32>"
    text = _one(f'%r = "onnx.{operation} : (tensor<1x2x4x4xf32>) -> {kind}', kind, "tensor<1x2x4x4xf32>")
    np.testing.assert_allclose(_run(text, x=IMAGE)[0], expected, rtol=1e-5)


def test_a_dim_is_a_slice_of_the_shape() -> None:
    text = _one(
        '%r = "onnx.Dim"(%x) <{axis = 1 : si64}> : (tensor<2x4xf32>) -> tensor<1xi64>', "tensor<1xi64>"
    )
    assert _run(text, x=X)[0].tolist() == [4]


def test_top_k_and_dropout_of_old_opsets() -> None:
    body = """%none = "onnx.NoValue"() <{value}> : () -> none
    %ratio = onnx.Constant dense<5.0e-01> : tensor<1xf32>
    %training = onnx.Constant dense<false> : tensor<1xi1>
    %d, %mask = "onnx.Dropout"(%x, %ratio, %training) {ratio = 5.0e-01 : f32}
      : (tensor<2x4xf32>, tensor<1xf32>, tensor<1xi1>) -> (tensor<2x4xf32>, none)
    %r, %i = "onnx.TopK"(%d, %none) <{axis = -1 : si64}> {k = 2 : si64}
      : (tensor<2x4xf32>, none) -> (tensor<2x2xf32>, tensor<2x2xi64>)"""
    np.testing.assert_array_equal(_run(_one(body, "tensor<2x2xf32>"), x=X)[0], X[:, :1:-1])


def test_defaults_for_two_directions_serve_one(tmp_path: Path) -> None:
    body = """%none = "onnx.NoValue"() <{value}> : () -> none
    %w = onnx.Constant dense<0.5> : tensor<1x2x4xf32>
    %v = onnx.Constant dense<0.25> : tensor<1x2x2xf32>
    %steps = onnx.Constant dense<[2, 1, 4]> : tensor<3xi64>
    %xs = "onnx.Reshape"(%x, %steps) : (tensor<2x4xf32>, tensor<3xi64>) -> tensor<2x1x4xf32>
    %Y, %r = "onnx.RNN"(%xs, %w, %v, %none, %none, %none)
      <{activations = ["Tanh", "Tanh"], direction = "forward", hidden_size = 2 : si64, layout = 0 : si64}>
      : (tensor<2x1x4xf32>, tensor<1x2x4xf32>, tensor<1x2x2xf32>, none, none, none) -> (none, tensor<1x1x2xf32>)"""
    file = tmp_path / "m.mlir"
    file.write_text(_one(body, "tensor<1x1x2xf32>"))
    first = np.tanh(0.5 * X[0].sum())
    found = compile(file, "test-4").run({"x": X})["y"]
    np.testing.assert_allclose(found, np.full((1, 1, 2), np.tanh(0.5 * X[1].sum() + 0.5 * first)), rtol=1e-5)


def test_an_output_without_value_is_refused() -> None:
    text = _one('%r = "onnx.NoValue"() <{value}> : () -> none', "none")
    with pytest.raises(UnsupportedOpError, match="output 'y' has no value"):
        model_of(text)


@pytest.mark.parametrize(
    ("kind", "what"), [("!onnx.Seq<tensor<2xf32>>", "sequence"), ("!onnx.Opt<tensor<2xf32>>", "optional")]
)
def test_sequences_and_optionals_are_refused_as_in_a_model_file(tmp_path: Path, kind: str, what: str) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(_one(f'%r = "onnx.Identity"(%x) : ({kind}) -> {kind}', kind, kind))
    with pytest.raises(InputError, match=rf"'x' is of type {what}"):
        import_model(file)


def test_elided_weights_can_be_planned_not_run(tmp_path: Path) -> None:
    body = """%w = onnx.Constant dense_resource<__elided__> : tensor<4x16xf32>
    %r = "onnx.MatMul"(%x, %w) : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>"""
    file = tmp_path / "m.mlir"
    file.write_text(_one(body, "tensor<2x16xf32>"))
    executable = compile(file, "test-4")
    assert executable.missing_weights == ("constant",)
    with pytest.raises(InputError, match="values"):
        executable.run({"x": X})


CALLS = """module {
func.func {private}@twice(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %two = onnx.Constant dense<2.0> : tensor<f32>
  %r = "onnx.Mul"(%a, %two) {onnx_node_name = "double"} : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  {inside}
  return %r : tensor<2x4xf32>
}
func.func @main(%x: tensor<2x4xf32> {onnx.name = "x"}) -> tensor<2x4xf32> {
  %0 = call @twice(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = call @twice(%0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "onnx.Sub"(%1, %0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
}
"""


def _calls(private: str = "", inside: str = "") -> str:
    return CALLS.replace("{private}", private).replace("{inside}", inside)


@pytest.mark.parametrize("private", ["", "private "])
def test_calls_are_inlined_and_what_nobody_calls_is_the_model(private: str) -> None:
    np.testing.assert_array_equal(_run(_calls(private), x=X)[0], 2 * X)


def test_nodes_of_functions_that_are_called_twice_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    file.write_text(_calls("private "))
    assert compile(file, "test-4").run({"x": X})["result0"].tolist() == (2 * X).tolist()


def test_of_functions_that_nobody_calls_the_public_one_is_the_model() -> None:
    unused = function_text("return %x : tensor<2x4xf32>", "%x: tensor<2x4xf32>", "tensor<2x4xf32>")
    unused = unused.removeprefix("module {").replace("@main_graph", "private @unused")
    np.testing.assert_array_equal(_run(_calls().removesuffix("}\n") + unused, x=X)[0], 2 * X)


def test_functions_that_all_call_each_other_are_refused(tmp_path: Path) -> None:
    """None is the model, and naming one as the entry would not help."""
    file = tmp_path / "m.mlir"
    text = _calls("", "%z = call @main (%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>")
    file.write_text(text)
    with pytest.raises(UnsupportedOpError, match="calls itself") as caught:
        import_model(file)
    assert "without recursion" in str(caught.value)


def test_calls_without_end_or_body_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.mlir"
    call = "%z = call @{} (%a) : (tensor<2x4xf32>) -> tensor<2x4xf32>"
    file.write_text(_calls("private ", call.format("twice")))
    with pytest.raises(UnsupportedOpError, match="@twice calls itself"):
        import_model(file)
    outside = "func.func private @far(tensor<2x4xf32>) -> tensor<2x4xf32>\n}\n"
    file.write_text(_calls("private ", call.format("far")).removesuffix("}\n") + outside)
    with pytest.raises(UnsupportedOpError, match=r"m\.mlir:5:.*@far cannot be inlined"):
        import_model(file)


def test_calls_that_double_again_and_again_are_refused(tmp_path: Path) -> None:
    kind = "tensor<2x4xf32>"
    levels = [f"func.func private @f0(%a: {kind}) -> {kind} {{\nreturn %a : {kind}\n}}"]
    for i in range(1, 40):
        call = f"call @f{i - 1}(%a) : ({kind}) -> {kind}"
        levels.append(
            f"func.func @f{i}(%a: {kind}) -> {kind} {{\n%b = {call}\n%c = {call}\nreturn %c : {kind}\n}}"
        )
    file = tmp_path / "m.mlir"
    file.write_text("module {\n" + "\n".join(levels) + '\n"onnx.NoValue"() : () -> ()\n}\n')
    with pytest.raises(UnsupportedOpError, match="would be written out to more than 100,000 operations"):
        import_model(file)
