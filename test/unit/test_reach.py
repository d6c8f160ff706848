"""Windows and slices that reach further than any tensor are refused before ONNX or 64 bits end at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.cli import main

onnx: Any = untyped_onnx


def saved(path: Path, node: Any, shape: list[int], result: list[int], weights: dict[str, Any]) -> str:
    """Write a model of one node that reads `x`."""
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    graph = helper.make_graph([node], "g", [x], [y], tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return str(path)


@pytest.mark.parametrize("step", [1 << 62, -(1 << 63), 1 << 40])
def test_a_slice_of_huge_steps_is_refused(tmp_path: Path, capsys: Any, step: int) -> None:
    node = helper.make_node("Slice", ["x", "s", "e", "a", "t"], ["y"], name="cut")
    weights = {"s": 1, "e": 9, "a": 0, "t": step}
    arrays = {name: np.array([number], np.int64) for name, number in weights.items()}
    model = saved(tmp_path / "m.onnx", node, [5], [1], arrays)
    assert main(["compile", model, "-o", str(tmp_path / "out"), "--chip", "test-4", "--no-program"]) == 3
    error = capsys.readouterr().err
    assert f"Slice: steps of {step:,}" in error
    assert "'cut'" in error
    assert main(["inspect", model]) == 0
    assert f"steps of {step:,}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [1 << 62, 1]}),
        ("AveragePool", {"kernel_shape": [2, 2], "pads": [0, 1 << 40, 0, 0]}),
        ("Conv", {"dilations": [1 << 62, 1]}),
        ("Conv", {"strides": [1, 1 << 62]}),
    ],
)
def test_a_window_of_huge_numbers_is_refused(
    tmp_path: Path, capsys: Any, kind: str, attributes: dict[str, Any]
) -> None:
    weights = {"w": np.ones((1, 1, 2, 2), np.float32)} if kind == "Conv" else {}
    node = helper.make_node(kind, ["x", *weights], ["y"], name="window", **attributes)
    model = saved(tmp_path / "m.onnx", node, [1, 1, 4, 4], [1, 1, 1, 1], weights)
    assert main(["compile", model, "-o", str(tmp_path / "out"), "--chip", "test-4", "--no-program"]) == 3
    assert "expected at most 67,108,864" in capsys.readouterr().err


def test_extents_beyond_any_tensor_are_refused(tmp_path: Path, capsys: Any) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], name="relu")
    path = tmp_path / "m.onnx"
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    for extent in (1 << 63, 10**20):
        command = ["compile", str(path), "-o", str(tmp_path / "out"), "--chip", "test-4"]
        assert main([*command, "--shape", f"batch={extent}"]) == 2
        assert "extents must be at most" in capsys.readouterr().err
