"""Errors against references, and ONNX Runtime in single precision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support import models

from t10.arrays import read_arrays, write_arrays
from t10.core.graph import TensorValue
from t10.errors import InputError
from t10.reference import (
    OnnxRuntime,
    compare,
    load_onnx,
    read_given,
    relative_error,
    run_onnx_runtime,
    split_reference,
)
from t10.tolerances import loosest, tolerance

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("found", "reference", "error"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([1.0, -4.0], [1.0, -4.0], 0.0),
        ([0.5], [0.0], 0.5),
        ([NAN, 1.0], [0.0, 1.0], INF),
        ([INF, 1.0], [INF, 1.0], 0.0),
        ([-INF, 1.0], [INF, 1.0], INF),
        ([NAN, 1.0], [NAN, 1.0], 0.0),
        ([], [], 0.0),
        ([0.0, 1.0], [INF, 1.0], INF),
    ],
)
def test_error_is_relative_to_the_largest_reference(
    found: list[float], reference: list[float], error: float
) -> None:
    assert relative_error(np.array(found), np.array(reference)) == error


def test_what_half_precision_does_not_hold_is_its_largest_or_infinite() -> None:
    reference = np.array([1e13, -7e4, 2.0], np.float32)
    for largest in (INF, 65504.0):
        assert relative_error(np.array([largest, -largest, 2.0], np.float16), reference) == 0.0
    assert relative_error(np.array([NAN, -INF, 2.0], np.float16), reference) == INF
    assert relative_error(np.array([INF, INF, 2.0], np.float16), reference) == 2.0
    assert relative_error(np.array([INF, -INF, 2.0], np.float32), reference) == INF
    assert relative_error(np.array([65504.0], np.float16), np.array([INF], np.float32)) == INF


def test_integers_must_be_equal() -> None:
    (result,) = compare({"y": np.array([1000])}, {"y": np.array([1001])}, tolerance=0.5)
    assert not result.is_within


def test_integers_are_compared_as_integers() -> None:
    (result,) = compare({"y": np.array([2**62, 3])}, {"y": np.array([2**62 + 1, 3])}, tolerance=0.5)
    assert not result.is_within
    (result,) = compare(
        {"y": np.array([0, 255], np.uint8)}, {"y": np.array([255, 255], np.uint8)}, tolerance=0.5
    )
    assert (result.error, result.worst, result.found, result.expected) == (1.0, (0,), 0, 255)


def test_the_worst_element_is_told() -> None:
    found, expected = np.array([[1.0, 2.0], [3.0, 1.5]]), np.array([[1.0, 2.5], [3.1, 4.0]])
    (result,) = compare({"y": found}, {"y": expected}, tolerance=1e-4)
    assert result.worst_text == "y[1, 1] is 1.5, expected 4"
    (result,) = compare({"y": np.array([1.0, NAN])}, {"y": np.array([5.0, 2.0])}, tolerance=1e-4)
    assert result.worst_text == "y[1] is nan, expected 2"


@pytest.mark.parametrize(("dtype", "most"), [("f16", 5e-3), ("f32", 1e-4), ("ui8", 0.0), ("i1", 0.0)])
def test_every_type_has_its_tolerance(dtype: str, most: float) -> None:
    assert tolerance(dtype) == most
    assert loosest((dtype, "i32")) == most


def test_an_output_without_reference_or_of_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="output y has no reference"):
        compare({"y": np.zeros(2)}, {}, 1e-4)
    with pytest.raises(InputError, match=r"shape \(2,\), its reference \(3,\)"):
        compare({"y": np.zeros(2)}, {"y": np.zeros(3)}, 1e-4)


def test_half_precision_models_are_computed_in_single(tmp_path: Path) -> None:
    x = models.weights(7, 4, 24, dtype="float16")
    single = run_onnx_runtime(models.mlp(tmp_path / "half.onnx", "float16"), {"x": x})["y"]
    w0, b0, w1 = (
        models.weights(i, *s, dtype="float16").astype(float)
        for i, s in enumerate([(24, 32), (32,), (32, 10)])
    )
    assert single.dtype == np.float32
    assert np.abs(single - np.maximum(x.astype(float) @ w0 + b0, 0) @ w1).max() < 1e-6


def test_values_inside_a_model_are_told_in_order(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    model = load_onnx(path)
    values = OnnxRuntime(model, path).values({"x": models.weights(7, 4, 24)})
    assert set(values) == {name for node in model.graph.node for name in node.output}
    assert {name.name for name in model.graph.output} == {"y"}


def test_files_may_hold_references_besides_inputs() -> None:
    x, y = np.zeros(1), np.ones(1)
    assert split_reference({"in.x": x, "ref.y": y}) == ({"x": x}, {"y": y})
    assert split_reference({"x": x}) == ({"x": x}, {})


def test_references_hold_real_numbers(tmp_path: Path) -> None:
    path = tmp_path / "in.npz"
    write_arrays(path, {"x": np.zeros(1, np.float32), "ref.y": np.ones(1, np.complex64)})
    with pytest.raises(InputError, match=r"in\.npz: reference y has type complex64, expected real numbers"):
        read_given(path, [TensorValue("x", (1,), "f32")], ["y"])


def test_what_onnx_runtime_cannot_run_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ONNX Runtime cannot run"):
        run_onnx_runtime(models.mlp(tmp_path / "mlp.onnx"), {"x": np.zeros((1, 2, 3), np.float32)})
    with pytest.raises(InputError, match="with its weights"):
        run_onnx_runtime(models.without_data(tmp_path / "bare.onnx"), {})


@pytest.mark.parametrize("offset", ["x", "-5", str(1 << 60)])
def test_external_data_of_a_reference_may_say_anything(offset: str, tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "m.onnx")
    model: Any = onnx.ModelProto.FromString(path.read_bytes())
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "m.onnx"), ("offset", offset)):
        tensor.external_data.add(key=key, value=value)
    (tmp_path / "n.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(InputError, match=r"n\.onnx"):
        load_onnx(tmp_path / "n.onnx")


def test_a_reference_is_checked_before_onnx_reads_it(tmp_path: Path) -> None:
    endless = tmp_path / "endless.onnx"
    endless.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is not a file"):
        load_onnx(endless)


def test_arrays_keep_any_name_and_give_the_same_bytes(tmp_path: Path) -> None:
    arrays = {
        "/encoder/layer.0/w:0": np.arange(3, dtype=np.float16),
        "file": np.array(7),
        "empty": np.zeros((0, 2)),
    }
    for name in ("one.npz", "two.npz"):
        write_arrays(tmp_path / name, arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    found = read_arrays(tmp_path / "one.npz")
    assert list(found) == list(arrays)
    assert all(
        np.array_equal(found[name], arrays[name]) and found[name].dtype == arrays[name].dtype
        for name in arrays
    )


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04"])
def test_a_file_that_is_no_archive_is_an_input_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npz"):
        read_arrays(tmp_path / "x.npz")


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2))
    with pytest.raises(InputError, match="without a name"):
        read_arrays(tmp_path / "x.npy")
