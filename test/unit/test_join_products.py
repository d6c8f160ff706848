"""Products of one tensor with several weights are joined to one; the host puts the weights behind one another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.backend import run_on_tiles
from t10.driver import Executable
from t10.frontend.importer import import_model
from t10.passes.fuse import Fuse
from t10.reference import OnnxRuntime

ROWS, DEPTH = 5, 24
ALONG_ROWS = numpy_helper.from_array(np.array([1]), "all")
WIDTHS = {"q": 16, "k": 16, "v": 8}


def projections(
    path: Path, *, scaled: str = "", function: str = "", shared: bool = False
) -> dict[str, np.ndarray[Any, Any]]:
    """Write a model of three projections of `x`; one's result may be `scaled`, one's weight `shared` with -`x`.

    Of one that is scaled, what another function makes of it is the result with `function`.
    """
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray[Any, Any]] = {}
    nodes: list[onnx.NodeProto] = []
    outputs: list[onnx.ValueInfoProto] = []
    for name, width in WIDTHS.items():
        weights[f"w{name}"] = rng.standard_normal((DEPTH, width)).astype(np.float16)
        weights[f"b{name}"] = rng.standard_normal(width).astype(np.float16)
        inputs = ["negative", "wq"] if shared and name == "k" else ["x", f"w{name}"]
        nodes.append(helper.make_node("MatMul", inputs, [f"{name}0"], name=name))
        nodes.append(helper.make_node("Add", [f"{name}0", f"b{name}"], [f"{name}1"]))
        last = f"{name}1"
        if name == scaled:
            weights["factor"] = np.array(0.5, np.float16)
            nodes.append(helper.make_node("Mul", [last, "factor"], [f"{name}2"]))
            last = f"{name}2"
        if name == scaled and function:
            nodes.append(helper.make_node(function, [last], [f"{name}3"]))
            last = f"{name}3"
        outputs.append(helper.make_tensor_value_info(last, TensorProto.FLOAT16, [ROWS, width]))
    if shared:
        del weights["wk"]
        nodes.insert(0, helper.make_node("Neg", ["x"], ["negative"]))
    graph = helper.make_graph(
        nodes,
        "projections",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [ROWS, DEPTH])],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return weights


def operators(executable: Executable) -> list[str]:
    """Return the names of a model's operators."""
    return [spec.name for spec in executable.plan.graph.operators]


@pytest.mark.parametrize("program", [False, True])
def test_products_of_one_tensor_are_one(program: bool, tmp_path: Path) -> None:
    weights = projections(tmp_path / "model.onnx")
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=program)
    assert operators(executable) == ["q (+2)"]
    assert next(iter(executable.weights)) == "wq (+2)"
    executable.save(tmp_path / "out")
    executable = Executable.load(tmp_path / "out")
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float16)
    found = run_on_tiles(executable, {"x": x}).outputs if program else executable.run({"x": x})
    for name, width in WIDTHS.items():
        product = x.astype(np.float32) @ weights[f"w{name}"].astype(np.float32)
        expected = product + weights[f"b{name}"].astype(np.float32)
        assert found[f"{name}1"].shape == (ROWS, width)
        np.testing.assert_allclose(found[f"{name}1"], expected, rtol=2e-3, atol=2e-2)


def test_fusing_again_joins_nothing_more(tmp_path: Path) -> None:
    projections(tmp_path / "model.onnx")
    imported = import_model(tmp_path / "model.onnx")
    with imported.module.context:
        Fuse().apply(imported.module)
        once = str(imported.module)
        Fuse().apply(imported.module)
        assert str(imported.module) == once
    assert 't10.parts = {axis = 1 : i64, names = ["wq", "wk", "wv"]}' in once


def test_what_is_computed_otherwise_stays_apart(tmp_path: Path) -> None:
    projections(tmp_path / "model.onnx", scaled="q", function="Tanh")
    names = operators(t10.compile(tmp_path / "model.onnx", chip="test-16", program=False))
    assert names == ["q", "k (+1)"]


@pytest.mark.parametrize("scaled", WIDTHS)
@pytest.mark.parametrize("program", [False, True])
def test_a_scaled_product_is_joined_with_others_that_are_not(
    scaled: str, program: bool, tmp_path: Path
) -> None:
    weights = projections(tmp_path / "model.onnx", scaled=scaled)
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=program)
    assert operators(executable) == ["q (+2)"]
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float16)
    found = run_on_tiles(executable, {"x": x}).outputs if program else executable.run({"x": x})
    for name in WIDTHS:
        product = x.astype(np.float32) @ weights[f"w{name}"].astype(np.float32)
        expected = (product + weights[f"b{name}"].astype(np.float32)) * (0.5 if name == scaled else 1)
        made = f"{name}2" if name == scaled else f"{name}1"
        np.testing.assert_allclose(found[made], expected, rtol=2e-3, atol=2e-2)


