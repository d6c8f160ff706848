"""Pools with `ceil_mode` have the windows, and the counts, that ONNX defines: checked against a definition in loops."""

from __future__ import annotations

from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from support import models

import t10
from t10.backend import run_on_tiles
from t10.errors import InputError
from t10.frontend.importer import import_proto
from t10.reference import run_onnx_runtime

onnx: Any = untyped_onnx
Windows = tuple[list[int], list[int], list[int], list[int]]
"""Kernel, strides, dilations and pads."""

CASES: dict[str, tuple[tuple[int, ...], Windows]] = {
    "last-window-in-padding": ((1, 2, 5, 5), ([2, 2], [2, 2], [1, 1], [1, 1, 1, 1])),
    "reaches-behind": ((1, 2, 4, 4), ([3, 3], [2, 2], [1, 1], [0, 0, 0, 0])),
    "asymmetric": ((1, 2, 10, 10), ([3, 3], [3, 2], [1, 1], [1, 0, 0, 1])),
    "dilated": ((1, 2, 9, 9), ([2, 2], [3, 2], [2, 3], [1, 0, 0, 1])),
    "1d": ((1, 2, 9), ([3], [2], [2], [1, 0])),
    "3d": ((1, 2, 7, 7, 7), ([3, 2, 3], [2, 2, 2], [1, 2, 1], [0, 1, 0, 1, 0, 1])),
}


def _model(operator: str, shape: tuple[int, ...], windows: Windows, opset: int = 22, **options: Any) -> Any:
    kernel, strides, dilations, pads = windows
    attributes = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "ceil_mode": 1,
    }
    node = helper.make_node(operator, ["x"], ["y"], **attributes, **options)
    value = helper.make_tensor_value_info
    dims = [f"d{i}" for i in range(len(shape))]
    graph = helper.make_graph(
        [node], "g", [value("x", TensorProto.FLOAT, shape)], [value("y", TensorProto.FLOAT, dims)]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def _extents(shape: tuple[int, ...], windows: Windows) -> list[int]:
    found: list[int] = []
    for n, kernel, stride, dilation, low, high in zip(
        shape[2:], *windows[:3], windows[3][: len(shape) - 2], windows[3][len(shape) - 2 :], strict=True
    ):
        count = -(-(n + low + high - (kernel - 1) * dilation - 1) // stride) + 1
        found.append(count - int((count - 1) * stride >= n + low))
    return found


def _defined(operator: str, x: NDArray[Any], windows: Windows, with_padding: bool) -> NDArray[Any]:
    """Return the pool tap by tap."""
    kernel, strides, dilations, pads = windows
    rank = len(kernel)
    y = np.zeros((*x.shape[:2], *_extents(x.shape, windows)))
    for window in product(*map(range, y.shape[2:])):
        values: list[NDArray[Any]] = []
        count = 0
        for tap in product(*map(range, kernel)):
            place = [window[i] * strides[i] + tap[i] * dilations[i] - pads[i] for i in range(rank)]
            is_inside = all(0 <= p < n for p, n in zip(place, x.shape[2:], strict=True))
            is_given = all(-pads[i] <= place[i] < x.shape[2 + i] + pads[rank + i] for i in range(rank))
            values += [x[(slice(None), slice(None), *place)].astype(np.float64)] if is_inside else []
            count += int(is_given if with_padding else is_inside)
        taps = np.array(values)
        at = (slice(None), slice(None), *window)
        if operator == "MaxPool":
            y[at] = taps.max(axis=0)
        elif operator == "AveragePool":
            y[at] = taps.sum(axis=0) / count
        else:
            y[at] = np.sqrt((taps**2).sum(axis=0))
    return y


@pytest.mark.sampled(3)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "AveragePool-with-padding", "LpPool"])
@pytest.mark.parametrize("case", CASES)
def test_pools_round_up_as_onnx_defines(operator: str, case: str, tmp_path: Path) -> None:
    shape, windows = CASES[case]
    name, _, with_padding = operator.partition("-")
    options = {"count_include_pad": 1} if with_padding else {}
    path = tmp_path / "m.onnx"
    onnx.save(_model(name, shape, windows, **options), path)
    x = np.random.default_rng(prod(shape)).normal(size=shape).astype(np.float32)
    executable = t10.compile(path, chip="test-16")
    expected = _defined(name, x, windows, bool(with_padding))
    for found in (executable.run({"x": x})["y"], run_on_tiles(executable, {"x": x}).outputs["y"]):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_automatic_padding_counts_elements_alone(auto_pad: str, tmp_path: Path) -> None:
    """With 4 elements and windows of 3 at steps of 2, SAME pads by 1; VALID rounds up instead."""
    attributes: dict[str, Any] = {"kernel_shape": [3], "strides": [2], "auto_pad": auto_pad, "ceil_mode": 1}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("AveragePool", ["x"], ["y"], **attributes)],
        "g",
        [value("x", TensorProto.FLOAT, [1, 1, 4])],
        [value("y", TensorProto.FLOAT, [1, 1, 2])],
    )
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), path)
    found = t10.compile(path, chip="test-16").run({"x": np.array([[[1, 2, 6, 9]]], np.float32)})["y"]
    expected = [1.5, 17 / 3] if auto_pad == "SAME_LOWER" else [3.0, 7.5]
    np.testing.assert_allclose(found, [[expected]], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["last-window-in-padding", "1d", "3d"])
