"""Operators on integers that a lowering over floats would get wrong: powers, means, pools with places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.errors import UnsupportedOpError

onnx: Any = untyped_onnx
node = helper.make_node
Array = NDArray[Any]
WHOLE = [np.int32, np.int64]
BASES = np.array([-12, -3, -2, -1, 0, 1, 2, 3, 7, 100])


def _declared(name: str, values: Array) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(values.dtype), values.shape)


def _saved(folder: Path, operator: Any, inputs: dict[str, Array], **constants: Array) -> Path:
    model = helper.make_model(
        helper.make_graph(
            [operator],
            "g",
            [_declared(name, values) for name, values in inputs.items()],
            [helper.make_tensor_value_info(name, 0, None) for name in operator.output],
            [numpy_helper.from_array(values, name) for name, values in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    onnx.save(onnx.shape_inference.infer_shapes(model), folder / "m.onnx")
    return folder / "m.onnx"


def _on_engines(
    path: Path, inputs: dict[str, Array], program: Path | None = None
) -> Sequence[Mapping[str, Array]]:
    executable = t10.compile(path, chip="test-16")
    found: list[Mapping[str, Array]] = [executable.run(inputs), run_on_tiles(executable, inputs).outputs]
    if program is not None:
        write_program(executable, lowered(executable), program)
        found.append(run_on_host(executable, program, inputs))
    return found


def _powers(base: Array, exponent: Array) -> Array:
    """Return exact powers, wrapped; those to negative exponents cut."""
    bits, dtype = 8 * base.dtype.itemsize, base.dtype

    def power(x: int, n: int) -> int:
        return (x ** (n % 2) if abs(x) == 1 else 0) if n < 0 else x**n

    exact = [power(int(x), int(n)) for x, n in zip(*np.broadcast_arrays(base, exponent), strict=True)]
    return np.array([(each + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for each in exact], dtype)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 9, 31, 64, 65, -1, -2, np.float32(3)])
def test_constant_powers_of_integers_are_exact(dtype: Any, exponent: float, tmp_path: Path) -> None:
    inputs = {"x": BASES.astype(dtype)}
    constant = np.array(exponent, getattr(exponent, "dtype", dtype))
    path = _saved(tmp_path, node("Pow", ["x", "e"], ["y"]), inputs, e=constant)
    for found in _on_engines(path, inputs):
        np.testing.assert_array_equal(found["y"], _powers(inputs["x"], constant), strict=True)


@pytest.mark.parametrize("dtype", WHOLE)
def test_powers_of_integers_are_exact(dtype: Any, tmp_path: Path) -> None:
    inputs = {
        "x": np.array([3, 7, -2, -2, 11, 0, 0, -1, -1, 1, 5, 1290, 2, 2], dtype),
        "e": np.array([3, 0, 31, 30, 5, 0, 9, 1001, -3, -8, -1, 3, 33, 1], dtype),
    }
    path = _saved(tmp_path, node("Pow", ["x", "e"], ["y"]), inputs)
    for found in _on_engines(path, inputs, tmp_path / "program"):
        np.testing.assert_array_equal(found["y"], _powers(inputs["x"], inputs["e"]), strict=True)


def test_fractional_powers_of_integers_are_refused(tmp_path: Path) -> None:
    path = _saved(tmp_path, node("Pow", ["x", "e"], ["y"]), {"x": BASES.astype(np.int32)}, e=np.array(2.5))
    with pytest.raises(UnsupportedOpError, match="Pow of int32 takes integer exponents only"):
        t10.compile(path, chip="test-16")


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_means_of_integers_are_cut(dtype: Any, keepdims: int, tmp_path: Path) -> None:
    inputs = {"x": np.array([[-7, -1, 1], [7, 1, 0], [-5, 0, 0], [2**30] * 3], dtype)}
    path = _saved(
        tmp_path, node("ReduceMean", ["x", "axes"], ["y"], keepdims=keepdims), inputs, axes=np.array([1])
    )
    for found in _on_engines(path, inputs):
        expected = np.array([-2, 2, -1, 2**30], dtype).reshape((4, 1) if keepdims else 4)
        np.testing.assert_array_equal(found["y"], expected, strict=True)


SHORTS = {
    "bool": [0, 1, 1, 0], "int8": [-128, -1, 0, 127], "uint8": [0, 127, 128, 255],
    "int32": [-(2**31), 2**15, 2**16 + 7, -40_000], "int64": [2**63 - 1, 2**40 + 3, -(2**15) - 1, 65_535],
    "float16": [-32_768, 0.999, -7.5, 32_752], "float32": [-32_768.9, 32_767.9, -0.5, 100.5],
}  # fmt: skip


@pytest.mark.parametrize("source", SHORTS)
def test_shorts_keep_the_lowest_bits_of_integers_and_whole_parts_of_floats(
    source: str, tmp_path: Path
) -> None:
    inputs = {"x": np.array(SHORTS[source], source)}
    path = _saved(tmp_path, node("Cast", ["x"], ["y"], to=onnx.TensorProto.INT16), inputs)
    for found in _on_engines(path, inputs, tmp_path / "program"):
        np.testing.assert_array_equal(found["y"], inputs["x"].astype(np.int16), strict=True)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_pools_of_bytes_with_places(dtype: Any, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 256, (1, 2, 6, 6)).astype(np.uint8).view(dtype)
    pool = node("MaxPool", ["x"], ["y", "places"], kernel_shape=[2, 2], strides=[2, 2])
    windows = x.reshape(2, 3, 2, 3, 2).transpose(0, 1, 3, 2, 4).reshape(1, 2, 3, 3, 4)
    flat = np.arange(72).reshape(2, 3, 2, 3, 2).transpose(0, 1, 3, 2, 4).reshape(1, 2, 3, 3, 4)
    places = np.take_along_axis(flat, windows.argmax(-1)[..., None], -1)[..., 0]
    for found in _on_engines(_saved(tmp_path, pool, {"x": x}), {"x": x}):
        np.testing.assert_array_equal(found["y"], windows.max(-1), strict=True)
        np.testing.assert_array_equal(found["places"], places)


def test_zeros_are_quantised_with_a_scale_of_1(tmp_path: Path) -> None:
    inputs = {"x": np.zeros((2, 8), np.float32)}
    path = _saved(tmp_path, node("DynamicQuantizeLinear", ["x"], ["y", "scale", "zero"]), inputs)
    for found in _on_engines(path, inputs):
        assert found["scale"] == 1
        assert found["zero"] == 0
        assert not found["y"].any()
