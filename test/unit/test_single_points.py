"""Operators of a single point: tensors without dims, or with dims of extent 1 alone, planned and executed as others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import t10
from t10.backend import run_on_tiles


def model(folder: Path, shape: list[int]) -> Path:
    """Write (x + y) * y - sum(z): nothing but single points behind one sum."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in "xy")
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [5])
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, shape)
    total = helper.make_tensor_value_info("total", TensorProto.FLOAT, [])
    nodes = [
        helper.make_node("Add", ["x", "y"], ["a"]),
        helper.make_node("Mul", ["a", "y"], ["b"]),
        helper.make_node("ReduceSum", ["z"], ["total"], keepdims=0),
        helper.make_node("Sub", ["b", "total"], ["c"]),
        helper.make_node("Exp", ["c"], ["out"]),
    ]
    graph = helper.make_graph(nodes, "points", [x, y, z], [out, total])
    path = folder / "points.onnx"
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    path.write_bytes(made.SerializeToString())
    return path


@pytest.mark.parametrize("shape", [[], [1], [1, 1]])
@pytest.mark.parametrize("chip", ["test-4", "ipu-mk2"])
def test_single_points_are_computed_by_both_simulators(tmp_path: Path, shape: list[int], chip: str) -> None:
    executable = t10.compile(model(tmp_path, shape), chip=chip)
    z = np.arange(5, dtype=np.float32) / 4
    inputs = {"x": np.full(shape, 1.5, np.float32), "y": np.full(shape, 0.5, np.float32), "z": z}
    wanted = np.exp(np.float32(1.0) - z.sum())
    for found in (executable.run(inputs), dict(run_on_tiles(executable, inputs).outputs)):
        assert found["out"].shape == tuple(shape)
        np.testing.assert_allclose(found["out"], np.full(shape, wanted), rtol=1e-5)
        np.testing.assert_array_equal(found["total"], z.sum())


@pytest.mark.parametrize("rows", [1, 6])
def test_a_product_of_no_terms_is_its_bias(rows: int, tmp_path: Path) -> None:
    shapes = {"x": [rows, 0], "w": [0, 5], "b": [5]}
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items()]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [rows, 5])
    graph = helper.make_graph([helper.make_node("Gemm", ["x", "w", "b"], ["out"])], "none", given, [out])
    path = tmp_path / "none.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    executable = t10.compile(path, chip="test-4")
    inputs = {"b": np.arange(5, dtype=np.float32)}
    expected = np.broadcast_to(inputs["b"], (rows, 5))
    np.testing.assert_array_equal(executable.run(inputs)["out"], expected)
    np.testing.assert_array_equal(run_on_tiles(executable, inputs).outputs["out"], expected)
