"""Operators that turn out to copy, or to write one constant: cleaning finds that after they were named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models

import t10
from t10.backend import run_on_tiles
from t10.reference import run_onnx_runtime

FLOAT, INT32, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8


def there_and_back(*between: Any) -> list[Any]:
    return [
        helper.make_node("Cast", ["x"], ["wide"], to=INT32),
        *between,
        helper.make_node("Cast", [between[-1].output[0] if between else "wide"], ["y"], to=UINT8),
    ]


Case = tuple[list[Any], int, list[int], tuple[int, list[int]]]
CASES: list[Case] = [
    (there_and_back(), UINT8, [1], (UINT8, [1])),
    (
        there_and_back(helper.make_node("Transpose", ["wide"], ["t"], perm=[1, 0])),
        UINT8,
        [5, 7],
        (UINT8, [7, 5]),
    ),
    (there_and_back(helper.make_node("Expand", ["wide", "s"], ["t"])), UINT8, [5, 1], (UINT8, [5, 3])),
    ([helper.make_node("ReduceMin", ["x"], ["y"], axes=[0])], INT32, [1], (INT32, [1])),
    (
        [helper.make_node("Sub", ["x", "x"], ["d"]), helper.make_node("CumSum", ["d", "axis"], ["y"])],
        INT32,
        [5, 7],
        (INT32, [5, 7]),
    ),
    ([helper.make_node("ArgMax", ["x"], ["y"], axis=0, keepdims=0)], FLOAT, [1], (INT64, [])),
]


@pytest.mark.parametrize(("nodes", "kind", "shape", "made"), CASES)
def test_what_only_copies_is_no_operator(
    tmp_path: Path, nodes: list[Any], kind: int, shape: list[int], made: tuple[int, list[int]]
) -> None:
    # Another operator beside it, because a program without any is not expanded.
    nodes = [*nodes, helper.make_node("Neg", ["a"], ["b"])]
    inputs, outputs = {"x": (kind, shape), "a": (FLOAT, [3])}, {"y": made, "b": (FLOAT, [3])}
    read = {name for node in nodes for name in node.input}
    constants = {"s": np.array([5, 3]), "axis": np.array(1)}
    stored = {name: array for name, array in constants.items() if name in read}
    path = models.save(tmp_path / "m.onnx", nodes, inputs, outputs, **stored)
    given = {
        "x": np.arange(np.prod(shape)).reshape(shape).astype(helper.tensor_dtype_to_np_dtype(kind)),
        "a": models.weights(0, 3),
    }
    executable = t10.compile(path, chip="test-16")
    expected = run_onnx_runtime(path, given)
    for found in (executable.run(given), run_on_tiles(executable, given).outputs):
        for name, reference in expected.items():
            np.testing.assert_array_equal(found[name], reference)
