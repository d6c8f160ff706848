"""Quantised operators and networks: on every engine the integers of ONNX Runtime.

ONNX Runtime runs without its own fusions: these replace QDQ pairs by integer kernels, which round elsewhere. Sums in
f32 (of QDQ pairs with any scales) depend on their order, and so may the integer they round to: by one, no more.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.draw import commit, dealt, one_of_each
from support.engines import by_reference, by_runtime, on_every_engine, on_simulators, saturates
from support.quantized_models import IMAGE, KINDS, TOKENS, WIDTH, Kind, residual_network, transformer_block

import t10

Array = NDArray[Any]
Engines = dict[str, dict[str, Array]]
QUANTUM = 1
REFERENCE_OPSET = 21
"""Version of the operators of which the reference evaluator knows all."""
OF_RESIDUAL, OF_BLOCKS = (
    [[(kind, with_operators) for kind in KINDS] for with_operators in ways] for ways in dealt([(False, True)])
)
"""Ways to write a network: one of the two is run as QDQ pairs, the other with QLinear operators."""


def named(way: tuple[Kind, bool]) -> str:
    """Return a name for a test."""
    kind, with_operators = way
    return f"{kind}-{'qlinear' if with_operators else 'qdq'}"


def check(found: Engines, due: dict[str, Array], n_quanta: int) -> None:
    """Compare the integers of all engines."""
    for engine, outputs in found.items():
        for name, expected in due.items():
            assert outputs[name].dtype == expected.dtype
            distance = np.abs(outputs[name].astype(np.int64) - expected.astype(np.int64))
            assert distance.max() <= n_quanta, (
                f"{engine} {name}: {np.count_nonzero(distance)} of {distance.size}"
            )


def integers(kind: Any, *shape: int) -> Array:
    """Return numbers of the whole range of a type."""
    limits = np.iinfo(kind)
    return np.random.default_rng(len(shape)).integers(limits.min, limits.max, shape, kind, endpoint=True)


@pytest.mark.slow
def test_long_sums_and_halves_are_exact(tmp_path: Path) -> None:
    """Sums beyond 2^24 are no f32, and these scales give many quotients that end in a half."""
    a, b, x = integers(np.uint8, 24, 600), integers(np.int8, 600, 8), integers(np.uint8, 1, 32, 5, 5)
    c, d = integers(np.uint8, 64, 8), integers(np.int8, 8, 16)
    w = integers(np.int8, 6, 32, 3, 3)
    weights = {
        "b": b,
        "d": d,
        "w": w,
        "s": np.array(0.1, np.float32),
        "t": np.array(25, np.float32),
        "u": np.array(2.5, np.float32),
        "z": np.array(7, np.uint8),
        "m": np.array(11, np.uint8),
        "n": np.array(0, np.int8),
        "bias": np.arange(6, dtype=np.int32) * 20_000_000,
    }
    nodes = [
        helper.make_node("QLinearMatMul", ["a", "s", "z", "b", "s", "n", "t", "m"], ["p"]),
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "n", "t", "m"], ["q"], pads=[1, 1, 1, 1]),
        helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "n", "t", "m", "bias"], ["r"]),
        helper.make_node("QLinearMatMul", ["c", "s", "z", "d", "s", "n", "u", "m"], ["h"]),
        helper.make_node("MatMulInteger", ["a", "b", "z"], ["i"]),
        helper.make_node("MatMulInteger", ["c", "d", "z"], ["k"]),
        helper.make_node("ConvInteger", ["x", "w", "z"], ["j"]),
    ]
    u8, i32 = TensorProto.UINT8, TensorProto.INT32
    outputs = {"p": (u8, (24, 8)), "q": (u8, (1, 6, 5, 5)), "r": (u8, (1, 6, 3, 3)), "i": (i32, (24, 8))}
    outputs |= {"h": (u8, (64, 16)), "j": (i32, (1, 6, 3, 3)), "k": (i32, (64, 16))}
    graph = helper.make_graph(
        nodes,
        "g",
        [
            helper.make_tensor_value_info(name, u8, value.shape)
            for name, value in (("a", a), ("c", c), ("x", x))
        ],
        [helper.make_tensor_value_info(name, *kind) for name, kind in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    inputs = {"a": a, "c": c, "x": x}
    due, n_off = expected(model, inputs, with_operators=True)
    assert np.count_nonzero(due["k"] % 250 == 125), "nothing is near a half"
    assert all(is_spread(due[name]) for name in "hpq")
    found = on_simulators(model, inputs, tmp_path)
    check(found, {name: due[name] for name in "ijk"}, 0)
    check(found, due, n_off)


def is_spread(values: Array) -> bool:
    """Return whether a network says anything: most of its integers are not at the ends of their range."""
    limits = np.iinfo(values.dtype)
    return float(np.mean((values > limits.min) & (values < limits.max))) > 0.4 and len(np.unique(values)) > 8


def run(way: tuple[Kind, bool], model: Any, inputs: dict[str, Array], folder: Path) -> Engines:
    """Return what the simulators compute, and with QLinear operators the Poplar program."""
    return (on_every_engine if way[1] else on_simulators)(model, inputs, folder)


def expected(model: Any, inputs: dict[str, Array], *, with_operators: bool) -> tuple[dict[str, Array], int]:
    """Return the integers of ONNX Runtime, and by how much they may be off: not at all.

    Where its sums of uint8 times int8 are wrong, those of ONNX's reference evaluator, which rounds some quotients near
    a half elsewhere: by one.
    """
    if with_operators and saturates():
        return by_reference(model, inputs, REFERENCE_OPSET), QUANTUM
    return by_runtime(model, inputs), 0


def simulated(found: Engines) -> Engines:
    """Return what the simulators computed."""
    return {engine: outputs for engine, outputs in found.items() if engine != "poplar-host"}


@pytest.mark.slow
@pytest.mark.parametrize("way", one_of_each(OF_RESIDUAL), ids=named)
def test_residual_networks(way: tuple[Kind, bool], tmp_path: Path) -> None:
    kind, with_operators = way
    model = residual_network(kind, with_operators=with_operators)
    inputs = {"x": np.random.default_rng(5).standard_normal(IMAGE).astype(np.float32)}
    due, n_off = expected(model, inputs, with_operators=with_operators)
    assert all(is_spread(values) for values in list(due.values())[:2])
    found = run(way, model, inputs, tmp_path)
    check(found, due, QUANTUM)
    check(simulated(found), due, n_off if kind.is_exact else QUANTUM)


@pytest.mark.slow
@pytest.mark.parametrize("way", one_of_each(OF_BLOCKS, f"{commit()} blocks"), ids=named)
def test_transformer_blocks(way: tuple[Kind, bool], tmp_path: Path) -> None:
    kind, with_operators = way
    model = transformer_block(kind, with_operators=with_operators)
    inputs = {"x": np.random.default_rng(6).standard_normal((TOKENS, WIDTH)).astype(np.float32)}
    due, n_off = expected(model, inputs, with_operators=with_operators)
    assert all(is_spread(values) for values in due.values())
    found = run(way, model, inputs, tmp_path)
    check(found, due, QUANTUM)
    # Before the first exponential everything is exact.
    check(simulated(found), dict(list(due.items())[:2]), n_off if kind.is_exact else QUANTUM)


@pytest.mark.parametrize("kind", [TensorProto.INT16, TensorProto.UINT16])
def test_numbers_of_16_bits_are_outputs(kind: int, tmp_path: Path) -> None:
    node = helper.make_node("QuantizeLinear", ["x", "scale"], ["y"], name="narrow", output_dtype=kind)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [7])],
        [helper.make_tensor_value_info("y", kind, [7])],
        [numpy_helper.from_array(np.array(0.1, np.float32), "scale")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    x = np.array([-1e9, -4000, -0.15, 0, 0.25, 5000, 1e9], np.float32)
    found = t10.compile(path, chip="test-16").run({"x": x})["y"]
    np.testing.assert_array_equal(found, by_runtime(model, {"x": x})["y"], strict=True)
