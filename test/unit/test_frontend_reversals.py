"""ReverseSequence of constant lengths computes what ONNX says, on one length and on several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

import t10
from t10.errors import InputError, UnsupportedOpError
from t10.reference import run_onnx_runtime


@pytest.mark.parametrize("lengths", [[4, 4, 4], [2, 2, 2], [4, 1, 3]])
@pytest.mark.parametrize("batch_axis", [0, 1])
def test_reversals_of_constant_lengths(tmp_path: Path, lengths: list[int], batch_axis: int) -> None:
    shape = [3, 4, 2] if batch_axis == 0 else [4, 3, 2]
    # Time is the first axis where nothing is said.
    axes: dict[str, Any] = {"batch_axis": 0, "time_axis": 1} if batch_axis == 0 else {}
    path = save(
        tmp_path / "m.onnx",
        [
            helper.make_node("ReverseSequence", ["x", "n"], ["y"], **axes),
        ],
        {"x": (TensorProto.FLOAT, shape)},
        {"y": (TensorProto.FLOAT, shape)},
        n=np.array(lengths, np.int64),
    )
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = t10.compile(path, chip="test-4").run({"x": x})["y"]
    np.testing.assert_array_equal(found, run_onnx_runtime(path, {"x": x})["y"])


@pytest.mark.parametrize("batch_axis", [0, 1])
@pytest.mark.parametrize("rest", [(), (2, 3)])
def test_reversals_of_computed_lengths(tmp_path: Path, rest: tuple[int, ...], batch_axis: int) -> None:
    """A sequence of length 0 or 1 stays as it is."""
    shape = [3, 5, *rest] if batch_axis == 0 else [5, 3, *rest]
    axes: dict[str, Any] = {"batch_axis": 0, "time_axis": 1} if batch_axis == 0 else {}
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("ReverseSequence", ["x", "n"], ["y"], **axes)],
        {"x": (TensorProto.FLOAT, shape), "n": (TensorProto.INT64, [3])},
        {"y": (TensorProto.FLOAT, shape)},
    )
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    compiled = t10.compile(path, chip="test-4")
    for lengths in ([5, 0, 1], [2, 4, 3]):
        inputs = {"x": x, "n": np.array(lengths, np.int64)}
        np.testing.assert_array_equal(compiled.run(inputs)["y"], run_onnx_runtime(path, inputs)["y"])


def test_lengths_that_are_too_many_are_refused(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="back")],
        {"x": (TensorProto.FLOAT, [4, 3]), "n": (TensorProto.INT64, [5])},
        {"y": (TensorProto.FLOAT, [4, 3])},
    )
    with pytest.raises(InputError, match=r"lengths of shape \(5,\) for 3 sequences") as caught:
        t10.compile(path, chip="test-4")
    assert caught.value.operator == "back"


def test_computed_lengths_of_unknown_extents_are_refused_by_name(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("ReverseSequence", ["where", "n"], ["y"], name="back"),
    ]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {"x": (TensorProto.FLOAT, [4, 3]), "n": (TensorProto.INT64, [3])},
        {"y": (TensorProto.INT64, [2, 3])},
    )
    with pytest.raises(UnsupportedOpError, match="NonZero"):
        t10.compile(path, chip="test-4")
