"""Inputs, and columns of products, that the host pads so that rows are whole words: which are, and what that saves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.linalg_numpy import run_module

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program
from t10.core.document import read_document, write_document
from t10.core.graph import TensorValue
from t10.core.partials import DEFAULT_TOLERANCE
from t10.core.stored import as_stored
from t10.dialect.mlir import ir
from t10.errors import InputError, T10Error
from t10.frontend.importer import import_model
from t10.passes.fuse import Fuse
from t10.passes.read_graph import ReadModule, read_graph

FLOATS = {np.float16: TensorProto.FLOAT16, np.float32: TensorProto.FLOAT}


def normal(seed: int, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def model(
    path: Path,
    inputs: dict[str, tuple[int, ...]],
    weights: dict[str, tuple[int, ...]],
    nodes: list[Any],
    dtype: Any = np.float16,
    outputs: tuple[str, ...] = ("y",),
) -> Path:
    """Write a model of nodes."""
    values = {
        name: normal(seed, shape, dtype) / dtype(8) for seed, (name, shape) in enumerate(weights.items())
    }
    graph = helper.make_graph(
        nodes,
        "padded",
        [helper.make_tensor_value_info(name, FLOATS[dtype], list(shape)) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOATS[dtype], None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in values.items()],
    )
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    return path


def image(
    path: Path,
    dtype: Any = np.float16,
    channels: int = 3,
    kernel: int = 3,
    stride: int = 2,
    around: float | None = None,
) -> Path:
    """Write a convolution of an image, as networks begin with; `around` it is a number of another operator."""
    pads = [kernel // 2] * 4 if kernel % 2 and around is None else [0] * 4
    nodes = [
        helper.make_node(
            "Conv", ["x" if around is None else "p", "w", "b"], ["c"], pads=pads, strides=[stride] * 2
        ),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    if around is not None:
        sides = helper.make_tensor("sides", TensorProto.INT64, [8], [0, 0, 1, 1, 0, 0, 1, 1])
        filled = helper.make_tensor(
            "around", FLOATS[dtype], [], np.array([around], dtype).tobytes(), raw=True
        )
        nodes = [
            helper.make_node("Constant", [], ["sides"], value=sides),
            helper.make_node("Constant", [], ["around"], value=filled),
            helper.make_node("Pad", ["x", "sides", "around"], ["p"]),
            *nodes,
        ]
    weights = {"w": (16, channels, kernel, kernel), "b": (16,)}
    return model(path / "image.onnx", {"x": (1, channels, 32, 32)}, weights, nodes, dtype)


def channels(path: Path, n: int) -> Path:
    """Write a convolution of an image of so many channels."""
    return image(path, channels=n)


def one_channel(path: Path) -> Path:
    """Write a convolution of an image in shades of grey."""
    return image(path, channels=1)


def depthwise(path: Path, dtype: Any = np.float16) -> Path:
    """Write a convolution of every channel by itself."""
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], group=15, pads=[1] * 4)]
    return model(path / "depthwise.onnx", {"x": (1, 15, 14, 14)}, {"w": (15, 1, 3, 3)}, nodes, dtype)


def upscaled(path: Path, features: int = 3, kernel: int = 9) -> Path:
    """Write a convolution of one channel within a network, with large windows and few features."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[kernel // 2] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["c", "v"], ["y"], pads=[1] * 4),
    ]
    weights = {"w": (features, 1, kernel, kernel), "v": (16, features, 3, 3)}
    return model(path / "upscaled.onnx", {"x": (1, 1, 32, 32)}, weights, nodes)


def product(path: Path, k: int = 63, dtype: Any = np.float16, reader: str = "", m: int = 64) -> Path:
    """Write `x[m, k] * w[k, 48]`, and what else reads `x`."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    nodes += [helper.make_node(reader, ["x"], ["z"])] if reader else []
    return model(
        path / "product.onnx", {"x": (m, k)}, {"w": (k, 48)}, nodes, dtype, ("y", "z") if reader else ("y",)
    )


def joined(path: Path, order: tuple[str, str] = ("h", "x")) -> Path:
    """Write two products of an input, one of them behind what the other gives: a network that skips layers."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("Concat", list(order), ["j"], axis=1),
        helper.make_node("MatMul", ["j", "v"], ["y"]),
    ]
    return model(path / "joined.onnx", {"x": (64, 27)}, {"w": (27, 32), "v": (59, 32)}, nodes)