def test_a_window_of_nothing_but_infinity_has_it_in_f64(case: str, tmp_path: Path) -> None:
    """Padding is below every number."""
    shape, windows = CASES[case]
    model = _model("MaxPool", shape, windows)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, tmp_path / "m.onnx")
    found = t10.compile(tmp_path / "m.onnx", chip="test-16").run({"x": np.full(shape, -np.inf)})
    assert found["y"].size > 1
    assert (found["y"] == -np.inf).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "AveragePool-with-padding"])
@pytest.mark.parametrize("opset", [11, 18])
def test_shapes_of_old_opsets_are_inferred_right(operator: str, opset: int, tmp_path: Path) -> None:
    """ONNX's own inference counts a window in the padding, also in what reads the pool."""
    shape, (kernel, strides, _, pads) = CASES["last-window-in-padding"]
    name, _, with_padding = operator.partition("-")
    options: dict[str, Any] = {"count_include_pad": 1} if with_padding else {}
    pool = helper.make_node(
        name, ["x"], ["p"], kernel_shape=kernel, strides=strides, pads=pads, ceil_mode=1, **options
    )
    again = helper.make_node(name, ["p"], ["q"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, **options)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [pool, again, helper.make_node("Add", ["q", "b"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, shape), value("b", TensorProto.FLOAT, [1, 2, 2, 2])],
        [value("y", TensorProto.FLOAT, ["n", "c", "h", "w"])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8),
        tmp_path / "m.onnx",
    )
    x = np.random.default_rng(opset).normal(size=shape).astype(np.float32)
    offset = np.ones((1, 2, 2, 2), np.float32)
    found = t10.compile(tmp_path / "m.onnx", chip="test-16").run({"x": x, "b": offset})["y"]
    first = _defined(name, x, CASES["last-window-in-padding"][1], bool(with_padding))
    expected = _defined(name, first, ([2, 2], [2, 2], [1, 1], [0, 0, 0, 0]), bool(with_padding)) + offset
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool"])
def test_outputs_without_a_declared_shape_have_the_windows_that_onnx_runtime_has(
    operator: str, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "kernel_shape": [2, 2],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
        "ceil_mode": 1,
    }
    graph = helper.make_graph(
        [helper.make_node(operator, ["x"], ["p"], **options), helper.make_node("Relu", ["p"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 3, 3])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("p", "y")],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8),
        tmp_path / "m.onnx",
    )
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 3)).astype(np.float32)
    found = t10.compile(tmp_path / "m.onnx", chip="test-16").run({"x": x})
    expected = run_onnx_runtime(tmp_path / "m.onnx", {"x": x})
    for name, array in expected.items():
        assert found[name].shape == array.shape == (1, 2, 2, 2)
        np.testing.assert_allclose(found[name], array, rtol=1e-6)


