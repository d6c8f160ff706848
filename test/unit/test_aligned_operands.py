"""Opsets below 7: second operands that an `axis` aligns, and what such models are compared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.contributed import computed

from t10.cli import main

_onnx: Any = onnx  # some of its functions are typed in part only
SHAPE = (2, 3, 4, 5)


def _model(operator: str, axis: int | None, b: Any, opset: int) -> Any:
    attributes: dict[str, Any] = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", "b"], ["y"], **attributes)],
        "g",
        [value("x", TensorProto.FLOAT, SHAPE), value("b", TensorProto.FLOAT, b.shape)],
        [value("y", TensorProto.FLOAT, SHAPE)],
        [numpy_helper.from_array(b, "b")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(
    ("axis", "shape"), [(0, (2, 3)), (1, (3, 4)), (1, (3,)), (-3, (3,)), (2, (4, 5)), (None, (5,))]
)
@pytest.mark.parametrize(
    ("operator", "function"),
    [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)],
)
def test_operands_are_aligned_at_an_axis(
    operator: str, function: Callable[..., Any], axis: int | None, shape: tuple[int, ...], opset: int
) -> None:
    random = np.random.default_rng(1)
    x, b = (random.uniform(1, 2, extents).astype(np.float32) for extents in (SHAPE, shape))
    first = 4 - len(shape) if axis is None else axis % 4
    due = function(x, b.reshape(*shape, *[1] * (4 - first - len(shape))))
    np.testing.assert_allclose(computed(_model(operator, axis, b, opset), {"x": x})["y"], due, rtol=1e-6)


def test_models_of_opsets_that_onnx_runtime_has_not_are_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "old.onnx"
    _onnx.save(_model("Mul", 1, np.array([2, 3, 4], np.float32), 6), path)
    assert main(["verify", str(path), "--chip", "test-4"]) == 0, capsys.readouterr().err
