"""Modules whose tensors are stored in other orders compute the same, and every product reads as the engine wants it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from orders import WRITINGS, Chain, cycles
from support.linalg_numpy import run_module
from support.models import save, weights
from support.random_models import random_model

import t10
from t10.chip import load_chip
from t10.codelets.matrix.windows import windows
from t10.core.expression import OperatorSpec
from t10.core.stored import as_stored
from t10.cost.matrix import matrix_axes
from t10.cost.work import sub_task
from t10.frontend.importer import import_model
from t10.passes.bridge.affine import axis_dim
from t10.passes.fuse import Fuse
from t10.passes.fusion.product_prices import CountedPrice, CountedProduct, Target, Tensor
from t10.passes.read_graph import read_graph
from t10.plan.memory.storage import RowRule, Stored

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"
ARCHITECTURES = ("bert", "vit", "resnet18", "nerf", "opt", "llama2", "retnet")


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(40))
def test_a_random_model_in_new_orders_equals_onnxruntime(seed: int, tmp_path: Path) -> None:
    model, inputs = random_model(seed)
    path = tmp_path / "random.onnx"
    path.write_bytes(model.SerializeToString())
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))
    imported = import_model(path)
    with imported.module.context:
        Fuse().apply(imported.module)
        assert imported.module.operation.verify()
        graph = read_graph(imported.module).graph
        stored = as_stored({**inputs, **imported.weights}, (*graph.inputs, *graph.weights))
        found = run_module(imported.module, stored)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-5 * max(np.abs(value).max(), 1))


def test_a_short_constant_stands_as_its_reader_wants_it(tmp_path: Path) -> None:
    """Up to 16 elements stand in the text: they were brought through a transpose, in every run."""
    inputs, outputs = {"x": (TensorProto.FLOAT, [64, 2])}, {"y": (TensorProto.FLOAT, [64, 7])}
    model = save(
        tmp_path / "short.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        inputs,
        outputs,
        w=weights(1, 2, 7),
    )
    executable = t10.compile(model, chip="test-4")
    assert [view.sources for view in executable.plan.graph.views] in ([], [("y:0",)])  # what the host reads
    x = np.random.default_rng(0).standard_normal((64, 2), np.float32)
    np.testing.assert_allclose(executable.run({"x": x})["y"], x @ weights(1, 2, 7), rtol=1e-5, atol=1e-6)


def test_an_input_that_is_returned_comes_back_as_it_was(tmp_path: Path) -> None:
    shapes = {"p": [1, 2, 2, 2], "v": [1, 2, 2, 8], "y": [1, 2, 2, 8], "v2": [1, 2, 2, 8]}
    ports = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, s) for name, s in shapes.items()}
    nodes = [
        helper.make_node("MatMul", ["p", "v"], ["y"], "product"),
        helper.make_node("Identity", ["v"], ["v2"]),
    ]
    graph = helper.make_graph(nodes, "returned", [ports["p"], ports["v"]], [ports["y"], ports["v2"]])
    path = tmp_path / "returned.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    rng = np.random.default_rng(0)
    inputs = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in "pv"}
    executable = t10.compile(path, chip="test-16", program=False)
    assert "t10.order" in executable.module
    found = executable.run(inputs)
    np.testing.assert_array_equal(found["v2"], inputs["v"])
    np.testing.assert_allclose(found["y"], inputs["p"] @ inputs["v"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extent", [1, 4, 700])
def test_a_product_that_is_one_number_runs_right(extent: int, tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [extent]) for n in "AB"]
    total = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [])
    graph = helper.make_graph([helper.make_node("MatMul", ["A", "B"], ["Y"], "dot")], "dot", values, [total])
    path = tmp_path / "dot.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()
    )
    inputs = {name: np.linspace(-1, 2, extent, dtype=np.float32) for name in "AB"}
    found = t10.compile(path, chip="test-16", program=False).run(inputs)
    np.testing.assert_allclose(found["Y"], inputs["A"] @ inputs["B"], rtol=1e-5)


def last_axis(spec: OperatorSpec, number: int) -> int | None:
    """Return the axis of an operand's innermost dim that is not of extent 1."""
    operand = (*spec.inputs, spec.output)[number]
    dims = [dim for dim, extent in zip(operand.dims, operand.shape, strict=True) if extent != 1]
    return dims[-1].axes[0] if dims and dims[-1].is_simple else None


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_matrix_product_of_a_model_reads_and_writes_in_a_row(name: str) -> None:
    imported = import_model(MODELS / f"{name}_fp16.onnx")
    with imported.module.context:
        Fuse().apply(imported.module)
        graph = read_graph(imported.module).graph
    n_products = 0
    for spec in graph.operators:
        axes = matrix_axes(spec)
        sides = () if axes is None else (axes.rows, axes.columns)
        if axes is None or any(all(spec.extents[axis] == 1 for axis in side) for side in sides):
            continue
        n_products += 1
        # Parts of a joined product are stored alike: one of two is read across rows where a copy takes longer.
        alone = [n for n, operand in enumerate(spec.inputs[:2]) if " (+" not in operand.name]
        assert len({last_axis(spec, n) for n in alone}) <= 1, spec.name
        assert all(last_axis(spec, n) in axes.inner for n in alone), spec.name
        allowed = axes.columns if axes.positions else (*axes.rows, *axes.columns)
        assert last_axis(spec, 2) in allowed, spec.name
    assert n_products > 0


