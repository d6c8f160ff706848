"""Constants made of packed weights: each reader gets those of its own attributes, under names that nothing has."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.contributed import DOMAIN, Array, computed, model_of
from support.engines import by_runtime

from t10.errors import InputError

RANDOM = np.random.default_rng(6)
make = helper.make_node


def agree(
    nodes: Sequence[Any], inputs: Mapping[str, Array], constants: Mapping[str, Array], made: str
) -> None:
    """Compare the outputs of nodes with ONNX Runtime's."""
    known = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, known(x.dtype), x.shape) for name, x in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in made.split()],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    due, found = by_runtime(model, dict(inputs)), computed(model, inputs)
    for name in made.split():
        np.testing.assert_allclose(found[name], due[name], rtol=2e-3, atol=2e-3, err_msg=name)


def product(made: str, *more: str, rows: int = 16, block: int = 16, bits: int = 4) -> Any:
    attributes: dict[str, Any] = {"K": rows, "N": 8, "bits": bits, "block_size": block}
    return make("MatMulNBits", ["x", "w", *more], [made], domain=DOMAIN, name=f"node_{made}", **attributes)


def drawn_bytes(*shape: int) -> Array:
    return RANDOM.integers(0, 256, shape).astype(np.uint8)


def floats(*shape: int) -> Array:
    return RANDOM.uniform(0.1, 1, shape).astype(np.float32)


@pytest.mark.parametrize(
    "nodes",
    [
        [product("a", "s", block=32), product("b", "s", "z", block=32)],
        [product("a", "s", "z", block=32), product("b", "s", "y", block=32)],
        [product("a", "s", block=32), product("b", "s", bits=8)],
    ],
    ids=["with_and_without_zeros", "other_zeros", "other_bits"],
)
def test_products_may_share_packed_weights(nodes: list[Any]) -> None:
    constants = {"w": drawn_bytes(8, 1, 16), "s": floats(8), "z": drawn_bytes(8), "y": drawn_bytes(8)}
    agree(nodes, {"x": floats(3, 16)}, constants, "a b")


def test_tables_may_share_packed_rows() -> None:
    attributes: dict[str, Any] = {
        "domain": DOMAIN,
        "gather_axis": 0,
        "quantize_axis": 1,
        "block_size": 16,
        "bits": 4,
    }
    nodes = [
        make("GatherBlockQuantized", ["w", "x", "s"], ["a"], name="a", **attributes),
        make("GatherBlockQuantized", ["w", "x", "s", "z"], ["b"], name="b", **attributes),
    ]
    constants = {"w": drawn_bytes(9, 16), "s": floats(9, 2), "z": drawn_bytes(9, 1)}
    agree(nodes, {"x": np.array([[4, 0, 8]])}, constants, "a b")


def test_integers_may_be_scaled_along_one_axis_and_another() -> None:
    nodes = [make("DequantizeLinear", ["w", "s"], [f"d{axis}"], axis=axis) for axis in (0, 1)]
    nodes += [make("Add", ["x", f"d{axis}"], [made]) for axis, made in ((0, "a"), (1, "b"))]
    constants = {"w": RANDOM.integers(-99, 99, (5, 5)).astype(np.int32), "s": floats(5)}
    agree(nodes, {"x": floats(5, 5)}, constants, "a b")


@pytest.mark.parametrize("name", ["w.8x16", "s.by_8", "a.weights", "a.product", "node_a.weights"])
@pytest.mark.parametrize("is_constant", [False, True], ids=["value", "constant"])
def test_names_of_what_is_made_are_no_names_of_the_model(name: str, is_constant: bool) -> None:
    nodes = [product("a", "s", "", "", "c", block=32), make("Add", ["a", name], ["b"])]
    constants = {"w": drawn_bytes(8, 1, 16), "s": floats(8), "c": floats(8)}
    if is_constant:
        constants[name] = floats(8)
    else:
        nodes.insert(1, make("Neg", ["a"], [name]))
    agree(nodes, {"x": floats(3, 16)}, constants, "b")


def test_names_that_rules_make_are_no_names_of_the_model() -> None:
    node = make("BiasGelu", ["x", "c"], ["a"], domain=DOMAIN, name="a")
    nodes = [node, *(make("Neg", ["a"], [f"a.{word}.1"]) for word in ("add", "gelu", "constant"))]
    nodes.append(make("Sum", [name for node in nodes for name in node.output], ["b"]))
    agree(nodes, {"x": floats(3, 16)}, {"c": floats(16)}, "b")


@pytest.mark.parametrize(
    ("attributes", "shapes", "message"),
    [
        (
            {},
            {"s": (5,)},
            "reads 5 elements of scales 's' (expected 8 of K=16, N=8, bits=4 and block_size=16",
        ),
        ({"K": 1 << 40, "N": 1 << 40}, {}, "reads 64 elements of weights 'w' (expected"),
        ({"K": 16.0, "N": "a"}, {}, "attribute K of MatMulNBits is of type FLOAT (expected INT)"),
        ({"block_size": 3}, {}, "block_size of MatMulNBits is 3 (expected a power of two of at least 16)"),
        ({"N": 0}, {}, "N of MatMulNBits is 0 (expected at least 1)"),
        ({}, {"z": (9,)}, "reads 9 elements of zero points 'z' (expected 8"),
    ],
)
def test_products_that_make_no_sense_are_refused(
    attributes: dict[str, Any], shapes: dict[str, tuple[int, ...]], message: str
) -> None:
    stated: dict[str, Any] = {"K": 16, "N": 8, "bits": 4, "block_size": 16, **attributes}
    node = make("MatMulNBits", ["x", "w", "s", "z"], ["a"], domain=DOMAIN, name="product", **stated)
    constants = {"w": drawn_bytes(8, 1, 8), "s": floats(8), "z": drawn_bytes(8)}
    for name, shape in shapes.items():
        constants[name] = np.resize(constants[name], shape)
    refused(node, {"x": floats(3, 16)}, constants, message)


@pytest.mark.parametrize(
    ("block", "n_scales", "message"),
    [
        (0, 2, "block_size of GatherBlockQuantized is 0 (expected a power of two of at least 16)"),
        (16, 3, "scales 's' of shape [9, 3] (expected [9, 2] of bits=4 and block_size=16)"),
    ],
)
def test_tables_that_make_no_sense_are_refused(block: int, n_scales: int, message: str) -> None:
    attributes: dict[str, Any] = {"block_size": block, "bits": 4}
    node = make("GatherBlockQuantized", ["w", "x", "s"], ["a"], domain=DOMAIN, name="product", **attributes)
    constants = {"w": drawn_bytes(9, 16), "s": floats(9, n_scales)}
    refused(node, {"x": np.array([[4, 0, 8]])}, constants, message)


def refused(node: Any, inputs: Mapping[str, Array], constants: Mapping[str, Array], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        computed(model_of(node, inputs, {"a": TensorProto.FLOAT}, constants, opset=21), inputs)
    assert caught.value.operator == "product"
