"""Quotients of a softmax are taken behind the product that reads it; the exponential is computed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import t10
from t10.backend import run_on_tiles
from t10.core.partials import partials_error, partials_type
from t10.driver import Executable

HEADS, QUERIES = 2, 5


def attention(
    path: Path, dtype: int, keys: int, depth: int, *, twice: bool = False, queries: int = QUERIES
) -> None:
    """Write a model of a softmax of given scores and its product with values; `twice` it is an output, too."""
    shapes = {"s": (HEADS, queries, keys), "v": (HEADS, keys, depth), "y": (HEADS, queries, depth), "p": ()}
    shapes["p"] = shapes["s"]
    ports = {name: helper.make_tensor_value_info(name, dtype, shape) for name, shape in shapes.items()}
    nodes = [
        helper.make_node("Softmax", ["s"], ["p"], name="softmax", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"], name="values"),
    ]
    outputs = [ports["y"], ports["p"]] if twice else [ports["y"]]
    graph = helper.make_graph(nodes, "attention", [ports["s"], ports["v"]], outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.write_bytes(model.SerializeToString())


def divides(executable: Executable) -> list[str]:
    """Return the operators in which something is divided."""
    specs = executable.plan.graph.operators
    scalars = {spec.name: [spec.body, *([spec.epilogue] if spec.epilogue else [])] for spec in specs}
    return [
        name
        for name, parts in scalars.items()
        if any(op.opcode == "arith.divf" for f in parts for op in f.ops)
    ]


def expected(s: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = s.astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True) @ v.astype(np.float64)


def squared(s: np.ndarray[Any, Any], v: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the sums of the squares of the terms."""
    wide = s.astype(np.float64)
    powers = np.exp(wide - wide.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)) ** 2 @ v.astype(np.float64) ** 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("dtype", "tolerance"), [(TensorProto.FLOAT, 2e-6), (TensorProto.FLOAT16, 1e-3)])
@pytest.mark.parametrize("on_tiles", [False, True])
def test_quotients_are_taken_behind_the_product(
    dtype: int, tolerance: float, on_tiles: bool, tmp_path: Path
) -> None:
    attention(tmp_path / "model.onnx", dtype, keys=24, depth=16)
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=on_tiles)
    assert divides(executable) == ["values"]
    kind = np.float32 if dtype == TensorProto.FLOAT else np.float16
    rng = np.random.default_rng(0)
    v = rng.uniform(-1, 1, (HEADS, 24, 16)).astype(kind)
    scores = rng.standard_normal((HEADS, QUERIES, 24)) * 4
    # Equal scores, one that leaves nothing for others, what is masked, and numbers that are all far below 0.
    scores[0, 0], scores[0, 1, 3], scores[1, 0, ::2] = 0, 900, -65504
    scores[1, 1] -= 30_000
    s = scores.astype(kind)
    found = (
        run_on_tiles(executable, {"s": s, "v": v}).outputs if on_tiles else executable.run({"s": s, "v": v})
    )
    np.testing.assert_allclose(found["y"], expected(s, v), atol=tolerance)


@pytest.mark.parametrize("is_read_by_product", [False, True])
@pytest.mark.parametrize("on_tiles", [False, True])
def test_a_nan_in_a_row_of_a_softmax_makes_all_of_it_nans(
    on_tiles: bool, is_read_by_product: bool, tmp_path: Path
) -> None:
    if is_read_by_product:
        attention(tmp_path / "model.onnx", TensorProto.FLOAT16, keys=24, depth=16)
    else:
        x = helper.make_tensor_value_info("s", TensorProto.FLOAT16, [HEADS, QUERIES, 24])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)
        graph = helper.make_graph([helper.make_node("Softmax", ["s"], ["y"], name="softmax")], "g", [x], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=on_tiles)
    (largest,) = (spec for spec in executable.plan.graph.operators if spec.name == "softmax.max")
    assert largest.combine == "maxnum"
    rng = np.random.default_rng(0)
    s = rng.standard_normal((HEADS, QUERIES, 24)).astype(np.float16)
    s[0, 1, 5], s[1, 0, :] = np.nan, np.nan
    given = {"s": s}
    if is_read_by_product:
        given["v"] = rng.uniform(-1, 1, (HEADS, 24, 16)).astype(np.float16)
    found = run_on_tiles(executable, given).outputs["y"] if on_tiles else executable.run(given)["y"]
    is_nan = np.isnan(found).reshape(HEADS, QUERIES, -1)
    assert is_nan[0, 1].all()
    assert is_nan[1, 0].all()
    assert is_nan.any(axis=2).sum() == 2


