"""Integers beyond 32 bits in whole models: all engines compute what ONNX's reference evaluator does, bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import t10
from t10.backend import lowered, run_on_host, run_on_tiles, write_program

SHAPE = (4, 9)
EXTREMES = (0, 1, -1, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1, -(2**63))
I64, FLOAT = TensorProto.INT64, TensorProto.FLOAT


def wide(seed: int) -> NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    values = np.concatenate([np.array(EXTREMES, np.int64), rng.integers(-(2**63), 2**63, 26)])
    return rng.permutation(values).reshape(SHAPE)


def model(folder: Path) -> Path:
    """One model of many operators: each reads `a` and `b`, and gives an output of its own name."""
    nodes = [helper.make_node(op, ["a", "b"], [op]) for op in ("Add", "Mul", "Div", "Max", "Mod", "Less")]
    nodes += [helper.make_node(op, ["a"], [op]) for op in ("Neg", "Abs", "Sign")]
    nodes += [helper.make_node("ReduceMax", ["a"], ["ReduceMax"], keepdims=0),
              helper.make_node("ArgMax", ["a"], ["ArgMax"], axis=1, keepdims=0),
              helper.make_node("CumSum", ["a", "one"], ["CumSum"]),
              helper.make_node("Cast", ["a"], ["Cast"], to=FLOAT),
              helper.make_node("Clip", ["a", "low", "high"], ["Clip"])]  # fmt: skip
    kinds = {"Less": TensorProto.BOOL, "Cast": FLOAT}
    shapes = {"ReduceMax": (), "ArgMax": (SHAPE[0],)}
    outputs = [
        helper.make_tensor_value_info(name, kinds.get(name, I64), shapes.get(name, SHAPE))
        for name in (node.output[0] for node in nodes)
    ]
    inputs = [helper.make_tensor_value_info(name, I64, SHAPE) for name in ("a", "b")]
    scalars = [("one", 1), ("low", -(2**40)), ("high", 2**35)]
    constants = [helper.make_tensor(name, I64, [], [value]) for name, value in scalars]
    graph = helper.make_graph(nodes, "wide", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (folder / "wide.onnx").write_bytes(made.SerializeToString())
    return folder / "wide.onnx"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("engine", ["plan", "iss", "poplar-host"])
def test_integers_beyond_a_word_are_exact(engine: str, tmp_path: Path) -> None:
    path = model(tmp_path)
    a, b = wide(1), wide(2)
    b = np.where((b == 0) | (b == -1), 3, b)
    given = {"a": a, "b": b}
    reference: Any = ReferenceEvaluator(str(path))
    due = dict(zip(reference.output_names, reference.run(None, given), strict=True))
    # The reference divides in floats.
    quotient = (a - np.fmod(a, b)) // b
    executable = t10.compile(path, chip="test-16")
    if engine == "plan":
        found = executable.run(given)
    elif engine == "iss":
        found = run_on_tiles(executable, given).outputs
    else:
        write_program(executable, lowered(executable), tmp_path / "program")
        found = run_on_host(executable, tmp_path / "program", given)
    for name, each in due.items():
        np.testing.assert_array_equal(found[name], quotient if name == "Div" else each, err_msg=name)


@pytest.mark.parametrize("kind", [TensorProto.INT8, TensorProto.INT32])
def test_negation_of_the_least_integer_wraps(kind: int, tmp_path: Path) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    least = np.iinfo(dtype).min
    x = np.array([least, least + 1, -1, 0, 1, 7], dtype)
    io = [helper.make_tensor_value_info(name, kind, x.shape) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "neg", io[:1], io[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "neg.onnx").write_bytes(made.SerializeToString())
    executable = t10.compile(tmp_path / "neg.onnx", chip="test-4")
    due = np.array([least, -(least + 1), 1, 0, -1, -7], dtype)
    np.testing.assert_array_equal(executable.run({"x": x})["y"], due)
    np.testing.assert_array_equal(run_on_tiles(executable, {"x": x}).outputs["y"], due)


def test_a_mask_is_converted_once_not_by_every_reader(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Cast", ["mask"], ["kept"], to=FLOAT),
        helper.make_node("Add", ["x", "kept"], ["sum"]),
        helper.make_node("Exp", ["sum"], ["y"]),
    ]
    mask = helper.make_tensor_value_info("mask", I64, [1, 1, 12])
    x, y = (helper.make_tensor_value_info(name, FLOAT, [2, 12, 12]) for name in ("x", "y"))
    made = helper.make_model(
        helper.make_graph(nodes, "mask", [mask, x], [y]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    (tmp_path / "mask.onnx").write_bytes(made.SerializeToString())
    graph = t10.compile(tmp_path / "mask.onnx", chip="test-4").plan.graph
    converting = [
        spec for spec in graph.operators if any(operand.dtype == "i64" for operand in spec.operands)
    ]
    assert [spec.extents for spec in converting] == [(12,)]
