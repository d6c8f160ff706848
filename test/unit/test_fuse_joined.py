"""Products of a cache and what a step appends to it read the cache where it lies."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import t10
from t10.passes.fusion import split_joined

B, H, D = 2, 3, 8


def attention_step(n_past: int, n_new: int, dtype: int, queries: int = 1) -> onnx.ModelProto:
    """Return attention of a few queries over a cache of keys and values to which rows are appended."""
    n = n_past + n_new
    shapes = {"q": (B, H, queries, D), "mask": (B, 1, queries, n)}
    shapes |= dict.fromkeys(("past_k", "past_v"), (B, H, n_past, D)) | dict.fromkeys(
        ("k", "v"), (B, H, n_new, D)
    )
    results = {"y": (B, H, queries, D), "all_k": (B, H, n, D), "all_v": (B, H, n, D)}
    nodes = [
        helper.make_node("Concat", ["past_k", "k"], ["all_k"], axis=2),
        helper.make_node("Concat", ["past_v", "v"], ["all_v"], axis=2),
        helper.make_node("Transpose", ["all_k"], ["kt"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "kt"], ["s"], name="scores"),
        helper.make_node("Add", ["s", "mask"], ["masked"]),
        helper.make_node("Softmax", ["masked"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "all_v"], ["y"], name="values"),
    ]
    ports = [
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in each.items()]
        for each in (shapes, results)
    ]
    graph = helper.make_graph(nodes, "step", ports[0], ports[1])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("n_past", "n_new", "dtype", "queries"),
    [(15, 1, TensorProto.FLOAT16, 1), (16, 2, TensorProto.FLOAT, 2), (255, 1, TensorProto.FLOAT, 1)],
)
def test_caches_are_read_where_they_lie(
    n_past: int, n_new: int, dtype: int, queries: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_joined, "LEAST_BYTES", 0)
    model = attention_step(n_past, n_new, dtype, queries)
    path = tmp_path / "step.onnx"
    path.write_bytes(model.SerializeToString())
    executable = t10.compile(path, chip="test-16")
    rng = np.random.default_rng(0)
    kind = np.float32 if dtype == TensorProto.FLOAT else np.float16
    inputs = {each.name: rng.standard_normal(each.shape).astype(kind) for each in executable.inputs}
    found = executable.run(inputs)
    wide = {name: value.astype(np.float64) for name, value in inputs.items()}
    keys, values = (np.concatenate([wide[f"past_{x}"], wide[x]], axis=2) for x in "kv")
    scores = wide["q"] @ keys.swapaxes(2, 3) + wide["mask"]
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ values
    tolerance = 1e-5 if dtype == TensorProto.FLOAT else 4e-3
    np.testing.assert_allclose(found["y"], expected, atol=tolerance)
    np.testing.assert_array_equal(found["all_k"], np.concatenate([inputs["past_k"], inputs["k"]], axis=2))
    # Sums along what is joined are split for one row alone.
    read = {operand.name for spec in executable.plan.graph.operators for operand in spec.operands}
    wanted = {"past_k"} | ({"past_v"} if n_new == 1 else set[str]())
    assert wanted <= read


@pytest.mark.parametrize(("n_past", "is_little"), [(255, True), (63, False)])
def test_readers_compute_anew_what_is_little(
    n_past: int, is_little: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_joined, "LEAST_BYTES", 0)
    path = tmp_path / "step.onnx"
    path.write_bytes(attention_step(n_past, 1, TensorProto.FLOAT).SerializeToString())
    executable = t10.compile(path, chip="test-16")
    rows = [
        spec
        for spec in executable.plan.graph.operators
        if spec.combine == "none" and prod(spec.output.shape) == B * H
    ]
    assert len(rows) == (0 if is_little else 1)