@pytest.mark.parametrize("on_tiles", [False, True])
def test_sums_in_f16_of_what_is_not_divided_are_within_their_bound(on_tiles: bool, tmp_path: Path) -> None:
    """No sum is beyond the largest value, and exponentials lose little: rows that are flat, steep, or far below 0."""
    keys, queries = 256, 16
    attention(tmp_path / "model.onnx", TensorProto.FLOAT16, keys, depth=16, queries=queries)
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=on_tiles, partials="f16")
    assert divides(executable) == ["values"]
    product = next(each for each in executable.plan.graph.operators if each.name == "values")
    assert partials_type(product) == "f16"
    rng = np.random.default_rng(1)
    v = (rng.standard_normal((HEADS, keys, 16)) * 20_000).clip(-65_000, 65_000).astype(np.float16)
    scores = rng.standard_normal((HEADS, queries, keys)) * np.linspace(0, 12, queries)[:, None]
    scores[0, 1, 3], scores[1, 0, ::2] = 900, -65504
    scores[1, 1] -= 30_000
    # One key weighs as much as all the others, each of which is hardly a number when divided.
    scores[1, 2], scores[1, 2, 7] = 0, 11
    v[1, :, 0], v[1, 7, 0] = 1000, -1000
    s = scores.astype(np.float16)
    found = (
        run_on_tiles(executable, {"s": s, "v": v}).outputs if on_tiles else executable.run({"s": s, "v": v})
    )
    exact, squares = expected(s, v), np.sqrt(squared(s, v))
    bound = partials_error(keys) * (np.abs(exact) + squares) + 2.0**-10 * np.abs(v).max()
    assert (np.abs(found["y"] - exact) <= bound).all()


@pytest.mark.parametrize(("keys", "partials"), [(258, "f16"), (200, "mixed"), (64, "auto")])
def test_other_sums_of_what_is_not_divided_stay_f32(keys: int, partials: str, tmp_path: Path) -> None:
    """Of rows too long to be scaled, where the engine sums in f32 anyway, and where a bound was asked for."""
    attention(tmp_path / "model.onnx", TensorProto.FLOAT16, keys, depth=16, queries=16)
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False, partials=partials)
    product = next(each for each in executable.plan.graph.operators if each.name == "values")
    assert partials_type(product) == "f32"
    assert divides(executable) == ["values"]


@pytest.mark.slow
def test_sums_of_what_is_not_divided_may_be_beyond_f16(tmp_path: Path) -> None:
    attention(tmp_path / "model.onnx", TensorProto.FLOAT16, keys=64, depth=16)
    s, v = np.zeros((HEADS, QUERIES, 64), np.float16), np.full((HEADS, 64, 16), 60_000, np.float16)
    for partials in ("f32", "mixed", "f16"):
        executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False, partials=partials)
        np.testing.assert_allclose(executable.run({"s": s, "v": v})["y"], 60_000, rtol=2e-2)


@pytest.mark.parametrize(("keys", "depth", "twice"), [(8, 16, False), (24, 16, True)])
def test_quotients_stay_where_they_are(keys: int, depth: int, twice: bool, tmp_path: Path) -> None:
    """Where there are more results, and where somebody else reads the softmax."""
    attention(tmp_path / "model.onnx", TensorProto.FLOAT16, keys, depth, twice=twice)
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    assert divides(executable) == ["softmax.div"]


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16])
@pytest.mark.parametrize("on_tiles", [False, True])
def test_rows_of_f32_are_multiplied_by_the_reciprocal_of_their_sum(
    dtype: int, on_tiles: bool, tmp_path: Path
) -> None:
    """Nothing but the softmax reads its sums; what is rounded to f16 is divided."""
    ports = [helper.make_tensor_value_info(name, dtype, (96, 97)) for name in "sp"]
    node = helper.make_node("Softmax", ["s"], ["p"], name="softmax", axis=-1)
    graph = helper.make_graph([node], "rows", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=on_tiles)
    is_wide = dtype == TensorProto.FLOAT
    assert divides(executable) == (["softmax.sum"] if is_wide else ["softmax.div"])
    s = (np.random.default_rng(0).standard_normal((96, 97)) * 4).astype(np.float32 if is_wide else np.float16)
    s[0], s[1, 3], s[2, ::2], s[3] = 0, 900, -65504, -30_000
    found = run_on_tiles(executable, {"s": s}).outputs if on_tiles else executable.run({"s": s})
    # A difference of 25 is rounded by up to 1e-6, which is what its exponential is off by.
    rtol, atol = (2e-6, 1e-30) if is_wide else (2e-3, 1e-7)
    np.testing.assert_allclose(found["p"], expected(s, np.eye(97)), rtol=rtol, atol=atol)
    if is_wide:
        assert executable.report().total_cycles < 8000


def test_sums_that_others_read_stay_sums(tmp_path: Path) -> None:
    x, y, z = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", (6, 20)), ("y", (6, 20)), ("z", (6, 1)))
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[1]),
        helper.make_node("Sub", ["x", "m"], ["d"]),
        helper.make_node("Exp", ["d"], ["e"]),
        helper.make_node("ReduceSum", ["e", "axes"], ["s"]),
        helper.make_node("Div", ["e", "s"], ["y"]),
        helper.make_node("Sqrt", ["s"], ["z"]),
    ]
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "rows", [x], [y, z], [axes])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-4", program=False)
    rows = np.random.default_rng(0).standard_normal((6, 20)).astype(np.float32)
    powers = np.exp(rows - rows.max(1, keepdims=True))
    sums = powers.sum(1, keepdims=True)
    found = executable.run({"x": rows})
    np.testing.assert_allclose(found["y"], powers / sums, rtol=2e-6)
    np.testing.assert_allclose(found["z"], np.sqrt(sums), rtol=2e-6)
