"""Quantised operators of ONNX Runtime's own domain: its integers, off by one at most where a quotient is near a half.

Its QLinearSoftmax is off by one in many places: it divides integers. Here it is what its formula says, rounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnxruntime import quantization
from support.bounded import computed
from support.engines import by_runtime, on_simulators

import t10
from t10.errors import UnsupportedOpError

Array = NDArray[Any]
DOMAIN = "com.microsoft"
quantizer: Any = quantization  # some of its functions are typed in part only
IMAGE = (1, 4, 6, 6)


def contributed(operator: str, inputs: str, output: str, **attributes: Any) -> Any:
    """Return a node; names of its inputs are apart by spaces, `-` is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(operator, names, [output], name=output, domain=DOMAIN, **attributes)


def model_of(
    nodes: list[Any], inputs: dict[str, Array], weights: dict[str, Array], kinds: Mapping[str, int]
) -> Any:
    """Return a model whose outputs have types and no declared extents."""

    def value(name: str, kind: int, shape: tuple[int, ...] | None) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(
        nodes,
        "g",
        [value(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in inputs.items()],
        [value(name, kind, None) for name, kind in kinds.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["uint8", "int8"])
def test_operators(kind: str, tmp_path: Path) -> None:
    random, limits = np.random.default_rng(3), np.iinfo(kind)

    def integers(*shape: int) -> Array:
        return random.integers(limits.min, limits.max, shape, kind, endpoint=True)

    middle = 128 if kind == "uint8" else 0
    inputs = {"x": integers(*IMAGE), "y": integers(*IMAGE), "a": integers(5, 12)}
    weights: dict[str, Array] = {
        **{
            f"s{i}": np.array(scale, np.float32)
            for i, scale in enumerate((0.0313, 0.0471, 0.0519, 0.004, 0.61))
        },
        **{f"z{i}": np.array(middle + i, kind) for i in (-9, 0, 5)},
        "least": np.array(limits.min, kind),
        "where": random.integers(0, 2, IMAGE).astype(bool),
        "b": random.integers(-60, 60, (7, 12)).astype(np.int8),
        "bs": random.uniform(0.01, 0.05, 7).astype(np.float32),
        "bz": np.zeros(7, np.int8),
        "c": random.integers(-9000, 9000, 7).astype(np.int32),
    }
    nodes = [
        contributed("QLinearAdd", "x s0 z5 y s1 z-9 s2 z5", "add"),
        contributed("QLinearMul", "x s0 z5 y s1 z-9 s2 z0", "mul"),
        contributed("QLinearConcat", "s1 z5 x s0 z-9 y s2 z0", "concat", axis=1),
        contributed("QLinearWhere", "where x s0 z5 y s2 z-9 s2 z0", "chosen"),
        contributed("QLinearSigmoid", "x s0 z5 s3 least", "sigmoid"),
        contributed("QLinearLeakyRelu", "x s0 z5 s1 z-9", "leaky", alpha=0.2),
        contributed("QLinearSoftmax", "x s0 z5 s3 least", "softmax", axis=-1, opset=13),
        contributed("QLinearGlobalAveragePool", "x s0 z5 s1 z-9", "mean", channels_last=0),
        contributed(
            "QLinearAveragePool", "x s0 z5 s1 z-9", "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4
        ),
        contributed("QLinearGlobalAveragePool", "x s0 z5 s1 z-9", "mean_last", channels_last=1),
        contributed(
            "QLinearAveragePool", "x s0 z5 s1 z-9", "pool_last", kernel_shape=[2, 3], channels_last=1
        ),
        contributed("QGemm", "a s0 z5 b bs bz c s4 z-9", "gemm", transB=1),
        contributed("QGemm", "a s0 z5 b bs bz c - -", "float", transB=1, alpha=0.5),
    ]
    own = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    kinds = {node.output[0]: TensorProto.FLOAT if node.output[0] == "float" else own for node in nodes}
    model = model_of(nodes, inputs, weights, kinds)
    due = by_runtime(model, inputs)
    product = due.pop("float")
    assert all(len(np.unique(values)) > 3 for values in due.values()), "one says nothing"
    for engine, found in on_simulators(model, inputs, tmp_path).items():
        np.testing.assert_array_equal(found["float"], product)
        for name in due:
            assert found[name].dtype == due[name].dtype
            distance = np.abs(found[name].astype(int) - due[name].astype(int))
            exact = name in ("gemm", "mul")
            assert distance.max() <= (0 if exact else 1), f"{engine} {name}"
            if name != "softmax":
                assert np.count_nonzero(distance) <= distance.size // 20, f"{engine} {name}"
        real = (inputs["x"] - float(weights["z5"])) * float(weights["s0"])
        powers = np.exp(real - real.max(-1, keepdims=True))
        quotient = np.rint(powers / powers.sum(-1, keepdims=True) / float(weights["s3"])) + limits.min
        np.testing.assert_array_equal(found["softmax"], np.minimum(quotient, limits.max))


class Samples(quantization.CalibrationDataReader):
    """Random images."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.samples: Iterator[dict[str, Array]] = iter(
            [{"x": random.standard_normal((1, 3, 9, 9)).astype(np.float32)} for _ in range(4)]
        )

    def get_next(self) -> Any:
        """Return the next image, None after the last."""
        return next(self.samples, None)


@pytest.mark.slow
def test_a_network_of_the_quantizer_is_that_of_onnx_runtime(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    weights = {
        "w": random.standard_normal((4, 3, 3, 3)) / 5,
        "v": random.standard_normal((4, 4, 3, 3)) / 6,
        "f": random.standard_normal((4, 5)),
        "g": random.standard_normal(5) / 9,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], name="first", pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Conv", ["b", "v"], ["c"], name="second", pads=[1] * 4),
        helper.make_node("Add", ["b", "c"], ["d"], name="add"),
        helper.make_node("GlobalAveragePool", ["d"], ["e"], name="pool"),
        helper.make_node("Flatten", ["e"], ["h"], name="flatten"),
        helper.make_node("Gemm", ["h", "f", "g"], ["y"], name="gemm"),
    ]
    x = random.standard_normal((1, 3, 9, 9)).astype(np.float32)
    constants = {name: array.astype(np.float32) for name, array in weights.items()}
    model = model_of(nodes, {"x": x}, constants, {"y": TensorProto.FLOAT})
    (tmp_path / "float.onnx").write_bytes(model.SerializeToString())
    quantizer.quantize_static(
        tmp_path / "float.onnx",
        tmp_path / "quantized.onnx",
        Samples(),
        quant_format=quantizer.QuantFormat.QOperator,
        activation_type=quantizer.QuantType.QUInt8,
        weight_type=quantizer.QuantType.QUInt8,
    )
    quantized = ModelProto.FromString((tmp_path / "quantized.onnx").read_bytes())
    made = {node.op_type for node in quantized.graph.node if node.domain == DOMAIN}
    assert made == {"QLinearAdd", "QLinearGlobalAveragePool", "QGemm"}
    due = by_runtime(quantized, {"x": x})["y"]
    quantum = np.diff(np.unique(due)).min()
    for engine, found in on_simulators(quantized, {"x": x}, tmp_path).items():
        assert np.abs(found["y"] - due).max() <= quantum, engine


@pytest.mark.parametrize(
    ("node", "dtype"),
    [
        (contributed("QLinearAdd", "x s z x s z s", "y"), None),
        (contributed("QLinearSoftmax", "x s z s z", "y", axis=1, opset=12), None),
        (contributed("QLinearAdd", "x s z x s z s z", "y"), "fp16"),
    ],
    ids=["no_zero_point", "coerced_softmax", "fp16"],
)
def test_what_is_not_known_is_refused(node: Any, dtype: str | None, tmp_path: Path) -> None:
    x = np.zeros(IMAGE, np.uint8)
    weights: dict[str, Array] = {"s": np.array(0.1, np.float32), "z": np.array(3, np.uint8)}
    path = tmp_path / "model.onnx"
    path.write_bytes(model_of([node], {"x": x}, weights, {"y": TensorProto.UINT8}).SerializeToString())
    with pytest.raises(UnsupportedOpError, match=node.op_type):
        t10.compile(path, "test-16", dtype=dtype)


@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("QLinearGlobalAveragePool", {}),
        ("QLinearAveragePool", {"kernel_shape": [2, 2]}),
    ],
)
@pytest.mark.parametrize(("scale", "made"), [(0.05, 0.03), (0.1, 0.1), (0.02, 0.04), (0.5, 0.25)])
def test_means_that_are_halves_are_rounded_as_onnx_runtime_does(
    scale: float, made: float, operator: str, attributes: dict[str, Any], channels_last: int
) -> None:
    random = np.random.default_rng(2)
    for kind, zero, moved in ((np.uint8, 128, 120), (np.int8, 3, -7)):
        limits = np.iinfo(kind)
        x = random.integers(limits.min, limits.max, (2, 8, 6, 8), kind, endpoint=True)
        node = contributed(operator, "x s z t m", "y", channels_last=channels_last, **attributes)
        weights = {"s": np.float32(scale), "t": np.float32(made), "z": kind(zero), "m": kind(moved)}
        given = {name: np.array(value) for name, value in weights.items()}
        model = model_of([node], {"x": x}, given, {"y": helper.np_dtype_to_tensor_dtype(x.dtype)})
        np.testing.assert_array_equal(
            computed(model, {"x": x})["y"].view(kind), by_runtime(model, {"x": x})["y"]
        )
