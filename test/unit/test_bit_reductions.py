"""Reductions of booleans survive the compute-shift level: its text reads back as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import t10


@pytest.mark.parametrize(("op_type", "expected"), [("ReduceMin", np.min), ("ReduceMax", np.max)])
def test_a_reduction_of_booleans_is_executed(op_type: str, expected: np.ufunc, tmp_path: Path) -> None:
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    node = helper.make_node(op_type, ["x", "axes"], ["y"], keepdims=1)
    x = helper.make_tensor_value_info("x", TensorProto.BOOL, [6, 5])
    y = helper.make_tensor_value_info("y", TensorProto.BOOL, [6, 1])
    graph = helper.make_graph([node], "bits", [x], [y], [axes])
    path = tmp_path / "bits.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    given = np.random.default_rng(0).integers(0, 2, (6, 5)).astype(np.bool_)
    found = t10.compile(path, chip="test-4").run({"x": given})["y"]
    np.testing.assert_array_equal(found, expected(given, axis=1, keepdims=True))
