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


def _saved(
    path: Path, nodes: list[Any], x: Array, outputs: tuple[str, ...] = ("y",), /, **constants: Any
) -> Path:
    half = TensorProto.FLOAT16
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", half, x.shape)],
        [helper.make_tensor_value_info(name, half, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
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


@pytest.mark.sampled(2)
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


@pytest.mark.slow
@pytest.mark.parametrize("name", POOLS)
def test_pools_and_norms_do_not_overflow(name: str, tmp_path: Path) -> None:
    operator, expected = POOLS[name]
    path = _saved(tmp_path / "m.onnx", [operator], IMAGE)
    found = _on_engines(t10.compile(path, chip="test-16"), IMAGE)
    _assert_close(found, expected(IMAGE))


@pytest.mark.sampled(2)
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


@pytest.mark.slow
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


def _mean(x: Array) -> Array:
    return x.mean(1, keepdims=True)


def _norm(x: Array) -> Array:
    return np.abs(x).sum(1, keepdims=True)


Case = tuple[list[Any], dict[str, Callable[[Array], Array]]]
SHARED: dict[str, Case] = {
    "a mean of squares that is an output, too": (
        [
            node("Mul", ["x", "x"], ["square"]),
            node("ReduceMean", ["square", "axes"], ["mean"]),
            node("Sqrt", ["mean"], ["root"]),
            node("Div", ["x", "root"], ["y"]),
        ],
        {"y": lambda x: x / np.sqrt(_mean(x * x)), "mean": lambda x: _mean(x * x)},
    ),
    "two functions of a sum": (
        [
            node("ReduceL1", ["x", "axes"], ["sum"]),
            node("Sqrt", ["sum"], ["y"]),
            node("Log", ["sum"], ["log"]),
        ],
        {"y": lambda x: np.sqrt(_norm(x)), "log": lambda x: np.log(_norm(x))},
    ),
    "a sum that rows are divided by": (
        [node("ReduceL1", ["x", "axes"], ["sum"]), node("Div", ["x", "sum"], ["y"])],
        {"y": lambda x: x / _norm(x)},
    ),
    "a product of sums that rows are divided by, and an output": (
        [
            node("ReduceL1", ["x", "axes"], ["sum"]),
            node("Mul", ["sum", "sum"], ["square"]),
            node("Sqrt", ["square"], ["root"]),
            node("Div", ["x", "root"], ["y"]),
            node("Div", ["sum", "root"], ["one"]),
        ],
        {"y": lambda x: x / _norm(x), "root": _norm, "one": lambda x: _norm(x) / _norm(x)},
    ),
    "a variance as a difference of means": (
        [
            node("ReduceMean", ["x", "axes"], ["mean"]),
            node("Mul", ["x", "x"], ["square"]),
            node("ReduceMean", ["square", "axes"], ["squares"]),
            node("Mul", ["mean", "mean"], ["squared"]),
            node("Sub", ["squares", "squared"], ["variance"]),
            node("Sqrt", ["variance"], ["y"]),
        ],
        {"y": lambda x: x.std(1, keepdims=True)},
    ),
    "a sum that a maximum is compared with": (
        [
            node("ReduceL1", ["x", "axes"], ["sum"]),
            node("ReduceMax", ["x", "axes"], ["max"]),
            node("Div", ["max", "sum"], ["y"]),
            node("Less", ["sum", "max"], ["less"]),
            node("Cast", ["less"], ["number"], to=TensorProto.FLOAT16),
        ],
        {"y": lambda x: x.max(1, keepdims=True) / _norm(x), "number": lambda x: np.zeros((8, 1))},
    ),
}
PRODUCTS: dict[str, Case] = {
    "a scale": (
        [node("MatMul", ["x", "ones"], ["sum"]), node("Mul", ["sum", "small"], ["y"])],
        {"y": lambda x: x.sum(1, keepdims=True).repeat(4, 1) * 2.0**-5},
    ),
    "a quotient and a bias": (
        [
            node("MatMul", ["x", "ones"], ["sum"]),
            node("Div", ["sum", "many"], ["mean"]),
            node("Add", ["mean", "bias"], ["y"]),
        ],
        {"y": lambda x: x.sum(1, keepdims=True) / 32 + _wide(BIAS)},
    ),
    "the bias of a Gemm": (
        [node("Gemm", ["x", "ones", "negative"], ["y"])],
        {"y": lambda x: x.sum(1, keepdims=True) - np.full(4, 60_000.0)},
    ),
    "the scale of a Gemm, which f16 does not hold": (
        [node("Gemm", ["x", "ones"], ["y"], alpha=2e-8)],
        {"y": lambda x: x.sum(1, keepdims=True).repeat(4, 1) * 2e-8},
    ),
    "a root of a sum of squares": (
        [node("Einsum", ["x", "x"], ["sum"], equation="ij,ij->i"), node("Sqrt", ["sum"], ["y"])],
        {"y": lambda x: np.sqrt((x * x).sum(1))},
    ),
    "attention": (
        [
            node("Transpose", ["x"], ["t"], perm=[1, 0]),
            node("MatMul", ["x", "t"], ["product"]),
            node("Mul", ["product", "tiny"], ["y"]),
        ],
        {"y": lambda x: x @ x.T * 2.0**-14},
    ),
}
SUMMANDS = np.random.default_rng(3).uniform(300, 600, (8, 192)).astype(np.float16)
BIAS = np.array([-1000, 0, 1, 2000], np.float16)
CONSTANTS: dict[str, Any] = {
    "axes": np.array([1]),
    "ones": np.ones((192, 4), np.float16),
    "small": np.float16(2.0**-5),
    "tiny": np.float16(2.0**-14),
    "many": np.float16(32),
    "bias": BIAS,
    "negative": np.full(4, -60_000, np.float16),
}  # fmt: skip


def _assert_outputs(path: Path, x: Array, case: Case) -> None:
    """Compare a model's outputs on plan and tiles with those of float64, clipped to f16."""
    nodes, outputs = case
    read = {each for operator in nodes for each in operator.input}
    _saved(path, nodes, x, tuple(outputs), **{key: CONSTANTS[key] for key in CONSTANTS if key in read})
    executable = t10.compile(path, chip="test-16", program=True)
    tiles = run_on_tiles(executable, {"x": x}).outputs
    for engine, found in (("plan", executable.run({"x": x})), ("iss", tiles)):
        for name, value in outputs.items():
            wanted = np.clip(value(_wide(x)), -65504, 65504)
            np.testing.assert_allclose(found[name], wanted, 1.5e-3, 1e-6, err_msg=f"{engine}, {name}")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SHARED)
def test_sums_that_other_operators_compute_with_are_wide(name: str, tmp_path: Path) -> None:
    _assert_outputs(tmp_path / "m.onnx", ROWS, SHARED[name])


@pytest.mark.parametrize("name", PRODUCTS)
def test_biases_scales_and_roots_of_products_are_wide(name: str, tmp_path: Path) -> None:
    _assert_outputs(tmp_path / "m.onnx", SUMMANDS, PRODUCTS[name])


STORED: dict[str, list[Any]] = {
    "a product with two readers": [
        node("MatMul", ["x", "ones"], ["sum"]),
        node("Mul", ["sum", "small"], ["y"]),
        node("Mul", ["sum", "tiny"], ["z"]),
    ],
    "a sum that a larger tensor is multiplied with": [
        node("ReduceSum", ["x", "axes"], ["sum"]),
        node("Mul", ["sum", "row"], ["y"]),
    ],
    "a function behind a product": [
        node("MatMul", ["x", "ones"], ["sum"]),
        node("Relu", ["sum"], ["positive"]),
        node("Mul", ["positive", "small"], ["y"]),
    ],
}


@pytest.mark.parametrize("name", STORED)
def test_what_is_stored_or_met_by_large_tensors_is_clipped(name: str, tmp_path: Path) -> None:
    outputs = ("y", "z") if name == "a product with two readers" else ("y",)
    constants = {**CONSTANTS, "row": np.array([[1, 1, 1, 2]], np.float16) / 32}
    read = {each for operator in STORED[name] for each in operator.input}
    path = _saved(
        tmp_path / "m.onnx",
        STORED[name],
        SUMMANDS,
        outputs,
        **{key: constants[key] for key in constants if key in read},
    )
    found = _on_engines(t10.compile(path, chip="test-16"), SUMMANDS)
    for engine, value in found.items():
        np.testing.assert_allclose(value[:, :3], np.full((8, 3), 65504 / 32), 1e-3, err_msg=engine)


def test_casts_of_the_model_round(tmp_path: Path) -> None:
    """A product of f32 that the model rounds is rounded there, and so is what is made of a sum in f32."""
    single, half = TensorProto.FLOAT, TensorProto.FLOAT16
    nodes = [
        node("Cast", ["x"], ["wide"], to=single),
        node("MatMul", ["wide", "ones"], ["sum"]),
        node("Cast", ["sum"], ["rounded"], to=half),
        node("Mul", ["rounded", "small"], ["y"]),
    ]
    path = _saved(
        tmp_path / "m.onnx", nodes, SUMMANDS, ones=np.ones((192, 4), np.float32), small=CONSTANTS["small"]
    )
    _assert_close(_on_engines(t10.compile(path, chip="test-16"), SUMMANDS), np.full((8, 4), 65504 / 32))


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
