"""Sparse tensors of models: read as dense ones of any form that ONNX has, refused where they break its rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import t10
from t10.errors import InputError
from t10.frontend.sparse import MOST_ELEMENTS

DENSE = np.zeros((8, 4), np.float32)
DENSE[0, 0], DENSE[2, 1], DENSE[7, 3] = 1, 2, 3
_FLAT = np.flatnonzero(DENSE)


def _sparse(places: Any, name: str = "w") -> Any:
    values = numpy_helper.from_array(DENSE[DENSE != 0], name)
    indices = numpy_helper.from_array(np.asarray(places, np.int64), f"{name}.places")
    return helper.make_sparse_tensor(values, indices, [8, 4])


def _model(nodes: list[Any], sparse: list[Any]) -> Any:
    value = helper.make_tensor_value_info
    floats = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [value("x", floats, [2, 8])], [value("y", floats, [2, 4])], sparse_initializer=sparse
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def _saved(model: Any, folder: Path) -> Path:
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


_PRODUCT = helper.make_node("MatMul", ["x", "w"], ["y"])


@pytest.mark.parametrize("places", [_FLAT, np.argwhere(DENSE)], ids=["flat", "by-dim"])
@pytest.mark.parametrize("form", ["initializer", "constant"])
def test_sparse_weights_are_those_of_their_elements(form: str, places: Any, tmp_path: Path) -> None:
    if form == "initializer":
        model = _model([_PRODUCT], [_sparse(places)])
    else:
        made = helper.make_node("Constant", [], ["w"], sparse_value=_sparse(places, ""))
        model = _model([made, _PRODUCT], [])
    executable = t10.compile(_saved(model, tmp_path), chip="test-4")
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    np.testing.assert_array_equal(executable.run({"x": x})["y"], x @ DENSE)


def _first_dim(extent: int) -> Callable[[Any], None]:
    def change(sparse: Any) -> None:
        sparse.dims[0] = extent

    return change


def _without_places(sparse: Any) -> None:
    sparse.indices.ClearField("raw_data")


def _with_outside_values(sparse: Any) -> None:
    sparse.values.data_location = onnx.TensorProto.EXTERNAL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_first_dim(1 << 40), f"(expected {MOST_ELEMENTS:,} in all at most)"),
        (_first_dim(-8), "breaks the rules of ONNX"),
        (_first_dim(7), "breaks the rules of ONNX"),
        (_without_places, "breaks the rules of ONNX"),
        (_with_outside_values, "is external data"),
    ],
)
def test_sparse_weights_that_are_none_are_refused(
    change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    sparse = _sparse(_FLAT)
    change(sparse)
    with pytest.raises(InputError) as caught:
        t10.compile(_saved(_model([_PRODUCT], [sparse]), tmp_path), chip="test-4")
    assert message in str(caught.value)
