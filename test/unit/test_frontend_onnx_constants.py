"""Every form of `onnx.Constant` keeps its element type, its shape and its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto
from support.onnx_text import constant_of

from t10.errors import UnsupportedOpError


@pytest.mark.parametrize(
    ("spelling", "kind", "expected"),
    [
        ('dense<"hi"> : tensor<!onnx.String>', "tensor<!onnx.String>", [b"hi"]),
        ('dense<"hi"> : tensor<2x!onnx.String>', "tensor<2x!onnx.String>", [b"hi", b"hi"]),
        (
            r'dense<["a", "\C3\A9\22q"]> : tensor<2x!onnx.String>',
            "tensor<2x!onnx.String>",
            [b"a", b'\xc3\xa9"q'],
        ),
        ('{value_string = "hi"} : tensor<!onnx.String>', "tensor<!onnx.String>", [b"hi"]),
        ('{value_strings = ["x", "y"]} : tensor<2x!onnx.String>', "tensor<2x!onnx.String>", [b"x", b"y"]),
    ],
)
def test_strings(spelling: str, kind: str, expected: list[bytes]) -> None:
    found = constant_of(spelling, kind)
    assert list(found.string_data) == expected
    assert list(found.dims) == ([2] if "2x" in kind else [])


@pytest.mark.parametrize(
    ("spelling", "kind", "number", "expected"),
    [
        ("dense<[1.5, -2.0]> : tensor<2xbf16>", "tensor<2xbf16>", TensorProto.BFLOAT16, [1.5, -2.0]),
        ('dense<"0x803F0040"> : tensor<2xbf16>', "tensor<2xbf16>", TensorProto.BFLOAT16, [1.0, 2.0]),
        ("dense<[0x7F80, 1.0]> : tensor<2xbf16>", "tensor<2xbf16>", TensorProto.BFLOAT16, [np.inf, 1.0]),
        ("dense<2.0> : tensor<3xf8E4M3FN>", "tensor<3xf8E4M3FN>", TensorProto.FLOAT8E4M3FN, [2.0, 2.0, 2.0]),
        ("dense<[1, -2, 7]> : tensor<3xi4>", "tensor<3xi4>", TensorProto.INT4, [1, -2, 7]),
        ("dense<[1, 65535]> : tensor<2xui16>", "tensor<2xui16>", TensorProto.UINT16, [1, 65535]),
        (
            '{value = #onnx.dense_disposable<1:"0x0000803F00000040"> : tensor<2xf32>} : tensor<2xf32>',
            *("tensor<2xf32>", TensorProto.FLOAT, [1.0, 2.0]),
        ),
        (
            '{value = #onnx.dense_disposable<7:"0x0000803F"> : tensor<2xf32>} : tensor<2xf32>',
            *("tensor<2xf32>", TensorProto.FLOAT, [1.0, 1.0]),
        ),
    ],
)
def test_element_types_numpy_lacks(spelling: str, kind: str, number: int, expected: list[float]) -> None:
    found = constant_of(spelling, kind)
    assert found.data_type == number
    values: NDArray[Any] = onnx.numpy_helper.to_array(found)
    assert values.astype(np.float64).tolist() == expected


def test_scalars_stay_scalars() -> None:
    assert list(constant_of("dense<2> : tensor<i64>", "tensor<i64>").dims) == []


def test_elided_weights_are_external_data() -> None:
    weight = constant_of("dense_resource<__elided__> : tensor<4x5xf32>", "tensor<4x5xf32>")
    assert weight.data_location == TensorProto.EXTERNAL
    assert list(weight.dims) == [4, 5]


@pytest.mark.parametrize(
    ("spelling", "kind", "message"),
    [
        ("dense_resource<__elided__> : tensor<4xi64>", "tensor<4xi64>", r"elided data.*not the \.tmp file"),
        ("sparse<[[0]], [1.0]> : tensor<4xf32>", "tensor<4xf32>", "holds sparse_value"),
    ],
)
def test_constants_without_values_are_refused(spelling: str, kind: str, message: str) -> None:
    with pytest.raises(UnsupportedOpError, match=message):
        constant_of(spelling, kind)