def products(rows: int, path: Path, k: int = 2048, n: int = 4096, chip: str = "ipu-mk2") -> OperatorSpec:
    """Return the first of two products, of f16, that follow each other, as fused for a chip."""
    dims = {"w": (k, n), "v": (n, k)}
    made = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("MatMul", ["a", "v"], ["y"])],
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [rows, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [rows, k])],
        [numpy_helper.from_array(np.zeros(shape, np.float16), name) for name, shape in dims.items()],
    )
    path.write_bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    imported = import_model(path)
    with imported.module.context:
        Fuse(chip=chip).apply(imported.module)
        return read_graph(imported.module).graph.operators[0]


@pytest.mark.parametrize(
    ("rows", "k", "n", "chip"),
    [
        (2, 2048, 4096, "ipu-mk2"),
        (4, 2048, 4096, "ipu-mk2"),
        (8, 2048, 4096, "ipu-mk2"),
        (16, 2048, 4096, "ipu-mk2"),
        (8, 256, 256, "test-4"),
        (16, 512, 512, "test-16"),
    ],
)
def test_results_of_few_rows_have_them_innermost(
    rows: int, k: int, n: int, chip: str, tmp_path: Path
) -> None:
    spec = products(rows, tmp_path / "two.onnx", k, n, chip)
    last = last_axis(spec, 2)
    assert last is not None
    assert spec.extents[last] == rows
    assert last_axis(spec, 0) == last_axis(spec, 1)


def test_results_of_many_rows_stay_as_given(tmp_path: Path) -> None:
    spec = products(17, tmp_path / "two.onnx")
    last = last_axis(spec, 2)
    assert last is not None
    assert spec.extents[last] == 4096


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("chain", "chip"),
    [
        (Chain(16, (512, 512), 16), "test-16"),
        (Chain(1, (128, 256, 32), 16), "test-4"),
        (Chain(128, (192, 64, 384, 16), 32), "test-4"),
    ],
    ids=str,
)
def test_products_are_as_fast_however_they_are_written(chain: Chain, chip: str) -> None:
    found = {writing: cycles(chain, writing, chip) for writing in WRITINGS}
    fastest = min(each for each in found.values() if each is not None)
    assert all(each is not None and each <= 1.02 * fastest for each in found.values()), found


def test_weights_that_the_interleaved_region_does_not_hold_lie_outside_it() -> None:
    chip = load_chip("test-4")
    memory = chip.tile_memory
    room = chip.n_cores * (memory.end - memory.interleaved_base)
    assert Target.of(chip, {1: room - 2, 3: 2}).outside == frozenset()
    assert Target.of(chip, {1: room - 2, 3: 4}).outside == {1, 3}


def test_weights_that_fit_every_core_need_not_move() -> None:
    chip = load_chip("test-4")
    half = chip.capacity_bytes // 2
    assert Target.of(chip, {1: half - 2, 3: 2}).everywhere == {1, 3}
    assert Target.of(chip, {1: half - 2, 3: 4}).everywhere == frozenset()


@pytest.mark.parametrize("shape", [(52, 161, 117), (127, 63, 102)])
def test_more_cores_are_never_slower_for_a_product(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """Weights that every core may keep whole do not move: then it is rows that cores share."""
    rows, k, n = shape
    made = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [rows, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, [rows, n])],
        [numpy_helper.from_array(np.zeros((k, n), np.float16), "w")],
    )
    path = tmp_path / "one.onnx"
    path.write_bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    cycles = [
        t10.compile(path, f"test-64:n_cores={n_cores}", program=False).report().total_cycles
        for n_cores in (4, 7, 8, 13, 16)
    ]
    assert cycles == sorted(cycles, reverse=True)