@pytest.mark.parametrize("gate", ["Sigmoid", "Relu", "Tanh"])
@pytest.mark.parametrize("first", ["gate", "up"])
def test_a_gate_and_what_it_multiplies_are_one_product(gate: str, first: str, tmp_path: Path) -> None:
    """Of SwiGLU and its like: neither takes in the function that reads both."""
    nodes = [
        helper.make_node("MatMul", ["x", f"w{n}"], [f"{n}0"], name=n)
        for n in sorted(("gate", "up"), key=first.__ne__)
    ]
    nodes.append(helper.make_node(gate, ["gate0"], ["gate1"], name="act"))
    nodes.append(helper.make_node("Mul", ["gate1", "up0"], ["y"], name="mul"))
    weights = {"wgate": (DEPTH, 16), "wup": (DEPTH, 16)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"y": 16})
    joined, rest = operators(executable)
    assert {joined.removesuffix(" (+1)"), rest} == {"gate", "up"}
    assert joined.endswith(" (+1)")


def test_products_that_are_not_joined_take_in_what_reads_them(tmp_path: Path) -> None:
    """One weight is read twice, so that it stays by itself."""
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"{n}0"], name=n) for n in ("gate", "up")]
    nodes.append(helper.make_node("Sigmoid", ["gate0"], ["gate1"], name="act"))
    nodes.append(helper.make_node("Mul", ["gate1", "up0"], ["y"], name="mul"))
    weights = {"wgate": (DEPTH, 16), "wup": (DEPTH, 16)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"y": 16, "wup": 16})
    assert len(operators(executable)) == 2
    assert "mul" not in operators(executable)


def test_a_weight_with_two_readers_stays_by_itself(tmp_path: Path) -> None:
    projections(tmp_path / "model.onnx", shared=True)
    names = operators(t10.compile(tmp_path / "model.onnx", chip="test-16", program=False))
    assert "v" in names
    assert not [name for name in names if "(+" in name]


def small(
    path: Path, nodes: list[onnx.NodeProto], weights: dict[str, tuple[int, ...]], outputs: dict[str, int]
) -> Executable:
    """Compile a model of `x` [5, 24]: nodes, weights by shape, and outputs of five rows by width."""
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, DEPTH])],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, columns])
            for name, columns in outputs.items()
            for rows in [weights.get(name, (ROWS,))[0]]
        ],
        [
            numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, chip="test-16", program=False)
    x = rng.standard_normal((ROWS, DEPTH)).astype(np.float32)
    found, expected = executable.run({"x": x}), OnnxRuntime(model, path).outputs({"x": x})
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-4)
    return executable


def test_a_product_that_another_one_needs_is_not_joined_with_it(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Constant", [], ["zero"], value_ints=[0]),
        helper.make_node("MatMul", ["x", "wq"], ["q0"], name="q"),
        helper.make_node("Add", ["q0", "b"], ["q1"]),
        helper.make_node("ReduceMax", ["q1", "zero"], ["most"], keepdims=0),
        helper.make_node("MatMul", ["x", "wk"], ["k0"], name="k"),
        helper.make_node("Add", ["k0", "most"], ["k1"]),
    ]
    weights = {"wq": (DEPTH, 16), "wk": (DEPTH, 16), "b": (16,)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"q1": 16, "k1": 16})
    assert {"q", "k"} <= set(operators(executable))


def test_a_weight_that_the_model_returns_stays_by_itself(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"{n}0"], name=n) for n in "qk"]
    weights = {"wq": (DEPTH, 16), "wk": (DEPTH, 16)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"q0": 16, "k0": 16, "wk": 16})
    assert operators(executable) == ["q", "k"]


