"""onnx-mlir's text: every custom form becomes generic, lines stay, and the model computes the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.dialect.mlir import ir, new_context
from t10.errors import InputError
from t10.frontend.importer import import_model
from t10.frontend.onnx_dialect import to_onnx
from t10.frontend.onnx_text import holds_onnx, normalize
from t10.passes.fuse import Fuse

WRAPPED = "module {{\nfunc.func @main_graph({arguments}) -> ({results}) {{\n{body}\n}}\n}}\n"


def _module(text: str) -> Any:
    context = new_context(allow_unregistered=True)
    return ir.Module.parse(normalize(text), context)


def _constant(spelling: str, kind: str) -> Any:
    """Return the value of `onnx.Constant <spelling>` of a tensor type."""
    body = f"%0 = onnx.Constant {spelling}\nonnx.Return %0 : {kind}"
    module = _module(WRAPPED.format(arguments="", results=kind, body=body))
    with module.context:
        model = to_onnx(module)
    return onnx.numpy_helper.to_array(model.graph.initializer[0])


CUSTOM_AND_GENERIC = """
%0 = onnx.Constant dense<1> : tensor<2xi64>
%0 = "onnx.Constant"() {value = dense<1> : tensor<2xi64>} : () -> tensor<2xi64>

%0 = onnx.Constant {value_int = 7 : si64} : tensor<i64>
%0 = "onnx.Constant"() {value_int = 7 : si64} : () -> tensor<i64>

