"""ReverseSequence of constant lengths computes what ONNX says, on one length and on several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

import t10
from t10.errors import UnsupportedOpError
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


def test_lengths_that_come_with_the_data_are_refused_by_name(tmp_path: Path) -> None:
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("ReverseSequence", ["x", "n"], ["y"], name="back")],
        {"x": (TensorProto.FLOAT, [4, 3]), "n": (TensorProto.INT64, [3])},
        {"y": (TensorProto.FLOAT, [4, 3])},
    )
    with pytest.raises(UnsupportedOpError, match=r"'back'.*ReverseSequence"):
        t10.compile(path, chip="test-4")
