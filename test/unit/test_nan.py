"""A NaN among the weights is told with its place; infinities, which masks are made of, are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper
from support.models import save

from t10.errors import InputError
from t10.frontend.importer import import_model
from t10.frontend.nan import has_nan


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_nan_is_found_in_every_type_of_float(dtype: Any) -> None:
    values = np.array([np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 6e4], dtype)
    assert not has_nan(values)
    for sign in (1, -1):
        assert has_nan(np.append(values, np.array([sign * np.nan], dtype)))
    assert not has_nan(np.zeros((0, 3), dtype))


def test_nan_is_found_behind_the_first_chunk() -> None:
    values = np.zeros((5, 1 << 20), np.float16)
    values[4, -1] = np.nan
    assert has_nan(values)
    assert not has_nan(values[:4])


def test_integers_hold_no_nan() -> None:
    assert not has_nan(np.array([-1, 2**31 - 1], np.int32))


@pytest.mark.parametrize(("value", "is_refused"), [(np.nan, True), (np.inf, False), (-np.inf, False)])
def test_a_model_with_nan_weights_is_refused(value: float, is_refused: bool, tmp_path: Path) -> None:
    weights = np.zeros((4, 8), np.float32)
    weights[2, 3] = value
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    spec = (TensorProto.FLOAT, [4, 8])
    path = save(tmp_path / "m.onnx", [node], {"x": spec}, {"y": spec}, w=weights)
    if not is_refused:
        assert import_model(path).weight_names == ("w",)
        return
    with pytest.raises(InputError, match=r"weight 'w' holds 1 NaN among 32 elements, the first at 2x3"):
        import_model(path)
