"""Elementwise operators that do the same to parts of one tensor are one; what they make are slices of what it makes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_runtime

import t10
from t10.backend import run_on_tiles
from t10.driver import Executable

TOKENS, SIZE, HEADS, OTHERS = 3, 8, 4, 2


def scaled_parts(*, second: str = "Mul", source: str = "y") -> onnx.ModelProto:
    """Return the model of parts of tanh(x), or one of z, times a factor for all heads; 4 heads and 2."""
    kind = TensorProto.FLOAT16
    ints = {"zero": [0], "first": [HEADS], "end": [HEADS + OTHERS], "axis": [1]}
    nodes = [
        helper.make_node("CumSum", ["x", "axis0"], ["y"], name="sums"),
        helper.make_node("Slice", ["y", "zero", "first", "axis"], ["a"]),
        helper.make_node("Slice", [source, "first", "end", "axis"], ["b"]),
        helper.make_node("Mul", ["a", "c"], ["q"], name="scale_q"),
        helper.make_node(second, ["b", "c"], ["k"], name="scale_k"),
    ]
    whole = [1, HEADS + OTHERS, TOKENS, SIZE]
    graph = helper.make_graph(
        nodes,
        "parts",
        [
            helper.make_tensor_value_info("x", kind, whole),
            helper.make_tensor_value_info("z", kind, whole),
            helper.make_tensor_value_info("c", kind, [1, 1, TOKENS, SIZE]),
        ],
        [
            helper.make_tensor_value_info("q", kind, [1, HEADS, TOKENS, SIZE]),
            helper.make_tensor_value_info("k", kind, [1, OTHERS, TOKENS, SIZE]),
        ],
        [
            numpy_helper.from_array(np.array(3, np.int64), "axis0"),
            *(numpy_helper.from_array(np.array(value, np.int64), name) for name, value in ints.items()),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def compiled(model: onnx.ModelProto, folder: Path) -> Executable:
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return t10.compile(folder / "model.onnx", chip="test-4", program=True)


def scales(executable: Executable) -> list[str]:
    """Return the operators that multiply."""
    return [spec.name for spec in executable.plan.graph.operators if spec.name.startswith("scale")]


def test_equal_work_on_parts_of_one_tensor_is_one_operator(tmp_path: Path) -> None:
    model = scaled_parts()
    executable = compiled(model, tmp_path)
    assert scales(executable) == ["scale_q (+1)"]
    rng = np.random.default_rng(0)
    inputs = {each.name: rng.standard_normal(each.shape).astype(np.float16) for each in executable.inputs}
    expected = by_runtime(model, inputs | {"z": np.zeros((1, HEADS + OTHERS, TOKENS, SIZE), np.float16)})
    for found in (executable.run(inputs), run_on_tiles(executable, inputs).outputs):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("change", [{"second": "Div"}, {"source": "z"}], ids=["other work", "other tensor"])
def test_what_differs_is_not_joined(tmp_path: Path, change: dict[str, str]) -> None:
    assert scales(compiled(scaled_parts(**change), tmp_path)) == ["scale_q", "scale_k"]