%0 = onnx.Constant dense<1> : tensor<2xi64> loc(#loc1)
%0 = "onnx.Constant"() {value = dense<1> : tensor<2xi64>} : () -> tensor<2xi64> loc(#loc1)

%1 = onnx.ConstantOfShape(%0) : (tensor<1xi64>) -> tensor<2xi64>
%1 = "onnx.ConstantOfShape"(%0) : (tensor<1xi64>) -> tensor<2xi64>

onnx.Return %2, %a#1 : tensor<2xf32>, none
"onnx.Return"(%2, %a#1) : (tensor<2xf32>, none) -> ()

onnx.Return
"onnx.Return"() : () -> ()

onnx.Yield {onnx_node_name = "y"} %6 : tensor<2xf32>
"onnx.Yield"(%6) {onnx_node_name = "y"} : (tensor<2xf32>) -> ()

"onnx.Relu"(%x) {n = "onnx.Return"} : (t) -> t // onnx.Return
"onnx.Relu"(%x) {n = "onnx.Return"} : (t) -> t // onnx.Return
"""


@pytest.mark.parametrize("pair", CUSTOM_AND_GENERIC.strip().split("\n\n"))
def test_custom_form_becomes_generic(pair: str) -> None:
    custom, generic = pair.split("\n")
    assert normalize(custom) == generic


def test_normalizing_twice_changes_nothing_and_lines_stay() -> None:
    text = (
        "a\n%0 = onnx.Constant\n  dense<[1,\n 2]> :\n tensor<2xi64>\nonnx.Return %0\n :\n tensor<2xi64>\nb\n"
    )
    once = normalize(text)
    assert once.count("\n") == text.count("\n")
    assert once.split("\n")[-2] == "b"
    assert normalize(once) == once


def test_malformed_text_is_left_to_the_parser() -> None:
    assert normalize("%0 = onnx.Constant dense<[1, 2> :") == "%0 = onnx.Constant dense<[1, 2> :"


def test_other_text_is_not_taken_for_onnx() -> None:
    assert holds_onnx("  onnx.Return %0 : t")
    assert holds_onnx('%0 = "onnx.Relu"(%x) : (t) -> t')
    assert not holds_onnx('func.func @f(%x: t {onnx.name = "onnx"}) // an onnx. comment')


@pytest.mark.parametrize(
    ("spelling", "kind", "expected"),
    [
        ("dense<[1.5, 2.5]> : tensor<2xf32>", "tensor<2xf32>", np.array([1.5, 2.5], np.float32)),
        ("dense<1.0> : tensor<2x3xf16>", "tensor<2x3xf16>", np.ones((2, 3), np.float16)),
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', "tensor<2xf32>", np.array([1.0, 2.0], np.float32)),
        ("dense<[true, false, true]> : tensor<3xi1>", "tensor<3xi1>", np.array([True, False, True])),
        ("dense<0xFF800000> : tensor<f32>", "tensor<f32>", np.array(-np.inf, np.float32)),
        ("dense<> : tensor<0x3xf32>", "tensor<0x3xf32>", np.zeros((0, 3), np.float32)),
        ("{value_ints = [1, 2, 3]} : tensor<3xi64>", "tensor<3xi64>", np.array([1, 2, 3])),
        ("{value_float = 1.5 : f32} : tensor<f32>", "tensor<f32>", np.array(1.5, np.float32)),
    ],
)
def test_constants_keep_their_values(spelling: str, kind: str, expected: Any) -> None:
    found = _constant(spelling, kind)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_text_computes_what_the_onnx_operators_mean(tmp_path: Path) -> None:
    body = """%none = "onnx.NoValue"() <{value}> : () -> none
    %0 = "onnx.LayerNormalization"(%x, %s, %none) <{axis = -1 : si64, epsilon = 1.0e-3 : f32}> {onnx_node_name = "ln"}
      : (tensor<3x8xf32>, tensor<8xf32>, none) -> tensor<3x8xf32>
    %axes = onnx.Constant dense<1> : tensor<1xi64>
    %1 = "onnx.ReduceMean"(%0, %axes) <{keepdims = 0 : si64}> : (tensor<3x8xf32>, tensor<1xi64>) -> tensor<3xf32>
    %2 = "onnx.SoftmaxV11"(%0) <{axis = 1 : si64}> : (tensor<3x8xf32>) -> tensor<3x8xf32>
    onnx.Return %1, %2 : tensor<3xf32>, tensor<3x8xf32>"""
    arguments = '%x: tensor<3x8xf32> {onnx.name = "x"}, %s: tensor<8xf32> {onnx.name = "s"}'
    text = WRAPPED.format(arguments=arguments, results="tensor<3xf32>, tensor<3x8xf32>", body=body)
    (tmp_path / "m.mlir").write_text(text)
    imported = import_model(tmp_path / "m.mlir")
    random = np.random.default_rng(0)
    inputs = {
        "x": random.standard_normal((3, 8)).astype(np.float32),
        "s": random.standard_normal(8).astype(np.float32),
    }
    with imported.module.context:
        Fuse().apply(imported.module)
        found = run_module(imported.module, inputs)
    module = _module(text)
    with module.context:
        evaluator: Any = ReferenceEvaluator(to_onnx(module))
    expected = evaluator.run(None, inputs)
    for mine, theirs in zip(found.values(), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)


def _product(data: bytes, n_rows: int, n_columns: int) -> str:
    """Return a product with a weight as onnx-mlir writes one."""
    body = f"""%0 = onnx.Constant dense<"0x{data.hex().upper()}"> : tensor<{n_rows}x{n_columns}xf32>
    %1 = "onnx.MatMul"(%x, %0) : (tensor<2x{n_rows}xf32>, tensor<{n_rows}x{n_columns}xf32>) -> tensor<2x{n_columns}xf32>
    return %1 : tensor<2x{n_columns}xf32>"""
    return WRAPPED.format(
        arguments=f"%x: tensor<2x{n_rows}xf32>", results=f"tensor<2x{n_columns}xf32>", body=body
    )


RESOURCE = WRAPPED.format(
    arguments="",
    results="tensor<{kind}>",
    body="%0 = onnx.Constant dense_resource<blob> : tensor<{kind}>\nonnx.Return %0 : tensor<{kind}>",
)


def _resource(kind: str, data: bytes) -> str:
    text = RESOURCE.replace("{kind}", kind)
    return f'{text}{{-#\n  dialect_resources: {{builtin: {{blob: "0x04000000{data.hex()}"}}}}\n#-}}\n'


@pytest.mark.parametrize(
    ("kind", "dtype"), [("4xf32", "f4"), ("2x2xi64", "i8"), ("4xf16", "f2"), ("4xi1", "?"), ("4xui8", "u1")]
)
def test_resources_are_read_from_the_end_of_the_text(kind: str, dtype: str) -> None:
    values = np.array([1, 0, 3, 4]).astype(dtype)
    module = _module(_resource(kind, values.tobytes()))
    with module.context:
        found = onnx.numpy_helper.to_array(to_onnx(module).graph.initializer[0])
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found.ravel(), values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            _resource("4xf32", bytes(12)),
            r"dense_resource<blob> has 12 bytes \(expected 16 bytes of tensor<4xf32>\)",
        ),
        (_resource("4xf32", bytes(4)), r"has 4 bytes \(expected 16 bytes"),
        (
            _resource("4xi4", bytes(4)),
            r"has 4 bytes \(expected elements of whole bytes, found tensor<4xi4>\)",
        ),
        (RESOURCE.replace("{kind}", "4xf32"), r"dense_resource<blob> has no data \(expected 16 bytes"),
    ],
)
def test_resources_of_another_length_are_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx.mlir"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        import_model(file)
    assert caught.value.location == f"{file}:3:6"


def test_text_needs_no_module_around_it(tmp_path: Path) -> None:
    whole = WRAPPED.format(
        arguments="%x: tensor<2xf32>",
        results="tensor<2xf32>",
        body='%0 = "onnx.Relu"(%x) : (tensor<2xf32>) -> tensor<2xf32>\nreturn %0 : tensor<2xf32>',
    )
    bare = whole.removeprefix("module {\n").removesuffix("}\n")
    entry = '"onnx.EntryPoint"() {func = @main_graph} : () -> ()\n'
    file = tmp_path / "m.onnx.mlir"
    for text in (whole, bare, bare + bare.replace("main_graph", "other") + entry):
        file.write_text(text)
        assert import_model(file).input_names == ("arg0",)
    file.write_text(bare + bare.replace("main_graph", "other"))
    with pytest.raises(InputError, match="2 functions with a body") as caught:
        import_model(file)
    assert caught.value.location == f"{file}:5:1"
    file.write_text(bare + bare.replace("main_graph", "other") + entry.replace("main_graph", "none_such"))
    with pytest.raises(InputError, match="EntryPoint names @none_such, expected a function with a body"):
        import_model(file)


def test_a_weight_in_text_takes_memory_of_a_few_times_the_file(tmp_path: Path) -> None:
    """No pattern keeps a state for every character of a string, and no two forms of the text outlive their use."""
    n_columns = 4 << 10
    data = np.random.default_rng(0).standard_normal((1024, n_columns), np.float32).tobytes()
    file = tmp_path / "m.onnx.mlir"
    file.write_text(_product(data, 1024, n_columns))
    script = """
import resource, sys
from t10.errors import InputError
from t10.frontend.importer import import_model
import t10.frontend.onnx_dialect, t10.frontend.lower
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
import_model(sys.argv[2])
before = peak()
import_model(sys.argv[1])
print((peak() - before) * 1024)
"""
    small = tmp_path / "small.onnx.mlir"
    small.write_text(_product(data[:64], 4, 4))
    command = [sys.executable, "-c", script, str(file), str(small)]
    taken = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert taken < 4 * file.stat().st_size
