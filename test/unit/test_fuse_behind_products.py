"""What follows a product point by point belongs to it where a sum alone reads that; before a norm it stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from support.models import save, weights

import t10
from t10.reference import OnnxRuntime, load_onnx

HALF = TensorProto.FLOAT16


def operators(executable: t10.Executable) -> list[tuple[str, str, int]]:
    graph = executable.plan.graph
    return [(spec.kind, spec.output.dtype, len(spec.epilogue_inputs)) for spec in graph.operators]


def check(path: Path, inputs: dict[str, Any]) -> t10.Executable:
    executable = t10.compile(path, chip="test-16", partials="f16")
    expected = OnnxRuntime(load_onnx(path), path).outputs(inputs)["y"]
    np.testing.assert_allclose(executable.run(inputs)["y"], expected, rtol=5e-3, atol=5e-3)
    return executable


def test_a_mean_takes_in_nothing_that_follows_a_convolution(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], name="conv", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c", "s"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["y"], name="mean", axes=[2, 3]),
    ]
    inputs = {"x": weights(2, 1, 16, 8, 8, dtype="float16"), "s": weights(3, 1, 32, 8, 8, dtype="float16")}
    path = save(
        tmp_path / "m.onnx", nodes, {name: (HALF, list(x.shape)) for name, x in inputs.items()},
        {"y": (HALF, [1, 32, 1, 1])}, w=weights(0, 32, 16, 3, 3, dtype="float16"), b=weights(1, 32, dtype="float16"),
    )  # fmt: skip
    found = operators(check(path, inputs))
    # Its bias and what is added to it.
    assert found[0] == ("convolution", "f16", 2)
    assert [n for *_, n in found[1:]] == [0]


def test_a_residual_that_a_norm_reads_stays_an_operator(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Add", ["p", "s"], ["a"], name="residual"),
        helper.make_node("Mul", ["a", "a"], ["q"]),
        helper.make_node("ReduceMean", ["q"], ["m"], name="mean", axes=[1]),
        helper.make_node("Div", ["a", "m"], ["y"], name="norm"),
    ]
    inputs = {"x": weights(2, 4, 64, dtype="float16"), "s": weights(3, 4, 64, dtype="float16")}
    path = save(
        tmp_path / "m.onnx", nodes, {name: (HALF, list(x.shape)) for name, x in inputs.items()},
        {"y": (HALF, [4, 64])}, w=weights(0, 64, 64, dtype="float16"),
    )  # fmt: skip
    found = operators(check(path, inputs))
    assert [(kind, n) for kind, _, n in found][:2] == [("contraction", 0), ("elementwise", 0)]