def test_a_declared_shape_that_is_wrong_is_an_error_that_names_it(tmp_path: Path) -> None:
    shape, windows = CASES["last-window-in-padding"]
    model = _model("AveragePool", shape, windows)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 4]))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(InputError, match=r"AveragePool makes \(3, 3\), the model declares \(4, 4\)"):
        t10.compile(tmp_path / "m.onnx", chip="test-16")


@pytest.mark.parametrize("name", ["kernel_shape", "strides", "pads"])
def test_windows_of_another_rank_are_refused(name: str) -> None:
    model = _model("MaxPool", (1, 2, 5, 5), ([2, 2], [2, 2], [1, 1], [1, 1, 1, 1]))
    next(each for each in model.graph.node[0].attribute if each.name == name).ints[:] = [1]
    with pytest.raises(InputError, match=r"MaxPool|shapes do not fit"):
        import_proto(model, source="m")


@pytest.mark.parametrize("n_levels", [1, 2])
def test_elements_return_to_where_a_pool_with_a_rest_found_them(n_levels: int, tmp_path: Path) -> None:
    """A pool of 2 by 2 leaves out the last row of 11: places count in what it pools, not in 10 rows."""
    sizes = [11, 5, 2][: n_levels + 1]
    nodes: list[Any] = []
    for level in range(n_levels):
        given, made = f"x{level}" if level else "x", f"x{level + 1}"
        nodes.append(
            helper.make_node("MaxPool", [given], [made, f"at{level}"], kernel_shape=[2, 2], strides=[2, 2])
        )
    value = f"x{n_levels}"
    for level in reversed(range(n_levels)):
        made = f"y{level}" if level else "y"
        given = [value, f"at{level}", f"shape{level}"]
        nodes.append(helper.make_node("MaxUnpool", given, [made], kernel_shape=[2, 2], strides=[2, 2]))
        value = made
    shapes = {f"shape{i}": np.array([1, 2, n, n]) for i, n in enumerate(sizes[:-1])}
    path = models.save(
        tmp_path / "m.onnx",
        nodes,
        {"x": (TensorProto.FLOAT, [1, 2, 11, 11])},
        {"y": (TensorProto.FLOAT, [1, 2, 11, 11])},
        **shapes,
    )
    inputs = {"x": np.abs(models.weights(0, 1, 2, 11, 11)) + 1}
    found = t10.compile(path, "test-4").run(inputs)["y"]
    np.testing.assert_array_equal(found, run_onnx_runtime(path, inputs)["y"])
    np.testing.assert_array_equal(found[found != 0], inputs["x"][found != 0])


def test_places_of_a_pool_that_were_moved_are_still_those_of_the_pool(tmp_path: Path) -> None:
    make = helper.make_node
    size: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        make("MaxPool", ["x"], ["p", "at"], **size),
        make("Cast", ["at"], ["short"], to=TensorProto.INT32),
        make("Reshape", ["short", "flat"], ["row"]),
        make("Reshape", ["row", "pooled"], ["box"]),
        make("Cast", ["box"], ["long"], to=TensorProto.INT64),
        make("Slice", ["long", "zero", "one", "zero"], ["first"]),
        make("Slice", ["p", "zero", "one", "zero"], ["value"]),
        make("MaxUnpool", ["value", "first", "shape"], ["y"], **size),
    ]
    constants = {"flat": [2, 8], "pooled": [2, 2, 2, 2], "zero": [0], "one": [1], "shape": [1, 2, 5, 5]}
    given, made = (TensorProto.FLOAT, [2, 2, 5, 5]), (TensorProto.FLOAT, [1, 2, 5, 5])
    arrays = {name: np.array(values) for name, values in constants.items()}
    path = models.save(tmp_path / "m.onnx", nodes, {"x": given}, {"y": made}, **arrays)
    inputs = {"x": np.abs(models.weights(0, 2, 2, 5, 5)) + 1}
    found = t10.compile(path, "test-4").run(inputs)["y"]
    np.testing.assert_array_equal(found, run_onnx_runtime(path, inputs)["y"])