def fused(path: Path, chip: str = "ipu-mk2") -> tuple[ReadModule, dict[str, NDArray[Any]]]:
    """Return a model as it is fused, whose module computes what ONNX Runtime does, and the weights it came with."""
    imported = import_model(path)
    with imported.module.context:
        Fuse(chip=chip).apply(imported.module)
        assert imported.module.operation.verify()
        text = str(imported.module)
        Fuse(chip=chip).apply(imported.module)
        assert str(imported.module) == text
        read = read_graph(imported.module)
        inputs, expected = onnx_runtime(path)
        stored = as_stored({**inputs, **imported.weights}, (*read.graph.inputs, *read.graph.weights))
        found = run_module(imported.module, stored)
    for name, value in expected.items():
        tolerance = 5e-3 if value.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)
    return read, imported.weights


def onnx_runtime(path: Path) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Return random inputs of a model, and what ONNX Runtime makes of them."""
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    dtypes = {"tensor(float16)": np.float16, "tensor(float)": np.float32}
    inputs = {each.name: normal(9, tuple(each.shape), dtypes[each.type]) for each in session.get_inputs()}
    names = [each.name for each in session.get_outputs()]
    return inputs, dict(zip(names, session.run(names, inputs), strict=True))


def values(read: ReadModule) -> dict[str, TensorValue]:
    """Return inputs and weights by name."""
    return {value.name: value for value in (*read.graph.inputs, *read.graph.weights)}


@pytest.mark.parametrize("dtype", list(FLOATS))
def test_an_image_of_three_channels_has_four(dtype: Any, tmp_path: Path) -> None:
    read, weights = fused(image(tmp_path, dtype))
    x, w = (values(read)[name] for name in ("x", "w"))
    assert (x.shape, x.padding, x.host_shape) == ((1, 32, 32, 4), (0, 1, 0, 0), (1, 3, 32, 32))
    assert (w.shape, w.padding, w.host_shape) == ((16, 3, 3, 4), (0, 1, 0, 0), weights["w"].shape)


@pytest.mark.parametrize(("dtype", "n", "more"), [(np.float16, 1, 3), (np.float16, 2, 2), (np.float32, 1, 1)])
def test_few_channels_become_a_word_where_that_pays(dtype: Any, n: int, more: int, tmp_path: Path) -> None:
    """What is one element long has no axis in the product: zeros give it one."""
    read, weights = fused(image(tmp_path, dtype, n, stride=1), "test-16")
    x, w = (values(read)[name] for name in ("x", "w"))
    assert (x.shape, x.padding, x.host_shape) == ((1, 32, 32, n + more), (0, more, 0, 0), (1, n, 32, 32))
    assert (w.shape, w.padding, w.host_shape) == ((16, 3, 3, n + more), (0, more, 0, 0), weights["w"].shape)


def test_five_features_become_eight_where_that_pays(tmp_path: Path) -> None:
    read, _ = fused(product(tmp_path, 5), "test-16")
    assert (values(read)["x"].padding, values(read)["x"].host_shape) == ((0, 3), (64, 5))


def test_channels_by_themselves_become_words_beside_the_batch(tmp_path: Path) -> None:
    """Zeros times zeros: no channel is multiplied by another's weights, which would make NaN of infinities."""
    read, _ = fused(depthwise(tmp_path), "test-16")
    assert (values(read)["x"].padding, values(read)["w"].padding) == ((3, 0, 0, 0), (0, 3, 0, 0))