def test_joined_weights_take_no_name_of_another(tmp_path: Path) -> None:
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"{n}0"], name=n) for n in "qk"]
    nodes.append(helper.make_node("MatMul", ["q0", "wq (+1)"], ["z0"], name="z"))
    weights = {"wq": (DEPTH, 16), "wk": (DEPTH, 16), "wq (+1)": (16, 8)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"q0": 16, "k0": 16, "z0": 8})
    assert operators(executable) == ["q (+1)", "z"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("rotated", ["q", "qk", "qkv"])
def test_products_whose_columns_are_heads_are_joined_whole(rotated: str, tmp_path: Path) -> None:
    """A rotary embedding reads by heads and halves, and has columns split before products are joined."""
    weights = projections(tmp_path / "model.onnx")
    model = onnx.ModelProto.FromString((tmp_path / "model.onnx").read_bytes())
    for name in rotated:
        width = WIDTHS[name]
        model.graph.initializer.extend(
            [
                numpy_helper.from_array(np.array([ROWS, 2, width // 2]), f"heads_{name}"),
                numpy_helper.from_array(np.linspace(1, 2, width // 2).astype(np.float16), f"cos_{name}"),
            ]
        )
        model.graph.node.extend(
            [
                helper.make_node("Reshape", [f"{name}1", f"heads_{name}"], [f"{name}2"]),
                helper.make_node("Transpose", [f"{name}2"], [f"{name}3"], perm=[1, 0, 2]),
                helper.make_node("Split", [f"{name}3"], [f"{name}4", f"{name}5"], axis=2, num_outputs=2),
                helper.make_node("Neg", [f"{name}5"], [f"{name}6"]),
                helper.make_node("Concat", [f"{name}6", f"{name}4"], [f"{name}7"], axis=2),
                helper.make_node("Mul", [f"{name}3", f"cos_{name}"], [f"{name}8"]),
                helper.make_node("Add", [f"{name}8", f"{name}7"], [f"{name}9"]),
            ]
        )
        made = helper.make_tensor_value_info(f"{name}9", TensorProto.FLOAT16, [2, ROWS, width // 2])
        model.graph.output[list(WIDTHS).index(name)].CopyFrom(made)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    assert [name for name in operators(executable) if name in WIDTHS or "(+" in name] == ["q (+2)"]
    x = np.random.default_rng(1).standard_normal((ROWS, DEPTH)).astype(np.float16)
    found = executable.run({"x": x})
    for name in rotated:
        product = x.astype(np.float32) @ weights[f"w{name}"].astype(np.float32) + weights[f"b{name}"]
        rows = product.reshape(ROWS, 2, -1).transpose(1, 0, 2)
        first, second = np.split(rows, 2, axis=2)
        expected = rows * np.linspace(1, 2, rows.shape[2]) + np.concatenate([-second, first], axis=2)
        np.testing.assert_allclose(found[f"{name}9"], expected, rtol=4e-3, atol=6e-2)


@pytest.mark.parametrize("unit", ["", "q", "k", "qk"])
def test_heads_with_a_dim_of_one_row_between_are_joined(unit: str, tmp_path: Path) -> None:
    """A decoding step has [batch, heads, 1, n], other projections [batch, heads, n] or [batch, n]."""
    nodes: list[onnx.NodeProto] = []
    outputs: list[onnx.ValueInfoProto] = []
    rng = np.random.default_rng(0)
    weights = {f"w{name}": rng.standard_normal((DEPTH, 16)).astype(np.float32) for name in "qkv"}
    for name in "qkv":
        shape = [ROWS, 2, 1, 8] if name in unit else [ROWS, 2, 8] if name == "q" else [ROWS, 1, 16]
        nodes.append(helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"], name=name))
        nodes.append(helper.make_node("Reshape", [f"{name}0", f"s{name}"], [f"{name}1"]))
        nodes.append(helper.make_node("Relu", [f"{name}1"], [f"{name}2"]))
        outputs.append(helper.make_tensor_value_info(f"{name}2", TensorProto.FLOAT, shape))
        weights[f"s{name}"] = np.array(shape)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS, DEPTH])
    graph = helper.make_graph(
        nodes, "heads", [x], outputs, [numpy_helper.from_array(each, name) for name, each in weights.items()]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    assert operators(executable) == ["q (+2)"]
    values = rng.standard_normal((ROWS, DEPTH)).astype(np.float32)
    expected = OnnxRuntime(model, tmp_path / "model.onnx").outputs({"x": values})
    for name, found in executable.run({"x": values}).items():
        np.testing.assert_allclose(found, expected[name], rtol=1e-4, atol=1e-4)


def test_a_product_that_a_computed_tensor_multiplies_is_joined(tmp_path: Path) -> None:
    """A gate of what other products of the same tensor lead to (retention)."""
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"{n}0"], name=n) for n in "vg"]
    nodes.append(helper.make_node("Softmax", ["v0"], ["v1"], name="soft"))
    nodes.append(helper.make_node("Mul", ["g0", "v1"], ["y"], name="mul"))
    weights = {"wv": (DEPTH, 16), "wg": (DEPTH, 16)}
    executable = small(tmp_path / "model.onnx", nodes, weights, {"y": 16})
    assert operators(executable)[0] == "v (+1)"


def test_convolutions_side_by_side_are_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray[Any, Any]] = {}
    nodes: list[onnx.NodeProto] = []
    for name, channels in (("a", 8), ("b", 5)):
        weights[f"w{name}"] = rng.standard_normal((channels, 4, 3, 3)).astype(np.float32)
        weights[f"b{name}"] = rng.standard_normal(channels).astype(np.float32)
        inputs = ["x", f"w{name}", f"b{name}"]
        nodes.append(helper.make_node("Conv", inputs, [f"{name}0"], name=name, pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"{name}0"], [f"{name}1"]))
    nodes.append(helper.make_node("Concat", ["b1", "a1"], ["y"], axis=1))
    graph = helper.make_graph(
        nodes,
        "convolutions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 6, 7])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 13, 6, 7])],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    assert operators(executable) == ["a (+1)"]
    x = rng.standard_normal((1, 4, 6, 7)).astype(np.float32)
    expected = OnnxRuntime(model, tmp_path / "model.onnx").outputs({"x": x})["y"]
    np.testing.assert_allclose(executable.run({"x": x})["y"], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("without", ["k", "v", "qk", "kv"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_product_without_a_bias_is_joined_with_others_that_have_one(
    without: str, dtype: type[np.floating[Any]], tmp_path: Path
) -> None:
    """Keys of Whisper have none; zeros of sums keep their sign."""
    rng = np.random.default_rng(0)
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray[Any, Any]] = {}
    for name, width in WIDTHS.items():
        weights[f"w{name}"] = rng.standard_normal((DEPTH, width)).astype(dtype)
        made = f"{name}1" if name in without else f"{name}0"
        nodes.append(helper.make_node("MatMul", ["x", f"w{name}"], [made], name=name))
        if name not in without:
            weights[f"b{name}"] = rng.standard_normal(width).astype(dtype)
            nodes.append(helper.make_node("Add", [made, f"b{name}"], [f"{name}1"]))
    graph = helper.make_graph(
        nodes,
        "projections",
        [helper.make_tensor_value_info("x", kind, [ROWS, DEPTH])],
        [helper.make_tensor_value_info(f"{name}1", kind, [ROWS, width]) for name, width in WIDTHS.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16")
    assert operators(executable) == ["q (+2)"]
    x = rng.standard_normal((ROWS, DEPTH)).astype(dtype)
    expected = OnnxRuntime(model, tmp_path / "model.onnx").outputs({"x": x})
    tolerance = 2e-2 if dtype is np.float16 else 1e-4
    for found in (executable.run({"x": x}), run_on_tiles(executable, {"x": x}).outputs):
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance)


def test_results_that_would_fill_memories_are_not_joined(tmp_path: Path) -> None:
    """Of sixteen, as keys and values of all layers of a decoder, each reads a part of what they leave room for."""
    n_rows, width = 256, 256
    nodes = [helper.make_node("MatMul", ["x", f"w{n}"], [f"p{n}"], name=f"m{n}") for n in range(16)]
    nodes += [helper.make_node("ReduceMax", [f"p{n}", "all"], [f"y{n}"], keepdims=0) for n in range(16)]
    rng = np.random.default_rng(0)
    weights = {f"w{n}": rng.standard_normal((8, width)).astype(np.float32) for n in range(16)}
    graph = helper.make_graph(
        nodes,
        "many",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [n_rows, 8])],
        [helper.make_tensor_value_info(f"y{n}", TensorProto.FLOAT, [n_rows]) for n in range(16)],
        [*(numpy_helper.from_array(each, name) for name, each in weights.items()), ALONG_ROWS],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    joined = [name for name in operators(executable) if "(+" in name]
    memory_bytes = executable.chip.n_cores * executable.chip.capacity_bytes
    assert len(joined) == -(-16 // (memory_bytes // 8 // (n_rows * width * 4)))


def test_what_is_multiplied_behind_a_rounding_is_right(tmp_path: Path) -> None:
    """A factor of an f16 result is none of the sums, which are f32."""
    rng = np.random.default_rng(0)
    weights: dict[str, np.ndarray[Any, Any]] = {"half": np.array(0.5, np.float16)}
    nodes: list[onnx.NodeProto] = []
    for name in "ab":
        weights[f"w{name}"] = rng.standard_normal((4, 2, 3, 3)).astype(np.float16)
        weights[f"b{name}"] = rng.standard_normal(4).astype(np.float16)
        inputs = ["x", f"w{name}", f"b{name}"]
        nodes.append(helper.make_node("Conv", inputs, [f"{name}0"], name=name, pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Mul", ["half", "a0"], ["a1"]))
    graph = helper.make_graph(
        nodes,
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [1, 2, 5, 6])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [1, 4, 5, 6]) for name in ("a1", "b0")],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    executable = t10.compile(tmp_path / "model.onnx", chip="test-16", program=False)
    x = rng.standard_normal((1, 2, 5, 6)).astype(np.float16)
    expected = OnnxRuntime(model, tmp_path / "model.onnx").outputs({"x": x})
    for name, found in executable.run({"x": x}).items():
        np.testing.assert_allclose(found, expected[name], rtol=2e-3, atol=2e-2)
