"""Inputs of which every operator reads a part only: all of it must lie somewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

import t10

FLOAT = TensorProto.FLOAT


def _gather(made: str, row: int) -> list[object]:
    index = helper.make_node("Constant", [], [f"{made}.row"], value_int=row)
    return [index, helper.make_node("Gather", ["x", f"{made}.row"], [made], axis=0, name=made)]


@pytest.mark.parametrize("rows", [(0, 2), (2, 0), (1, 1)])
def test_operators_that_read_different_rows_of_an_input_get_them(
    tmp_path: Path, rows: tuple[int, int]
) -> None:
    """The first reader decides how an input lies only if it reads all of it."""
    nodes = [
        *_gather("a", rows[0]),
        helper.make_node("Add", ["s", "a"], ["b"], name="b"),
        *_gather("c", rows[1]),
        helper.make_node("Mul", ["b", "c"], ["y"], name="y"),
    ]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {"x": (FLOAT, [3, 2]), "s": (FLOAT, [2])},
        {"y": (FLOAT, [2]), "b": (FLOAT, [2])},
    )
    x, s = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0.5, 7], np.float32)
    found = t10.compile(path, chip="test-4").run({"x": x, "s": s})
    np.testing.assert_array_equal(found["b"], s + x[rows[0]])
    np.testing.assert_array_equal(found["y"], (s + x[rows[0]]) * x[rows[1]])


def test_operators_that_read_different_columns_of_an_input_get_them(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Slice", ["x", "zero", "four", "one"], ["a"], name="a"),
        helper.make_node("Slice", ["x", "four", "eight", "one"], ["c"], name="c"),
        helper.make_node("Relu", ["a"], ["b"], name="b"),
        helper.make_node("Add", ["b", "c"], ["y"], name="y"),
    ]
    path = save(
        tmp_path / "m.onnx", nodes, {"x": (FLOAT, [5, 8])}, {"y": (FLOAT, [5, 4]), "b": (FLOAT, [5, 4])},
        zero=np.array([0]), one=np.array([1]), four=np.array([4]), eight=np.array([8]),
    )  # fmt: skip
    x = np.linspace(-1, 1, 40, dtype=np.float32).reshape(5, 8)
    found = t10.compile(path, chip="test-4").run({"x": x})
    np.testing.assert_array_equal(found["y"], np.maximum(x[:, :4], 0) + x[:, 4:])
