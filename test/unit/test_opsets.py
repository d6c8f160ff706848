"""Models of opsets below 13 compute what ONNX Runtime computes of them, with functions and other domains too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from support.contributed import computed
from support.engines import by_reference, by_runtime

from t10.attack.judging import Judge
from t10.frontend.opsets import raise_opset
from t10.reference import OnnxRuntime

ROWS = ("Softmax", "LogSoftmax", "Hardmax")
X = np.random.default_rng(7).standard_normal((2, 3, 4)).astype(np.float32)


def parsed(body: str, opset: int, rest: str = "") -> Any:
    """Return a model from x[2, 3, 4] to y, whose shape is not stated."""
    domains = f'"" : {opset}, "com.microsoft" : 1, "own" : 1'
    text = f"<ir_version: 8, opset_import: [{domains}]> g (float[2, 3, 4] x) => (float y) {{ {body} }} {rest}"
    model: Any = onnx.parser.parse_model(text)
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return model


def agree(model: Any) -> None:
    """Compare a model, imported and interpreted, with ONNX Runtime."""
    due, found = by_runtime(model, {"x": X}), computed(model, {"x": X})
    np.testing.assert_allclose(found["y"], due["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(9)
@pytest.mark.parametrize("opset", [1, 7, 11, 12])
@pytest.mark.parametrize("axis", ["", "<axis = 0>", "<axis = 1>", "<axis = 2>"])
@pytest.mark.parametrize("operator", ROWS)
def test_all_dims_from_the_axis_on_are_one_row(operator: str, axis: str, opset: int) -> None:
    agree(parsed(f"y = {operator} {axis} (x)", opset))


def test_values_with_the_names_of_added_ones_are_kept_apart() -> None:
    model = parsed("a = Relu (x) y = Hardmax (a)", 11)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["y.flat" if name == "a" else name for name in names]
    agree(model)


@pytest.mark.parametrize("axis", [-1, -2, -3])
@pytest.mark.parametrize("operator", ROWS)
def test_an_axis_is_counted_from_the_last(operator: str, axis: int) -> None:
    agree(parsed(f"y = {operator} <axis = {axis}> (x)", 11))


@pytest.mark.parametrize("operator", ROWS)
def test_rows_in_a_branch_are_those_of_its_opset(operator: str) -> None:
    branches = (
        f"then_branch = t () => (float[2, 3, 4] a) {{ a = {operator} (x) }}, "
        "else_branch = e () => (float[2, 3, 4] b) { b = Neg (x) }"
    )
    agree(parsed(f"c = Constant <value = bool {{1}}> () y = If (c) <{branches}>", 11))


@pytest.mark.parametrize("opset", [11, 12])
@pytest.mark.parametrize(
    "body",
    [
        *(f"t = {operator} (x) y = com.microsoft.QuickGelu (t)" for operator in (*ROWS, "Erf")),
        *(f"t = com.microsoft.QuickGelu (x) y = {operator} (t)" for operator in (*ROWS, "Erf")),
        "t = Softmax <axis = 2> (x) y = com.microsoft.FastGelu (t)",
        "t = Softmax (x) w = ReduceSum <axes = [0, 1], keepdims = 0> (x) y = com.microsoft.BiasGelu (t, w)",
        "t = Softmax (x) w = ReduceSum <axes = [0, 1], keepdims = 0> (x) "
        "y, , , s = com.microsoft.SkipLayerNormalization (t, x, w, w)",
    ],
)
def test_operators_of_onnx_runtime_leave_the_opset_to_be_raised(body: str, opset: int) -> None:
    agree(parsed(body, opset))


@pytest.mark.parametrize("opset", [11, 12, 17])
@pytest.mark.parametrize("operator", [*ROWS, "Erf"])
def test_functions_are_raised_with_their_model(operator: str, opset: int) -> None:
    function = (
        f"""<domain: "own", opset_import: ["" : {opset}]> F (a) => (b) {{ t = {operator} (a) b = Neg (t) }}"""
    )
    agree(parsed(f"t = own.F (x) y = {operator} (t)", opset, function))


@pytest.mark.parametrize("operator", ROWS)
def test_rows_are_kept_where_onnx_cannot_convert_the_model(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = parsed(f"y = {operator} <axis = 1> (x)", 11)
    due = by_runtime(model, {"x": X})["y"]

    def refuse(*_: Any) -> None:
        raise RuntimeError("no adapter")

    monkeypatch.setattr("t10.frontend.opsets.version_converter.convert_version", refuse)
    raised = raise_opset(model)
    assert [entry.version for entry in raised.opset_import if not entry.domain] == [11]
    # The evaluator computes along one axis whatever the opset is.
    np.testing.assert_allclose(by_reference(raised, {"x": X})["y"], due, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("opset", "is_trusted"), [(11, False), (13, True)])
@pytest.mark.parametrize("operator", ROWS)
def test_the_evaluator_is_no_reference_for_rows(operator: str, opset: int, is_trusted: bool) -> None:
    model = parsed(f"y = {operator} <axis = 1> (x)", opset)
    along_one_axis: NDArray[Any] = by_reference(model, {"x": X})["y"]
    others = {"y": along_one_axis + 1}
    judge = Judge(OnnxRuntime(model, Path("m.onnx")), 1e-4)
    (compared,) = judge.compared({"y": along_one_axis}, others, {"x": X})
    assert compared.is_within is is_trusted


@pytest.mark.parametrize("mode", ["round_prefer_floor", "floor", "ceil", "round_prefer_ceil"])
@pytest.mark.parametrize("scale", ["1.5", "2.0", "0.5"])
@pytest.mark.parametrize("opset", [11, 12])
def test_resizing_to_the_nearest_as_tensorflow_does(opset: int, scale: str, mode: str) -> None:
    """Opset 13 dropped this mode, ONNX Runtime did not."""
    where = f'coordinate_transformation_mode = "tf_half_pixel_for_nn", nearest_mode = "{mode}"'
    body = f"""
        none = Constant <value = float[0] {{}}> ()
        scales = Constant <value = float[3] {{1.0, 1.0, {scale}}}> ()
        y = Resize <mode = "nearest", {where}> (x, none, scales)"""
    agree(parsed(body, opset))
