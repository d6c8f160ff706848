"""Weights in the blocks that the matrix engine loads: which are stored so, how the host makes them, what that saves."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.linalg_numpy import run_module

import t10
from t10.backend import run_on_tiles
from t10.codelets.count import cycles_of
from t10.core.document import read_document, write_document
from t10.core.first_partial import begins_with_bias
from t10.core.graph import TensorValue
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.stored import as_stored
from t10.core.task import Task, TaskOperand
from t10.dialect.mlir import ir
from t10.errors import InputError, T10Error
from t10.frontend.importer import import_model
from t10.passes.fuse import Fuse
from t10.passes.read_graph import read_graph

FLOATS = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT}


def normal(seed: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(
    path: Path, shape: tuple[int, ...], node: Any, weights: tuple[int, ...], dtype: Any, n_readers: int
) -> Path:
    """Write a model of one operator of `x` and weights; of several readers the others negate the weights."""
    values = normal(1, weights, dtype) / dtype(8)
    nodes = [node, *[helper.make_node("Neg", ["w"], [f"n{i}"]) for i in range(1, n_readers)]]
    outputs = [
        helper.make_tensor_value_info(name, FLOATS[dtype], None)
        for name in ("y", *[f"n{i}" for i in range(1, n_readers)])
    ]
    given = [helper.make_tensor_value_info("x", FLOATS[dtype], list(shape))]
    graph = helper.make_graph(nodes, "one", given, outputs, [numpy_helper.from_array(values, "w")])
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    return path


def product(
    path: Path, m: int = 0, k: int = 96, n: int = 0, dtype: Any = np.float16, n_readers: int = 1
) -> Path:
    """Write a model of `x[m, k] * w[k, n]`, by default of as many columns as make the weights stay, not stream."""
    rows, columns = (48, 40) if dtype == np.float16 else (128, 24)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model(path / "p.onnx", (m or rows, k), node, (k, n or columns), dtype, n_readers)


def convolution(path: Path, c: int = 32, dtype: Any = np.float16) -> Path:
    """Write a model of a strided convolution."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[2, 2])
    return model(path / "c.onnx", (1, c, 16, 16), node, (24, c, 3, 3), dtype, 1)


def fused(path: Path) -> tuple[TensorValue, str, Any, Any]:
    """Return the weights of a model as it is fused, the module's text, what it computes and what it should."""
    imported = import_model(path)
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    inputs = {"x": normal(2, given.shape, np.float16 if "16" in given.type else np.float32)}
    with imported.module.context:
        Fuse().apply(imported.module)
        assert imported.module.operation.verify()
        text = str(imported.module)
        Fuse().apply(imported.module)
        assert str(imported.module) == text
        graph = read_graph(imported.module).graph
        stored = as_stored({**inputs, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)
    (weights,) = graph.weights
    return weights, text, found["y"], session.run(["y"], inputs)[0]


@pytest.mark.parametrize(("dtype", "block", "tolerance"), [(np.float16, 16, 5e-3), (np.float32, 8, 1e-5)])
def test_weights_of_a_product_stand_in_blocks(
    dtype: Any, block: int, tolerance: float, tmp_path: Path
) -> None:
    weights, _, found, expected = fused(product(tmp_path, dtype=dtype))
    assert weights.shape == (96 // block, weights.host_shape[1], block)
    assert weights.split == (0, block)
    assert weights.order == (0, 2, 1)
    assert weights.host_shape == (96, 40 if block == 16 else 24)
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def test_weights_of_a_convolution_stand_in_blocks_behind_positions(tmp_path: Path) -> None:
    weights, _, found, expected = fused(convolution(tmp_path))
    assert weights.shape == (3, 3, 2, 24, 16)
    assert weights.split == (1, 16)
    assert weights.host_shape == (24, 32, 3, 3)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(
    "given",
    [{"m": 16}, {"k": 40}, {"k": 16}, {"n_readers": 2}, {"m": 32, "n": 1024, "k": 1024}],
    ids=["few rows", "parts of blocks", "one block", "another reader", "weights stream"],
)
def test_other_weights_stay_as_they_are(given: dict[str, int], tmp_path: Path) -> None:
    weights, text, *_ = fused(product(tmp_path, **given))
    assert "t10.split" not in text
    assert not weights.split
    assert len(weights.shape) == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", list(FLOATS))
@pytest.mark.parametrize(
    ("make", "chip"),
    [(partial(product, m=40, n=48), "test-4"), (convolution, "test-16")],
    ids=["product", "convolution"],
)
def test_a_program_with_blocks_runs_as_planned(make: Any, chip: str, dtype: Any, tmp_path: Path) -> None:
    path = make(tmp_path, dtype=dtype)
    executable = t10.compile(path, chip=chip, program=True)
    assert "t10.split" in executable.module
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    inputs = {"x": normal(3, given.shape, dtype)}
    (expected,) = session.run(["y"], inputs)
    tolerance = 5e-3 if dtype == np.float16 else 1e-5
    ran = run_on_tiles(executable, inputs)
    for found in (executable.run(inputs)["y"], ran.outputs["y"]):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * np.abs(expected).max())
    assert executable.with_measured_steps().timed_cycles == executable.report().total_cycles


def test_sums_over_blocks_begin_with_a_bias(tmp_path: Path) -> None:
    ops = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    shapes = {"x": (40, 96), "w": (96, 48), "b": (48,)}
    values = {name: normal(seed, shape, np.float16) for seed, (name, shape) in enumerate(shapes.items())}
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT16, shape)
        for name, shape in (("x", (40, 96)), ("y", (40, 48)))
    )
    weights = [numpy_helper.from_array(values[name], name) for name in "wb"]
    graph = helper.make_graph(ops, "layer", [given], [made], weights)
    path = tmp_path / "layer.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    executable = t10.compile(path, chip="test-4", program=True)
    (spec,), (scheduled,) = executable.plan.graph.operators, executable.plan.operators
    assert [axis.is_splittable for axis in spec.axes] == [True, True, True, False]
    assert begins_with_bias(spec, scheduled.active.plan)
    ran = run_on_tiles(executable, {"x": values["x"]})
    x, w, b = (value.astype(np.float32) for value in values.values())
    expected = np.maximum(np.matmul(x, w) + b, 0)
    for found in (executable.run({"x": values["x"]})["y"], ran.outputs["y"]):
        np.testing.assert_allclose(found, expected, rtol=5e-3, atol=5e-2)
    assert executable.with_measured_steps().timed_cycles == executable.report().total_cycles


