"""Tiny models whose operators read parts of values: pins that keep the parts together once beat what was optimal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.chip import load_chip
from t10.core.schedule import ModulePlan
from t10.driver import compile
from t10.plan.schedule import sum_of_cycles

CHIP = load_chip("test-64")


def saved(
    path: Path, nodes: Sequence[onnx.NodeProto], shape: Sequence[int], weights: Mapping[str, npt.NDArray[Any]]
) -> Path:
    """Return the file of an f16 model that reads x of some shape."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT16, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)
    stored = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "small", [x], [y], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    path.write_bytes(onnx.shape_inference.infer_shapes(model).SerializeToString())
    return path


def rotary(path: Path) -> Path:
    """Return a rotary embedding: both halves of every row turned."""
    nodes = (
        helper.make_node("Split", ["x"], ["a", "b"], axis=3, num_outputs=2),
        helper.make_node("Mul", ["a", "c"], ["ac"]),
        helper.make_node("Mul", ["b", "s"], ["bs"]),
        helper.make_node("Sub", ["ac", "bs"], ["r1"]),
        helper.make_node("Mul", ["b", "c"], ["bc"]),
        helper.make_node("Mul", ["a", "s"], ["as"]),
        helper.make_node("Add", ["bc", "as"], ["r2"]),
        helper.make_node("Concat", ["r1", "r2"], ["y"], axis=3),
    )
    rng = np.random.default_rng(0)
    weights = {name: rng.standard_normal((13, 16)).astype(np.float16) for name in "cs"}
    return saved(path, nodes, [1, 3, 13, 32], weights)


def halves(path: Path) -> Path:
    """Return the sum of both halves of every row."""
    nodes = (
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Add", ["a", "b"], ["y"]),
    )
    return saved(path, nodes, [12, 64], {})


def rolled(path: Path) -> Path:
    """Return every row added to itself rolled."""
    nodes = (
        helper.make_node("Slice", ["x", "low", "high", "axis"], ["a"]),
        helper.make_node("Slice", ["x", "zero", "low", "axis"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Add", ["c", "x"], ["y"]),
    )
    numbers = {"low": 16, "high": 64, "zero": 0, "axis": 1}
    return saved(path, nodes, [20, 64], {name: np.array([number]) for name, number in numbers.items()})


def joined(path: Path) -> Path:
    """Return the square of two results side by side."""
    nodes = (
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Tanh", ["x"], ["b"]),
        helper.make_node("Concat", ["a", "b"], ["c"], axis=1),
        helper.make_node("Mul", ["c", "c"], ["y"]),
    )
    return saved(path, nodes, [30, 40], {})


def planned(model: Path, pins: Path | None = None) -> ModulePlan:
    return compile(model, CHIP, plan=pins, program=False).plan


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("model_of", "pins"),
    [
        (rotary, {"r1": [3, 13, 1], "r2": [3, 13, 1]}),
        (halves, {"y": [12, 1]}),
        (rolled, {"y": [20, 1]}),
        (joined, {"a": [30, 1], "b": [30, 1], "y": [30, 1]}),
    ],
    ids=["rotary", "halves", "rolled", "joined"],
)
def test_keeping_parts_that_are_read_together_on_one_core_is_no_faster_than_what_is_called_optimal(
    model_of: Callable[[Path], Path], pins: Mapping[str, Sequence[int]], tmp_path: Path
) -> None:
    model = model_of(tmp_path / "model.onnx")
    cycles = sum_of_cycles(planned(model))
    operators = [{"name": name, "f_op": f_op} for name, f_op in pins.items()]
    pinned = tmp_path / "pins.json"
    pinned.write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": operators}))
    assert cycles <= sum_of_cycles(planned(model, pinned))
