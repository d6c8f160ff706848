"""Means and variances of rows of f16 as one operator, where partial sums may be rounded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.linalg_numpy import run_module

import t10
from t10.backend import run_on_tiles
from t10.core.stored import as_stored
from t10.driver import Executable
from t10.frontend.importer import import_model
from t10.passes.fuse import Fuse
from t10.passes.read_graph import read_graph

Array = NDArray[Any]
KINDS: dict[Any, int] = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT}
EPSILON = 1e-5


def save(path: Path, nodes: list[Any], dtype: Any, shape: tuple[int, ...], outputs: tuple[str, ...] = ("y",),
         **constants: Array) -> Path:  # fmt: skip
    """Write a model of an input x."""
    graph = helper.make_graph(
        nodes,
        "norm",
        [helper.make_tensor_value_info("x", KINDS[dtype], shape)],
        [helper.make_tensor_value_info(name, KINDS[dtype], None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def scales(n: int) -> tuple[Array, Array]:
    """Return what a norm of so many elements or channels multiplies by and adds."""
    random = np.random.default_rng(0)
    return random.standard_normal(n).astype(np.float16), random.standard_normal(n).astype(np.float16)


def layer_norm(path: Path, *shape: int, dtype: Any = np.float16) -> Path:
    """Write a layer norm over the last dim."""
    node = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], name="n", epsilon=EPSILON)
    g, b = scales(shape[-1])
    return save(path / "m.onnx", [node], dtype, shape, g=g.astype(dtype), b=b.astype(dtype))


def instance_norm(path: Path, *shape: int) -> Path:
    """Write a norm of every channel."""
    node = helper.make_node("InstanceNormalization", ["x", "g", "b"], ["y"], name="n", epsilon=EPSILON)
    g, b = scales(shape[1])
    return save(path / "m.onnx", [node], np.float16, shape, g=g, b=b)


def names(executable: Executable) -> list[str]:
    return [spec.name for spec in executable.plan.graph.operators]


def normalised(x: Array, axes: tuple[int, ...]) -> Array:
    """Return what a norm of mean 0 and variance 1 is, in f64."""
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=axes, keepdims=True) + EPSILON)


@pytest.mark.parametrize("partials", ["f16", "mixed", "f32", "auto"])
def test_norms_of_f16_exchange_their_sums_once_where_partials_may_be_rounded(
    partials: str, tmp_path: Path
) -> None:
    executable = t10.compile(layer_norm(tmp_path, 8, 96), chip="test-16", program=False, partials=partials)
    joined = ["n.sum", "n.add"]
    apart = ["n.sum", "n.sum_2", "n.add"]
    assert names(executable) == (joined if partials in ("f16", "mixed") else apart)


def test_norms_of_f32_stay_apart(tmp_path: Path) -> None:
    path = layer_norm(tmp_path, 8, 96, dtype=np.float32)
    assert len(names(t10.compile(path, chip="test-16", program=False, partials="mixed"))) == 3


def test_a_variance_that_is_an_output_stays_apart(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMean", ["w"], ["m"], axes=[-1]),
        helper.make_node("Sub", ["w", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["v"], axes=[-1]),
        helper.make_node("Cast", ["v"], ["y"], to=TensorProto.FLOAT16),
    ]
    path = save(tmp_path / "m.onnx", nodes, np.float16, (8, 96))
    executable = t10.compile(path, chip="test-16", program=False, partials="mixed")
    x = np.random.default_rng(1).standard_normal((8, 96)).astype(np.float16)
    np.testing.assert_allclose(
        executable.run({"x": x})["y"][:, 0], x.astype(np.float64).var(axis=1), rtol=1e-3
    )


def written(path: Path, divisor: float = 96.0, other: str = "x") -> Path:
    """Write a norm of x whose mean is the sum of `other` over a number, in f32 between casts."""
    nodes = [
        helper.make_node("Neg", ["x"], ["z"]),
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.FLOAT),
        helper.make_node("Cast", [other], ["o"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["o", "axes"], ["t"]),
        helper.make_node("Div", ["t", "n"], ["m"]),
        helper.make_node("Sub", ["w", "m"], ["d"]),
        helper.make_node("Mul", ["d", "d"], ["s"]),
        helper.make_node("ReduceMean", ["s"], ["v"], axes=[-1]),
        helper.make_node("Add", ["v", "e"], ["u"]),
        helper.make_node("Sqrt", ["u"], ["r"]),
        helper.make_node("Div", ["d", "r"], ["q"]),
        helper.make_node("Cast", ["q"], ["y"], to=TensorProto.FLOAT16),
    ]
    return save(path / "m.onnx", nodes, np.float16, (8, 96), axes=np.array([-1]),
                n=np.array(divisor, np.float32), e=np.array(EPSILON, np.float32))  # fmt: skip


def close_to(path: Path, mean: Callable[[Array], Array]) -> None:
    """Run a norm, and compare with one of a given mean."""
    executable = t10.compile(path, chip="test-16", program=False, partials="mixed")
    x = (np.random.default_rng(5).standard_normal((8, 96)) + 1).astype(np.float16)
    centred = x.astype(np.float64) - mean(x.astype(np.float64))
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    np.testing.assert_allclose(executable.run({"x": x})["y"], expected, atol=5e-3)


def test_a_norm_that_is_written_out_exchanges_its_sums_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert len(names(t10.compile(path, chip="test-16", program=False, partials="mixed"))) == 2
    close_to(path, lambda x: x.mean(axis=1, keepdims=True))


def test_a_sum_divided_by_another_number_stays_apart(tmp_path: Path) -> None:
    close_to(written(tmp_path, divisor=80.0), lambda x: x.sum(axis=1, keepdims=True) / 80)


def test_a_mean_of_other_rows_stays_apart(tmp_path: Path) -> None:
    close_to(written(tmp_path, other="z"), lambda x: -x.mean(axis=1, keepdims=True))


@pytest.mark.parametrize("shape", [(1, 8), (3, 70), (17, 100), (2, 5, 64), (16, 1000)])
def test_rows_are_normalised_as_onnx_says(shape: tuple[int, ...], tmp_path: Path) -> None:
    imported = import_model(layer_norm(tmp_path, *shape))
    x = (np.random.default_rng(2).standard_normal(shape) * 3 + 5).astype(np.float16)
    with imported.module.context:
        Fuse(partials="mixed").apply(imported.module)
        graph = read_graph(imported.module).graph
        stored = as_stored({"x": x, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)["y"]
    g, b = scales(shape[-1])
    expected = normalised(x, (-1,)) * g + b
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=2e-2)


@pytest.mark.parametrize("on_tiles", [False, True])
def test_channels_and_constant_rows_on_all_engines(on_tiles: bool, tmp_path: Path) -> None:
    executable = t10.compile(
        instance_norm(tmp_path, 2, 5, 6, 7), chip="test-16", program=on_tiles, partials="f16"
    )
    x = (np.random.default_rng(3).standard_normal((2, 5, 6, 7)) - 2).astype(np.float16)
    x[0, 1], x[1, 2, 0, 0], x[1, 3, 1, 1] = 60_000, np.nan, np.inf
    found = run_on_tiles(executable, {"x": x}).outputs["y"] if on_tiles else executable.run({"x": x})["y"]
    g, b = (each[:, None, None] for each in scales(5))
    with np.errstate(invalid="ignore"):
        expected = normalised(x, (2, 3)) * g + b
    np.testing.assert_allclose(found.astype(np.float64), expected, atol=2e-2)


@pytest.mark.parametrize("mean", [0, 4, 60])
def test_deviations_are_within_their_bound(mean: int, tmp_path: Path) -> None:
    """Of a sum of n squares, n roundings; the mean's square is taken from it."""
    executable = t10.compile(layer_norm(tmp_path, 64, 512), chip="test-16", program=False, partials="mixed")
    x = (np.random.default_rng(4).standard_normal((64, 512)) + mean).astype(np.float16)
    g, b = scales(512)
    expected = normalised(x, (1,)) * g
    found = executable.run({"x": x})["y"].astype(np.float64) - b
    ratios = (found * expected).sum(axis=1) / (expected**2).sum(axis=1)
    squares = np.square(x.astype(np.float64)).mean(axis=1)
    bound = np.sqrt(512) * 2.0**-24 * squares / (2 * np.var(x.astype(np.float64), axis=1))
    assert (np.abs(ratios - 1) <= bound + 2.0**-12).all()
