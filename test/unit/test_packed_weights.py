"""Weights of few bits, of float8 and of int32 are widened when a model is read, and stand for what ONNX says."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support.linalg_numpy import run_module

from t10.frontend.importer import import_proto
from t10.frontend.packed_weights import unpacked
from t10.passes.fuse import Fuse

Array = NDArray[Any]
RANDOM = np.random.default_rng(4)
make = helper.make_node


def model_of(nodes: list[Any], constants: dict[str, Any], shape: tuple[int, ...]) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            value if isinstance(value, TensorProto) else numpy_helper.from_array(value, name)
            for name, value in constants.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)


def agree(model: Any, x: Array) -> dict[str, Array]:
    """Compare with the reference evaluator; return the weights that are kept."""
    reference: Any = ReferenceEvaluator(model)
    (due,) = reference.run(None, {"x": x})
    imported = import_proto(onnx.ModelProto.FromString(model.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        found = run_module(imported.module, {"x": x, **imported.weights})["y"]
    np.testing.assert_allclose(found, due, rtol=1e-5, atol=1e-5)
    return dict(imported.weights)


@pytest.mark.parametrize("n", [3, 40], ids=["constant", "weight"])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
def test_weights_of_four_bits(kind: str, n: int) -> None:
    limits = (-8, 8) if kind == "int4" else (0, 16)
    weights = RANDOM.integers(*limits, (16, n)).astype(getattr(ml_dtypes, kind))
    zeros = RANDOM.integers(*limits, (2, n)).astype(getattr(ml_dtypes, kind))
    constants = {"w": weights, "z": zeros, "s": RANDOM.uniform(0.1, 1, (2, n)).astype(np.float32)}
    nodes = [
        make("DequantizeLinear", ["w", "s", "z"], ["d"], axis=0, block_size=8),
        make("MatMul", ["x", "d"], ["y"]),
    ]
    kept = agree(model_of(nodes, constants, (5, 16)), RANDOM.standard_normal((5, 16)).astype(np.float32))
    assert all(values.dtype == np.int8 for name, values in kept.items() if name == "w")


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_weights_of_float8(kind: str) -> None:
    weights = RANDOM.standard_normal((16, 8)).astype(np.float32).astype(getattr(ml_dtypes, kind))
    constants = {"w": weights, "s": np.array(0.5, np.float32)}
    nodes = [make("DequantizeLinear", ["w", "s"], ["d"]), make("MatMul", ["x", "d"], ["y"])]
    kept = agree(model_of(nodes, constants, (5, 16)), RANDOM.standard_normal((5, 16)).astype(np.float32))
    np.testing.assert_array_equal(kept["w"].astype(np.float32), weights.astype(np.float32))
    assert kept["w"].dtype == np.float16


@pytest.mark.parametrize("rows", [(), (24,)], ids=["one_scale", "scales"])
@pytest.mark.parametrize("has_zero", [False, True])
def test_biases_are_kept_as_what_they_stand_for(rows: tuple[int, ...], has_zero: bool) -> None:
    constants: dict[str, Any] = {
        "b": RANDOM.integers(-90000, 90000, 24).astype(np.int32),
        "s": RANDOM.uniform(1e-5, 1e-4, rows).astype(np.float32),
        "z": np.zeros(rows, np.int32),
    }
    inputs = ["b", "s", "z"] if has_zero else ["b", "s"]
    nodes = [make("DequantizeLinear", inputs, ["d"], axis=0), make("Add", ["x", "d"], ["y"])]
    kept = agree(model_of(nodes, constants, (2, 24)), RANDOM.standard_normal((2, 24)).astype(np.float32))
    assert [values.dtype for values in kept.values()] == [np.float32]


def test_a_bias_with_a_zero_point_is_computed() -> None:
    constants: dict[str, Any] = {
        "b": RANDOM.integers(-900, 900, 600).astype(np.int32),
        "s": np.array(0.01, np.float32),
        "z": np.array(7, np.int32),
    }
    nodes = [make("DequantizeLinear", ["b", "s", "z"], ["d"]), make("Add", ["x", "d"], ["y"])]
    kept = agree(model_of(nodes, constants, (2, 600)), RANDOM.standard_normal((2, 600)).astype(np.float32))
    assert kept["b"].dtype == np.int32


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_the_lowest_bits_of_a_byte_are_its_first_number(bits: int) -> None:
    numbers = RANDOM.integers(0, 1 << bits, (3, 16)).astype(np.uint8)
    per_byte = 8 // bits
    parts = numbers.reshape(3, -1, per_byte).astype(int)
    packed = sum(parts[..., i] << (i * bits) for i in range(per_byte))
    np.testing.assert_array_equal(unpacked(np.asarray(packed, np.uint8), bits, 13), numbers[:, :13])
