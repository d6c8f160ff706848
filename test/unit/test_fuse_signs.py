"""Rotary embeddings: the smaller factor is negated instead of halves of heads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import t10
from t10.backend import run_on_tiles
from t10.passes.fusion import signs
from t10.reference import OnnxRuntime, load_onnx

HEADS, TOKENS, SIZE = 3, 5, 8


def rotary(folder: Path, dtype: int, factor: tuple[int, ...], *, is_paired: bool = False) -> Path:
    """Write y = concat(-b, a) * s for the halves a, b of q, and the same of k; or for its even and odd elements."""
    shape = [HEADS, TOKENS, SIZE]
    ints = {"axis": [2], "zero": [0], "half": [SIZE // 2], "end": [SIZE], "one": [1], "two": [2], "last": [3]}
    ints["shape"] = shape
    nodes: list[onnx.NodeProto] = []
    for name in ("q", "k"):
        first, second = (
            (["zero", "half"], ["half", "end"]) if not is_paired else (["zero", "end"], ["one", "end"])
        )
        step = "two" if is_paired else "one"
        nodes += [
            helper.make_node("Slice", [name, *first, "axis", step], [f"{name}_a"]),
            helper.make_node("Slice", [name, *second, "axis", step], [f"{name}_b"]),
            helper.make_node("Neg", [f"{name}_b"], [f"{name}_n"], name=f"{name}_neg"),
        ]
        if is_paired:
            nodes += [
                helper.make_node("Unsqueeze", [f"{name}_n", "last"], [f"{name}_n1"]),
                helper.make_node("Unsqueeze", [f"{name}_a", "last"], [f"{name}_a1"]),
                helper.make_node("Concat", [f"{name}_n1", f"{name}_a1"], [f"{name}_s"], axis=3),
                helper.make_node("Reshape", [f"{name}_s", "shape"], [f"{name}_c"]),
            ]
        else:
            nodes.append(helper.make_node("Concat", [f"{name}_n", f"{name}_a"], [f"{name}_c"], axis=2))
        nodes.append(helper.make_node("Mul", [f"{name}_c", "s"], [f"{name}_y"], name=f"{name}_mul"))
    graph = helper.make_graph(
        nodes,
        "rotary",
        [
            *(helper.make_tensor_value_info(name, dtype, shape) for name in ("q", "k")),
            helper.make_tensor_value_info("s", dtype, list(factor)),
        ],
        [helper.make_tensor_value_info(f"{name}_y", dtype, shape) for name in ("q", "k")],
        [numpy_helper.from_array(np.array(value, np.int64), name) for name, value in ints.items()],
    )
    path = folder / "rotary.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.mark.parametrize("is_paired", [False, True], ids=["halves", "pairs"])
@pytest.mark.parametrize("is_little", [False, True], ids=["much", "little"])
@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["f32", "f16"])
def test_rotary_embeddings_are_right_on_tiles(
    tmp_path: Path, dtype: int, is_little: bool, is_paired: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signs, "FEW_POINTS", HEADS * TOKENS * SIZE if is_little else 0)
    path = rotary(tmp_path, dtype, (TOKENS, SIZE), is_paired=is_paired)
    executable = t10.compile(path, chip="test-4", program=True)
    sizes = [np.prod(spec.output.shape) for spec in executable.plan.graph.operators]
    # A part of the factor, unless each has signs of its own, and what multiplies by it.
    parts = [] if is_little or is_paired else [TOKENS * SIZE // 2]
    assert sorted(sizes) == [*parts, *[HEADS * TOKENS * SIZE] * 2]
    kind = np.float32 if dtype == TensorProto.FLOAT else np.float16
    rng = np.random.default_rng(0)
    inputs = {each.name: rng.standard_normal(each.shape).astype(kind) for each in executable.inputs}
    inputs["q"][0, 0] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-7, -1e-7, 1.0]
    inputs["s"][0, :4] = [1.0, -1.0, 0.5, 2.0]
    expected = OnnxRuntime(load_onnx(path), path).outputs(inputs)
    for found in (executable.run(inputs), run_on_tiles(executable, inputs).outputs):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value.astype(kind))
            is_number = ~np.isnan(value)
            np.testing.assert_array_equal(np.signbit(found[name])[is_number], np.signbit(value)[is_number])


def test_signs_of_weights_are_moved_once(tmp_path: Path) -> None:
    """Each reader would bring a weight that several read to its cores."""
    path = rotary(tmp_path, TensorProto.FLOAT, (TOKENS, SIZE))
    model = onnx.ModelProto.FromString(path.read_bytes())
    kept = [given for given in model.graph.input if given.name != "s"]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    model.graph.initializer.append(numpy_helper.from_array(np.ones((TOKENS, SIZE), np.float32), "s"))
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, chip="test-4")
    assert len(executable.plan.graph.operators) == 3


def test_large_factors_are_left_alone(tmp_path: Path) -> None:
    executable = t10.compile(rotary(tmp_path, TensorProto.FLOAT, (HEADS, TOKENS, SIZE)), chip="test-4")
    names = {spec.name for spec in executable.plan.graph.operators}
    assert {"q_neg", "k_neg"} <= names
