"""What is far too large for a chip is refused before anything is searched; what may fit is left to the search."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

from t10.chip import load_chip
from t10.driver import compile
from t10.errors import InfeasiblePlanError, UnsupportedOpError
from t10.plan.fit.capacity import HOPELESS, MOST_OPERANDS

FLOAT = TensorProto.FLOAT


def test_hopelessly_large_tensors_are_refused(tmp_path: Path) -> None:
    chip = load_chip("test-4")
    n = HOPELESS * chip.n_cores * chip.sram_bytes
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"], name="r")],
        {"x": (FLOAT, [n])},
        {"y": (FLOAT, [n])},
    )
    with pytest.raises(InfeasiblePlanError, match="operator 'r': its operands and result have"):
        compile(path, chip)


def test_hopelessly_long_loops_are_refused(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Range", ["first", "end", "step"], ["r"], name="r"),
        helper.make_node("ReduceSum", ["r"], ["s"], name="sum", keepdims=0),
        helper.make_node("Cast", ["s"], ["y"], to=FLOAT),
    ]
    ends = {"first": np.array(0), "end": np.array(2**40), "step": np.array(1)}
    path = save(tmp_path / "m.onnx", nodes, {}, {"y": (FLOAT, [])}, **ends)
    with pytest.raises(InfeasiblePlanError, match="its loops have 1,099,511,627,776 points"):
        compile(path, "test-4")


@pytest.mark.parametrize("operator", ["Expand", "Pad", "PadSlice", "Slice"])
def test_hopelessly_large_values_that_no_operator_reads_are_refused(operator: str, tmp_path: Path) -> None:
    make, extents = helper.make_node, [4, 1 << 36] if operator == "Slice" else [4, 4]
    pad = [0, 0, 0, 1 << 36]
    nodes = {
        "Expand": [make("Expand", ["x", "shape"], ["y"])],
        "Pad": [make("Pad", ["x", "pads"], ["y"])],
        "PadSlice": [make("Pad", ["x", "pads"], ["z"]), make("Slice", ["z", "first", "end"], ["y"])],
        "Slice": [make("Slice", ["x", "first", "end"], ["y"])],
    }
    ends = {"first": np.array([1, 2]), "end": np.array([3, 9])}
    constants = {"shape": np.array([1 << 20, 1 << 15, 4, 4]), "pads": np.array(pad), **ends}
    path = save(
        tmp_path / "m.onnx", nodes[operator], {"x": (FLOAT, extents)}, {"y": (FLOAT, None)}, **constants
    )
    with pytest.raises(InfeasiblePlanError, match=r"value '.*' of shape .* has .* elements \(expected"):
        compile(path, "test-4")


def test_what_is_a_little_too_large_is_explained_by_the_planner(tmp_path: Path) -> None:
    chip = load_chip("test-4")
    n = chip.n_cores * chip.sram_bytes
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"], name="r")],
        {"x": (FLOAT, [n])},
        {"y": (FLOAT, [n])},
    )
    with pytest.raises(InfeasiblePlanError, match="bytes per core") as caught:
        compile(path, chip)
    assert caught.value.details


def test_tensors_of_more_dims_than_are_searched_are_refused(tmp_path: Path) -> None:
    shape = [2] * 17
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Relu", ["x"], ["y"], name="r")],
        {"x": (FLOAT, shape)},
        {"y": (FLOAT, shape)},
    )
    with pytest.raises(UnsupportedOpError, match="operator 'r': it has 17 axes"):
        compile(path, "test-4")


@pytest.mark.slow
def test_sums_of_any_number_of_tensors_are_cut_into_operators_that_can_be_searched(tmp_path: Path) -> None:
    names = [f"x{i}" for i in range(MOST_OPERANDS + 2)]
    path = save(
        tmp_path / "m.onnx",
        [helper.make_node("Sum", names, ["y"], name="s")],
        {name: (FLOAT, [2, 3]) for name in names},
        {"y": (FLOAT, [2, 3])},
    )
    executable = compile(path, "test-4")
    operators = executable.plan.graph.operators
    assert len(operators) == 2
    assert all(len(spec.inputs) < MOST_OPERANDS for spec in operators)
    values = {name: np.full((2, 3), i, np.float32) for i, name in enumerate(names)}
    np.testing.assert_array_equal(
        executable.run(values)["y"], np.full((2, 3), sum(range(len(names))), np.float32)
    )
