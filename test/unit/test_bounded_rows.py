"""Rows of which only the first are valid, behind the operators that read them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support.bounded import agree

make = helper.make_node
CHOSEN = (
    make("NonZero", ["x"], ["at"]),
    make("Squeeze", ["at", "zero"], ["rows"]),
    make("Gather", ["x", "rows"], ["chosen"]),
)
"""The elements that are not zero."""


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("value", [0, np.inf, -np.inf])
def test_extremes_of_no_rows_and_of_infinities_are_infinite(value: float, dtype: type[np.generic]) -> None:
    x = np.array([value, 0, value, 0, 0], dtype)
    nodes = [
        *CHOSEN,
        make("ReduceMax", ["chosen"], ["most"], keepdims=0),
        make("ReduceMin", ["chosen"], ["least"], keepdims=0),
    ]
    kinds: dict[str, int] = dict.fromkeys(("most", "least"), helper.np_dtype_to_tensor_dtype(x.dtype))
    agree(nodes, {"x": x}, kinds, {}, ("at", 4), zero=np.array([0]))