@pytest.mark.parametrize(("chip", "is_padded"), [("test-4", False), ("test-16", True)])
def test_an_image_is_padded_to_a_word_where_memory_is_large(
    chip: str, is_padded: bool, tmp_path: Path
) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)]
    path = model(tmp_path / "large.onnx", {"x": (1, 1, 160, 160)}, {"w": (16, 1, 3, 3)}, nodes)
    read, _ = fused(path, chip)
    assert any(values(read)["x"].padding) == is_padded


def test_sums_become_whole_blocks_and_weights_stand_in_them(tmp_path: Path) -> None:
    read, _ = fused(product(tmp_path))
    x, w = (values(read)[name] for name in ("x", "w"))
    assert (x.shape, x.padding) == ((64, 64), (0, 1))
    assert (w.shape, w.split, w.padding, w.host_shape) == ((4, 48, 16), (0, 16), (1, 0), (63, 48))


def test_an_input_at_the_end_of_a_concatenation_is_padded(tmp_path: Path) -> None:
    read, _ = fused(joined(tmp_path))
    found = values(read)
    assert found["x"].padding == (0, 5)
    assert {found["w"].padding, found["v"].padding} == {(5, 0)}
    assert (found["w"].host_shape, found["v"].host_shape) == ((27, 32), (59, 32))


def colours(path: Path, n: int = 3, dtype: Any = np.float16, reader: str = "") -> Path:
    """Write `sigmoid(x * w + b)` of few columns, what networks end with, and what reads it within the model."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Sigmoid", ["c"], ["y"]),
    ]
    nodes += [helper.make_node(reader, ["y"], ["z"], axis=1)] if reader else []
    outputs = ("y", "z") if reader else ("y",)
    return model(path / "colours.onnx", {"x": (64, 32)}, {"w": (32, n), "b": (n,)}, nodes, dtype, outputs)


def residual(path: Path, of: str = "x") -> Path:
    """Write `x[63, 63] * w[63, 63]` to which one of both is added once more."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Transpose", [of], ["t"])]
    nodes += [helper.make_node("Add", ["a", "t"], ["y"])]
    return model(path / "residual.onnx", {"x": (63, 63)}, {"w": (63, 63)}, nodes)


def scores(path: Path) -> Path:
    """Write a convolution of 7 features behind which the dims change places: what segments an image."""
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1]),
    ]
    return model(path / "scores.onnx", {"x": (1, 32, 8, 8)}, {"w": (7, 32, 1, 1), "b": (7,)}, nodes)


def test_three_columns_of_a_result_are_four(tmp_path: Path) -> None:
    read, _ = fused(colours(tmp_path))
    assert values(read)["w"].padding == (0, 1)
    assert [operator.output.shape for operator in read.graph.operators] == [(64, 4)]
    assert [view.shape for view in read.graph.views if view.kind == "slice"] == [(64, 3)]


def test_features_of_a_result_become_whole_words(tmp_path: Path) -> None:
    read, _ = fused(scores(tmp_path))
    found = values(read)
    assert (found["w"].padding, found["w"].host_shape) == ((1, 0, 0, 0), (7, 32, 1, 1))
    assert found["constant"].shape == (8,)


OTHERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "whole words": (product, {"k": 64}),
    "far more, within a network": (upscaled, {}),
    "read behind the product": (residual, {}),
    "read as weights twice": (residual, {"of": "w"}),
    "infinite around the image": (image, {"around": np.inf}),
    "few terms": (product, {"k": 7, "m": 8}),
    "whole words of f32": (product, {"k": 62, "dtype": np.float32}),
    "another reader": (product, {"reader": "Neg"}),
    "an output": (product, {"reader": "Identity"}),
    "not at the end": (joined, {"order": ("x", "h")}),
    "patches of whole words": (image, {"kernel": 8, "stride": 8}),
    "channels by themselves, of f32": (depthwise, {"dtype": np.float32}),
    "one channel in patches of whole words": (image, {"channels": 1, "kernel": 4, "stride": 4}),
    "a column": (product, {"k": 1, "m": 128}),
    "four channels": (image, {"channels": 4}),
    "four columns": (colours, {"n": 4}),
    "two columns": (colours, {"n": 2}),
    "many columns": (colours, {"n": 21}),
    "an even number of f32": (colours, {"n": 6, "dtype": np.float32}),
    "columns that an operator reads": (colours, {"reader": "Softmax"}),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_other_inputs_stay_as_they_are(name: str, tmp_path: Path) -> None:
    make, given = OTHERS[name]
    read, _ = fused(make(tmp_path, **given), "test-16")
    assert not any(value.padding for value in values(read).values())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [image, one_channel, depthwise, product, joined, colours, scores])
