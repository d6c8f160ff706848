"""Optionals and lists in them are the tensors that they hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import t10
from t10.cli import main
from t10.errors import UnsupportedOpError

X = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
HELD = [
    helper.make_node("Optional", ["x"], ["o"]),
    helper.make_node("OptionalGetElement", ["o"], ["h"]),
    helper.make_node("Exp", ["h"], ["y"]),
]
LISTED = [
    helper.make_node("Exp", ["x"], ["e"]),
    helper.make_node("SequenceConstruct", ["x", "e"], ["s"]),
    helper.make_node("Optional", ["s"], ["o"]),
    helper.make_node("Identity", ["o"], ["p"]),
    helper.make_node("OptionalGetElement", ["p"], ["h"]),
    helper.make_node("ConcatFromSequence", ["h"], ["y"], axis=0),
]
ASKED = [
    helper.make_node("Optional", ["x"], ["o"]),
    helper.make_node("Optional", [], ["n"], type=X.type),
    helper.make_node("OptionalHasElement", ["o"], ["yes"]),
    helper.make_node("OptionalHasElement", ["n"], ["no"]),
    helper.make_node("Exp", ["x"], ["e"]),
    helper.make_node("Where", ["yes", "e", "x"], ["w"]),
    helper.make_node("Where", ["no", "x", "w"], ["y"]),
]


def _model(nodes: list[onnx.NodeProto], rows: int, file: Path, kind: int = onnx.TensorProto.FLOAT) -> None:
    x, y = (helper.make_tensor_value_info(name, kind, [n, 3]) for name, n in (("x", 2), ("y", rows)))
    graph = helper.make_graph(nodes, "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    file.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(("nodes", "rows"), [(HELD, 2), (LISTED, 4), (ASKED, 2)])
def test_optionals_are_what_they_hold(nodes: list[onnx.NodeProto], rows: int, tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    _model(nodes, rows, file)
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    expected = np.concatenate([x, np.exp(x)]) if nodes is LISTED else np.exp(x)
    np.testing.assert_allclose(t10.compile(file, "test-4").run({"x": x})["y"], expected, rtol=1e-6)


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16])
@pytest.mark.parametrize(("nodes", "rows"), [(HELD, 2), (LISTED, 4)])
def test_models_with_optionals_are_compared(
    nodes: list[onnx.NodeProto], rows: int, kind: int, tmp_path: Path
) -> None:
    """Nothing is multiplied by what an optional or a list holds while it is one."""
    file = tmp_path / "m.onnx"
    _model(nodes, rows, file, kind)
    words = ("--chip", "test-4", "--no-cache", "--engine", "plan", "--seeds", "3")
    assert main(["verify", str(file), *words]) == 0


def test_an_element_of_nothing_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    nothing = helper.make_node("Optional", [], ["o"], type=X.type)
    _model([nothing, *HELD[1:]], 2, file)
    with pytest.raises(UnsupportedOpError, match="Optional"):
        t10.compile(file, "test-4")