def price_of_product(dtype: str, outside: frozenset[int], *, rounds: bool) -> int:
    """Return the price of x[64, 256] * w[512, 256] of f16, summed in a type."""
    x, w, y = (
        Tensor(kind, (a, b), (axis_dim(i), axis_dim(j)))
        for kind, a, b, i, j in (("f16", 64, 256, 0, 2), ("f16", 512, 256, 1, 2), (dtype, 64, 512, 0, 1))
    )
    stored = (Stored((64, 256), 1), Stored((512, 256), 1), Stored((64, 512), 1))
    none: frozenset[int] = frozenset()
    rule = RowRule(((0, 2), (1, 2), (0, 1)), stored, frozenset({2}), frozenset({0, 1}), (none, none))
    product = CountedProduct((64, 512, 256), frozenset({2}), (x, w, y), load_chip("test-4"), outside, rounds)
    return CountedPrice(product, rule)(((0, 1), (0, 1), (0, 1)), (False, False))


def test_products_of_weights_outside_the_interleaved_region_cost_more() -> None:
    near, far = (
        price_of_product("f32", outside, rounds=False) for outside in (frozenset[int](), frozenset({0, 1}))
    )
    assert near < far


def test_products_that_are_rounded_when_a_core_hands_them_on_are_summed_in_f32() -> None:
    half, rounded, single = (
        price_of_product(dtype, frozenset(), rounds=rounds)
        for dtype, rounds in (("f16", False), ("f16", True), ("f32", False))
    )
    # What is handed on is half as much.
    assert half < rounded < single


@pytest.mark.slow
def test_saved_weights_lie_as_the_plan_has_them(tmp_path: Path) -> None:
    stored = import_model(MODELS / "bert_fp16.onnx").weights
    executable = t10.compile(MODELS / "bert_fp16.onnx", chip="test-4")
    given = {
        weight.name: np.concatenate([stored[name] for name in weight.parts.names], weight.parts.axis)
        if weight.parts
        else stored[weight.name]
        for weight in executable.plan.graph.weights
    }
    shapes = {weight.name: weight.shape for weight in executable.plan.graph.weights}
    assert {name: value.shape for name, value in executable.weights.items()} == shapes
    turned = [
        name
        for name, value in given.items()
        if not np.array_equal(executable.weights[name].ravel(), value.ravel())
    ]
    assert executable.module.count("t10.order") == len(turned) > 0
    for name in turned:
        np.testing.assert_array_equal(executable.weights[name], given[name].T)
    executable.save(tmp_path)
    again = t10.Executable.load(tmp_path)
    for name, value in executable.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)


def depthwise(
    path: Path, channels: int, size: int, kernel: int, *, stride: int = 1, dilation: int = 1, times: int = 1
) -> OperatorSpec:
    """The operator of a convolution of every channel by itself, with so many results each, as fused for a chip."""
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(channels * times, 1, kernel, kernel)).astype(np.float16)
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], group=channels, strides=[stride] * 2, dilations=[dilation] * 2
    )
    shape = (1, channels, size, size)
    made = helper.make_graph(
        [node],
        "depthwise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, None)],
        [numpy_helper.from_array(weight, "w")],
    )
    file = path / "depthwise.onnx"
    file.write_bytes(helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
    imported = import_model(file)
    with imported.module.context:
        Fuse(chip="test-16").apply(imported.module)
        return read_graph(imported.module).graph.operators[0]


@pytest.mark.parametrize(("size", "kernel", "stride"), [(14, 3, 1), (8, 3, 2), (9, 5, 1), (14, 7, 1)])
def test_channels_of_windows_are_innermost(size: int, kernel: int, stride: int, tmp_path: Path) -> None:
    spec = depthwise(tmp_path, 16, size, kernel, stride=stride)
    (channel,) = {last_axis(spec, number) for number in range(3)}
    assert channel is not None
    assert spec.axes[channel].extent == 16
    assert sorted(spec.axes[axis].extent for axis in spec.reduction_axes) == [kernel, kernel]
    assert windows(sub_task(spec, spec.extents))


@pytest.mark.parametrize(
    "options",
    [
        {"channels": 15},
        {"size": 4},
        {"kernel": 2},
        {"stride": 3},
        {"times": 2},
    ],
    ids=("channels", "narrow", "short", "far", "several"),
)
def test_what_no_window_code_takes_stays_as_it_was(options: dict[str, int], tmp_path: Path) -> None:
    given = {"channels": 16, "size": 14, "kernel": 3} | options
    spec = depthwise(tmp_path, **given)
    assert windows(sub_task(spec, spec.extents)) == ()
    channels = [axis for axis in spec.output.axes if spec.axes[axis].extent == given["channels"]]
    assert last_axis(spec, 0) not in channels