def test_every_engine_computes_what_onnx_runtime_does(make: Any, tmp_path: Path) -> None:
    path = make(tmp_path)
    executable = t10.compile(path, chip="test-4", program=True)
    assert "t10.padded" in executable.module
    inputs, expected = onnx_runtime(path)
    write_program(executable, lowered(executable), tmp_path / "program")
    for found in (
        executable.run(inputs),
        run_on_tiles(executable, inputs).outputs,
        run_on_host(executable, tmp_path / "program", inputs),
    ):
        np.testing.assert_allclose(found["y"], expected["y"], rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(("k", "padding"), [(95, (0, 1)), (103, ())])
def test_no_sum_gets_more_terms_than_its_tolerance_allows(
    k: int, padding: tuple[int, ...], tmp_path: Path
) -> None:
    """103 terms are within the tolerance of `auto`, 112 are beyond it."""
    executable = t10.compile(product(tmp_path, k), chip="test-4", partials="auto", program=False)
    assert executable.plan.graph.inputs[0].padding == padding
    (operator,) = executable.report().operators
    assert 0 < operator.partials_error <= DEFAULT_TOLERANCE


def test_zeros_stand_where_nothing_is_whatever_the_input_begins_with(tmp_path: Path) -> None:
    """An infinity times the zero of a padded weight would be no number."""
    path = product(tmp_path)
    executable = t10.compile(path, chip="test-4", program=True)
    inputs, _ = onnx_runtime(path)
    inputs["x"][0, 0] = np.inf
    ran = run_on_tiles(executable, inputs).outputs["y"]
    assert not np.isfinite(ran[0]).any()
    assert np.isfinite(ran[1:]).all()


@pytest.mark.parametrize(("make", "n"), [(channels, 1), (channels, 2), (channels, 3), (colours, 3)])
def test_few_take_no_more_time_than_four(make: Any, n: int, tmp_path: Path) -> None:
    (tmp_path / "four").mkdir()
    few, four = (
        t10.compile(make(path, extent), chip="test-16", program=False).report().total_cycles
        for path, extent in ((tmp_path, n), (tmp_path / "four", 4))
    )
    assert few == four


def test_a_document_keeps_padding(tmp_path: Path) -> None:
    plan = t10.compile(image(tmp_path), chip="test-4", program=False).plan
    assert plan.graph.inputs[0].padding == (0, 1, 0, 0)
    write_document(tmp_path / "plan.json", plan)
    assert read_document(tmp_path / "plan.json") == plan


@pytest.mark.parametrize("padding", [(0, 0, 4), (0, -1, 0), (1,)])
def test_padding_that_is_no_part_of_dims_is_refused(padding: tuple[int, ...]) -> None:
    assert TensorValue("x", (1, 5, 4), "f16", padding=(0, 0, 3)).host_shape == (1, 5, 1)
    with pytest.raises(T10Error, match="padding"):
        TensorValue("x", (1, 5, 4), "f16", padding=padding)


@pytest.mark.parametrize(
    "text", ["array<i64: 0, 4, 0, 0>", "array<i64: 0, 1>", "array<i64: 0, -1, 0, 0>", "7 : i64"]
)
def test_a_module_with_wrong_padding_is_refused(text: str, tmp_path: Path) -> None:
    imported = import_model(image(tmp_path))
    with imported.module.context:
        Fuse().apply(imported.module)
        changed = str(imported.module).replace("t10.padded = array<i64: 0, 1, 0, 0>", f"t10.padded = {text}")
        assert changed != str(imported.module)
        with pytest.raises(InputError, match=r"t10\.padded is"):
            read_graph(ir.Module.parse(changed))