def test_a_document_keeps_what_is_split(tmp_path: Path) -> None:
    executable = t10.compile(product(tmp_path, m=40, n=48), chip="test-4", program=False)
    assert executable.plan.graph.weights[0].split == (0, 16)
    write_document(tmp_path / "plan.json", executable.plan)
    assert read_document(tmp_path / "plan.json") == executable.plan


def task(rows: int, columns: int, terms: int, *, is_blocked: bool) -> Task:
    """Return a product with weights row by row or in blocks, operands well placed."""
    ops = (
        ScalarOp("arith.extf", (0,), "f32"),
        ScalarOp("arith.extf", (1,), "f32"),
        ScalarOp("arith.mulf", (2, 3), "f32"),
    )
    extents: tuple[int, ...] = (rows, columns, terms)
    strides: tuple[tuple[int, ...], ...] = ((terms, 0, 1), (0, terms, 1), (columns, 1, 0))
    if is_blocked:
        extents = (rows, columns, terms // 16, 16)
        strides = ((terms, 0, 16, 1), (0, 16, 16 * columns, 1), (columns, 1, 0, 0))
    x, w, out = (
        TaskOperand(dtype, row, 16, is_interleaved=True)
        for dtype, row in zip(("f16", "f16", "f32"), strides, strict=True)
    )
    apart = frozenset(combinations(range(3), 2))
    return Task(
        extents, (x, w), out, "sum", ScalarFunction(2, ops, 4), tuple(range(2, len(extents))), apart=apart
    )


@pytest.mark.parametrize(
    ("rows", "columns", "terms", "saved"), [(45, 64, 64, 0.1), (60, 16, 288, 0.09), (128, 24, 128, 0.05)]
)
def test_a_block_takes_no_addresses_but_one(rows: int, columns: int, terms: int, saved: float) -> None:
    plain, blocked = (cycles_of(task(rows, columns, terms, is_blocked=each)) for each in (False, True))
    assert plain is not None
    assert blocked is not None
    assert blocked <= (1 - saved) * plain


@pytest.mark.parametrize("split", [(0, 4), (1, 16), (5, 16), (0,)])
def test_a_split_of_no_dim_or_in_other_blocks_is_refused(split: tuple[int, ...]) -> None:
    assert TensorValue("w", (6, 40, 16), "f16", order=(0, 2, 1), split=(0, 16)).host_shape == (96, 40)
    with pytest.raises(T10Error, match="split"):
        TensorValue("w", (6, 40, 16), "f16", order=(0, 2, 1), split=split)


@pytest.mark.parametrize("text", ["array<i64: 0, 4>", "array<i64: 2, 16>", "array<i64: 0>", "7 : i64"])
def test_a_module_with_a_wrong_split_is_refused(text: str, tmp_path: Path) -> None:
    imported = import_model(product(tmp_path))
    with imported.module.context:
        Fuse().apply(imported.module)
        changed = str(imported.module).replace("t10.split = array<i64: 0, 16>", f"t10.split = {text}")
        assert changed != str(imported.module)
        module = ir.Module.parse(changed)
        with pytest.raises(InputError, match=r"t10\.split is"):
            read_graph(module)
