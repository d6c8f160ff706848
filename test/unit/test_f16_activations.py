"""Activations of f16 that are written with several operations round once, on the plan simulator and on tiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import t10
from t10.backend import run_on_tiles

onnx: Any = untyped_onnx
ACTIVATIONS = ("Elu", "Gelu", "HardSwish", "Selu", "Sigmoid", "Softplus", "Softsign")


def _model(operator: str, kind: int, n: int) -> Any:
    values = [helper.make_tensor_value_info(name, kind, [n]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("operator", ACTIVATIONS)
def test_activations_of_f16_round_once(operator: str, tmp_path: Path) -> None:
    """Against ONNX's evaluator in f64; small arguments would cancel, large negative ones saturate, step by step."""
    x = np.concatenate([np.linspace(-20, 20, 501), [-6.1e-05, -88, 88, -1000, 0]]).astype(np.float16)
    onnx.save(_model(operator, TensorProto.FLOAT16, len(x)), tmp_path / "m.onnx")
    executable = t10.compile(tmp_path / "m.onnx", chip="test-16")
    evaluator: Any = ReferenceEvaluator(_model(operator, TensorProto.DOUBLE, len(x)))
    with np.errstate(all="ignore"):
        expected: Any = np.asarray(evaluator.run(None, {"x": x.astype(np.float64)})[0])
    unit = np.spacing(np.abs(expected).astype(np.float16)).astype(np.float64)
    for found in (executable.run({"x": x})["y"], run_on_tiles(executable, {"x": x}).outputs["y"]):
        assert np.max(np.abs(found.astype(np.float64) - expected) / unit) <= (4 if operator == "Gelu" else 2)


@pytest.mark.parametrize("opset", [13, 20])
def test_selu_and_softsign_are_those_of_onnx(opset: int, tmp_path: Path) -> None:
    x = np.array([1, 2, -1, 0.3], np.float32)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in ("x", "y", "z")]
    nodes = [helper.make_node("Selu", ["x"], ["y"]), helper.make_node("Softsign", ["x"], ["z"])]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8),
        tmp_path / "m.onnx",
    )
    found = t10.compile(tmp_path / "m.onnx", chip="test-16").run({"x": x})
    below = 1.0507010221481323 * 1.6732631921768188 * (np.exp(x.astype(np.float64)) - 1)
    np.testing.assert_allclose(found["y"], np.where(x > 0, 1.0507010221481323 * x, below), rtol=2e-7)
    np.testing.assert_allclose(found["z"], x / (1 + np.abs(x)), rtol=2e-7)
