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
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


def agree(model: Any, x: Array) -> dict[str, Array]:
    """Compare with the reference evaluator; return the weights that are kept."""
    reference: Any = ReferenceEvaluator(model)
    (due,) = reference.run(None, {"x": x})
    found, kept = computed(model, x)
    np.testing.assert_allclose(found, due, rtol=1e-5, atol=1e-5)
    return kept


def computed(model: Any, x: Array) -> tuple[Array, dict[str, Array]]:
    """Return what the imported and fused model computes, interpreted, and the weights that are kept."""
    imported = import_proto(onnx.ModelProto.FromString(model.SerializeToString()), source="m")
    with imported.module.context:
        Fuse(orders="keep").apply(imported.module)
        return run_module(imported.module, {"x": x, **imported.weights})["y"], dict(imported.weights)


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
    assert sum(values.nbytes for name, values in kept.items() if name.endswith("w")) == (n > 32) * 8 * n


@pytest.mark.sampled(15)
@pytest.mark.parametrize("kind", ["int2", "uint2", "int4", "uint4"])
@pytest.mark.parametrize(
    ("scale", "options"),
    [
        ((), {}),
        ((24,), {"axis": 0}),
        ((40,), {"axis": 1}),
        ((3, 40), {"axis": 0, "block_size": 8}),
        ((24, 5), {"axis": 1, "block_size": 8}),
    ],
    ids=["one", "rows", "columns", "blocks_of_rows", "blocks_of_columns"],
)
@pytest.mark.parametrize("reader", ["MatMul", "Transpose", "Gemm"])
def test_weights_of_few_bits_share_bytes(
    kind: str, scale: tuple[int, ...], options: dict[str, Any], reader: str
) -> None:
    numbers, tensor = few_bits(kind, "w", (24, 40))
    zeros, tensor_of_zeros = few_bits(kind, "z", scale)
    factors = np.asarray(RANDOM.uniform(0.1, 1, scale), np.float32)
    nodes = [make("DequantizeLinear", ["w", "s", "z"], ["d"], **options), make("MatMul", ["x", "d"], ["y"])]
    if reader == "Transpose":
        nodes[1:] = [make("Transpose", ["d"], ["t"], perm=[1, 0]), make("MatMul", ["x", "t"], ["y"])]
    if reader == "Gemm":
        nodes[1] = make("Gemm", ["x", "d"], ["y"], transB=1)
    spread: list[Array] = [zeros, factors]
    for axis, size in ((0, 24), (1, 40)):
        if options.get("axis") == axis:
            extents = scale if len(scale) == 2 else tuple(-1 if dim == axis else 1 for dim in range(2))
            spread = [each.reshape(extents) for each in spread]
            spread = [np.repeat(each, size // each.shape[axis], axis) for each in spread]
    wide = (numbers - spread[0].astype(np.float32)) * spread[1]
    x = RANDOM.standard_normal((5, 24 if reader == "MatMul" else 40)).astype(np.float32)
    constants = {"w": tensor, "z": tensor_of_zeros, "s": factors}
    found, kept = computed(model_of(nodes, constants, x.shape), x)
    np.testing.assert_allclose(found, x @ (wide if reader == "MatMul" else wide.T), rtol=1e-5, atol=1e-4)
    assert [v.nbytes for name, v in kept.items() if name.endswith(".w")] == [
        numbers.size * int(kind[-1]) // 8
    ]


def few_bits(kind: str, name: str, shape: tuple[int, ...]) -> tuple[Array, Any]:
    """Return random integers of few bits, and the tensor of them."""
    bits = int(kind[-1])
    low = 0 if kind.startswith("u") else -(1 << (bits - 1))
    numbers = RANDOM.integers(low, low + (1 << bits), shape)
    return numbers, helper.make_tensor(
        name, getattr(TensorProto, kind.upper()), shape, numbers.ravel().tolist()
    )


@pytest.mark.parametrize("kind", ["int2", "uint4"])
def test_tables_of_few_bits_share_bytes(kind: str) -> None:
    numbers, tensor = few_bits(kind, "w", (24, 40))
    at = np.array([[3, 0, 23]])
    nodes = [
        make("Gather", ["w", "at"], ["g"]),
        make("DequantizeLinear", ["g", "s"], ["d"]),
        make("Add", ["x", "d"], ["y"]),
    ]
    x = RANDOM.standard_normal((3, 40)).astype(np.float32)
    constants = {"w": tensor, "s": np.array(0.5, np.float32), "at": at}
    found, kept = computed(model_of(nodes, constants, x.shape), x)
    np.testing.assert_array_equal(found, x + np.float32(0.5) * numbers[at].astype(np.float32))
    assert [v.nbytes for name, v in kept.items() if name.endswith(".w")] == [
        numbers.size * int(kind[-1]) // 8
    ]


@pytest.mark.parametrize("shape", [(24, 5), (23, 8)], ids=["columns", "rows"])
def test_neighbours_lie_along_an_axis_that_is_even(shape: tuple[int, int]) -> None:
    weights = RANDOM.integers(-8, 8, (*shape, 9)).astype(ml_dtypes.int4)
    nodes = [make("DequantizeLinear", ["w", "s"], ["d"]), make("MatMul", ["x", "d"], ["y"])]
    constants = {"w": weights, "s": np.array(0.5, np.float32)}
    kept = agree(model_of(nodes, constants, (3, shape[1])), np.ones((3, shape[1]), np.float32))
    assert sum(v.nbytes for name, v in kept.items() if name.endswith(".w")) == weights.size // 2


@pytest.mark.parametrize("is_transposed", [False, True])
def test_neighbours_are_columns_of_the_product(*, is_transposed: bool) -> None:
    """Rows along the sum stay rows, of which a weight has 24."""
    weights = RANDOM.integers(-8, 8, (40, 24) if is_transposed else (24, 40)).astype(ml_dtypes.int4)
    nodes = [make("DequantizeLinear", ["w", "s"], ["d"]), make("MatMul", ["x", "d"], ["y"])]
    if is_transposed:
        nodes[1:] = [make("Transpose", ["d"], ["t"]), make("MatMul", ["x", "t"], ["y"])]
    constants = {"w": weights, "s": np.array(0.5, np.float32)}
    kept = agree(model_of(nodes, constants, (3, 24)), np.ones((3, 24), np.float32))
    assert [v.shape for name, v in kept.items() if name.endswith(".w")] == [
        (20, 1, 24) if is_transposed else (24, 20, 1)
    ]


def test_weights_that_nothing_divides_take_a_byte_each() -> None:
    weights = RANDOM.integers(-8, 8, (23, 45)).astype(ml_dtypes.int4)
    nodes = [make("DequantizeLinear", ["w", "s"], ["d"]), make("MatMul", ["x", "d"], ["y"])]
    constants = {"w": weights, "s": np.array(0.5, np.float32)}
    kept = agree(model_of(nodes, constants, (3, 23)), np.ones((3, 23), np.float32))
    assert kept["w"].nbytes == weights.size


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
