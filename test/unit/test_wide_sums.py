"""Sums of f16 are kept in f32, and so is what follows them inside their operator: on every engine, however cut."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx as untyped_onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program

onnx: Any = untyped_onnx
node = helper.make_node
Array = NDArray[Any]
LARGE = np.random.default_rng(0).uniform(50, 150, (3, 4096)).astype(np.float16)
IMAGE = np.random.default_rng(1).uniform(50, 150, (1, 2, 56, 56)).astype(np.float16)
ROWS = np.random.default_rng(2).normal(0, 1000, (8, 192)).astype(np.float16)


def _saved(path: Path, nodes: list[Any], x: Array, **constants: Any) -> Path:
    half = TensorProto.FLOAT16
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", half, x.shape)],
        [helper.make_tensor_value_info("y", half, [f"d{i}" for i in range(x.ndim)])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, path)
    return path


def _on_engines(executable: Any, x: Array, folder: Path | None = None) -> dict[str, Array]:
    """Return what the plan and the tiles make of an input; with a folder for its program, what g++ makes of it too."""
    found = {"plan": executable.run({"x": x})["y"], "iss": run_on_tiles(executable, {"x": x}).outputs["y"]}
    if folder is None:
        return found
    write_program(executable, lowered(executable), folder)
    return {**found, "poplar-host": run_on_host(executable, folder, {"x": x})["y"]}


def _assert_close(found: dict[str, Array], expected: Array, rtol: float = 1e-3) -> None:
    for engine, value in found.items():
        assert value.dtype == np.float16
        np.testing.assert_allclose(value.astype(np.float64), expected, rtol=rtol, atol=1e-6, err_msg=engine)


def _wide(x: Array) -> Array:
    return x.astype(np.float64)


def _tiles(x: Array) -> Array:
    """Return windows of 28 x 28 of an image as rows."""
    return _wide(x).reshape(1, 2, 2, 28, 2, 28).transpose(0, 1, 2, 4, 3, 5).reshape(1, 2, 2, 2, -1)


REDUCTIONS: dict[str, Callable[[Array], Array]] = {
    "ReduceMean": lambda x: x.mean(1, keepdims=True),
    "ReduceL2": lambda x: np.sqrt((x * x).sum(1, keepdims=True)),
    "ReduceLogSum": lambda x: np.log(x.sum(1, keepdims=True)),
    "ReduceLogSumExp": lambda x: np.log(np.exp(x).sum(1, keepdims=True)),
}


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_what_a_sum_becomes_is_rounded_once(operator: str, tmp_path: Path) -> None:
    path = _saved(tmp_path / "m.onnx", [node(operator, ["x", "axes"], ["y"])], LARGE, axes=np.array([1]))
    found = _on_engines(t10.compile(path, chip="test-16"), LARGE, tmp_path / "program")
    _assert_close(found, REDUCTIONS[operator](_wide(LARGE)))


POOLS: dict[str, tuple[Any, Callable[[Array], Array]]] = {
    "GlobalAveragePool": (node("GlobalAveragePool", ["x"], ["y"]), lambda x: _wide(x).mean((2, 3), keepdims=True)),
    "AveragePool": (
        node("AveragePool", ["x"], ["y"], kernel_shape=[28, 28], strides=[28, 28]),
        lambda x: _tiles(x).mean(-1),
    ),
    "LpPool": (
        node("LpPool", ["x"], ["y"], kernel_shape=[28, 28], strides=[28, 28]),
        lambda x: np.sqrt((_tiles(x) ** 2).sum(-1)),
    ),
    "GlobalLpPool": (
        node("GlobalLpPool", ["x"], ["y"]),
        lambda x: np.sqrt((_wide(x) ** 2).sum((2, 3), keepdims=True)),
    ),
    "LpNormalization": (
        node("LpNormalization", ["x"], ["y"], axis=3, p=1),
        lambda x: _wide(x) / _wide(x).sum(3, keepdims=True),
    ),
    "LRN": (
        node("LRN", ["x"], ["y"], size=3, alpha=3.0),
        lambda x: _wide(x) / (1 + (_wide(x) ** 2).sum(1, keepdims=True)) ** 0.75,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POOLS)
def test_pools_and_norms_do_not_overflow(name: str, tmp_path: Path) -> None:
    operator, expected = POOLS[name]
    path = _saved(tmp_path / "m.onnx", [operator], IMAGE)
    found = _on_engines(t10.compile(path, chip="test-16"), IMAGE)
    _assert_close(found, expected(IMAGE))


@pytest.mark.parametrize("parts", [1, 3, 16])
@pytest.mark.parametrize("chip", ["test-16", "test-16:sram_bytes=49152"])
def test_partial_sums_of_cores_are_wide(parts: int, chip: str, tmp_path: Path) -> None:
    """With k cut over cores, every core has a partial sum of up to 409,600: no f16 holds it."""
    x = np.full((1, 4096), 100, np.float16)
    path = _saved(
        tmp_path / "m.onnx", [node("ReduceMean", ["x", "axes"], ["y"], name="mean")], x, axes=np.array([1])
    )
    first = t10.compile(path, chip=chip)
    pins = tmp_path / "pins.json"
    name = first.plan.operators[0].name
    operators = [{"name": name, "f_op": [1] * (len(first.plan.operators[0].active.plan.f_op) - 1) + [parts]}]
    pins.write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": operators}))
    executable = t10.compile(path, chip=chip, plan=pins)
    assert executable.plan.operators[0].active.plan.f_op[-1] == parts
    folder = tmp_path / "program" if parts == 16 else None
    _assert_close(_on_engines(executable, x, folder), np.array([[100.0]]), rtol=0)


def test_a_mean_divides_by_a_count_that_f16_does_not_hold(tmp_path: Path) -> None:
    x = np.full((2, 70_001), 3, np.float16)
    path = _saved(tmp_path / "m.onnx", [node("ReduceMean", ["x", "axes"], ["y"])], x, axes=np.array([1]))
    found = _on_engines(t10.compile(path, chip="test-16"), x)
    _assert_close(found, np.full((2, 1), 3.0), rtol=0)


def _centred() -> list[Any]:
    return [node("ReduceMean", ["x", "axes"], ["mean"]), node("Sub", ["x", "mean"], ["c"])]


def _scaled(source: str, square: Any) -> list[Any]:
    return [
        square,
        node("ReduceMean", ["square", "axes"], ["v"]),
        node("Add", ["v", "eps"], ["ve"]),
        node("Sqrt", ["ve"], ["s"]),
        node("Div", [source, "s"], ["y"]),
    ]


@pytest.mark.parametrize(
    "square", [node("Pow", ["c", "two"], ["square"]), node("Mul", ["c", "c"], ["square"])]
)
def test_normalisations_written_out_survive_large_activations(square: Any, tmp_path: Path) -> None:
    path = _saved(
        tmp_path / "m.onnx", [*_centred(), *_scaled("c", square)], ROWS,
        axes=np.array([1]), eps=np.float16(1e-5), **({"two": np.float16(2)} if square.op_type == "Pow" else {}),
    )  # fmt: skip
    centred = _wide(ROWS) - _wide(ROWS).mean(1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(1, keepdims=True))
    for engine, found in _on_engines(t10.compile(path, chip="test-16"), ROWS, tmp_path / "program").items():
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3, err_msg=engine)


def test_the_root_mean_square_survives_large_activations(tmp_path: Path) -> None:
    nodes = _scaled("x", node("Pow", ["x", "two"], ["square"]))
    path = _saved(
        tmp_path / "m.onnx", nodes, ROWS, axes=np.array([1]), eps=np.float16(1e-5), two=np.float16(2)
    )
    found = _on_engines(t10.compile(path, chip="test-16"), ROWS)
    _assert_close(found, _wide(ROWS) / np.sqrt((_wide(ROWS) ** 2).mean(1, keepdims=True)), rtol=2e-3)


STORED: dict[str, tuple[list[Any], bool]] = {
    "MatMul": ([node("MatMul", ["x", "ones"], ["sum"]), node("Sqrt", ["sum"], ["y"])], True),
    "ReduceSum": ([node("ReduceSum", ["x", "axes"], ["sum"]), node("Sqrt", ["sum"], ["y"])], False),
    "ReduceSum, read twice": (
        [
            node("ReduceSum", ["x", "axes"], ["sum"]),
            node("Sqrt", ["sum"], ["root"]),
            node("Mul", ["ones", "sum"], ["column"]),
            node("ReduceMin", ["column", "all"], ["less"]),
            node("Sub", ["sum", "less"], ["nothing"]),
            node("Add", ["root", "nothing"], ["y"]),
        ],
        True,
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_what_leaves_an_operator_is_clipped(name: str, tmp_path: Path) -> None:
    nodes, is_clipped = STORED[name]
    x = np.full((1, 4096), 100, np.float16)
    read = {each for operator in nodes for each in operator.input}
    constants = {"axes": np.array([1]), "all": np.array([0, 1]), "ones": np.ones((4096, 1), np.float16)}
    path = _saved(tmp_path / "m.onnx", nodes, x, **{key: constants[key] for key in constants if key in read})
    found = _on_engines(t10.compile(path, chip="test-16"), x)
    _assert_close(found, np.array([[np.sqrt(65504 if is_clipped else 409_600)]]))


def test_the_log_of_a_sum_of_large_powers(tmp_path: Path) -> None:
    """The power of the largest number of f32 that has one is that of 88; infinite elements stay what they are."""
    x = np.array([[300, 200, 1], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 1]], np.float16)
    path = _saved(tmp_path / "m.onnx", [node("ReduceLogSumExp", ["x", "axes"], ["y"])], x, axes=np.array([1]))
    executable = t10.compile(path, chip="test-16")
    for found in (executable.run({"x": x})["y"], run_on_tiles(executable, {"x": x}).outputs["y"]):
        np.testing.assert_array_equal(found, [[300], [-np.inf], [np.inf]])


@pytest.mark.parametrize("operator", ["ReduceL2", "ReduceLogSumExp"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes_of_extent_1(operator: str, keepdims: int, tmp_path: Path) -> None:
    x = np.array([[1, -20, 300]], np.float16)
    path = _saved(
        tmp_path / "m.onnx", [node(operator, ["x", "axes"], ["y"], keepdims=keepdims)], x, axes=np.array([0])
    )
    model = onnx.load(path)
    model.graph.output[0].CopyFrom(
        helper.make_tensor_value_info("y", TensorProto.FLOAT16, [1, 3] if keepdims else [3])
    )
    onnx.save(model, path)
    found = t10.compile(path, chip="test-16").run({"x": x})["y"]
    np.testing.assert_array_equal(found.reshape(-1), np.abs(x[0]) if operator == "ReduceL2" else x[0])
