"""DynamicQuantizeLSTM, as `quantize_dynamic` writes LSTMs: what ONNX Runtime computes in one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from support.contributed import DOMAIN, SEEDS, Array, Drawn, computed, model_of
from support.engines import by_runtime, saturates

from t10.errors import UnsupportedOpError
from t10.frontend.importer import import_model, import_proto

_onnx: Any = onnx
quantizer: Any = quantization  # some of its functions are typed in part only
_INPUTS = ["x", "w", "r", "b", "lengths", "h", "c", "p", "ws", "wz", "rs", "rz"]


def _weights(
    draw: Drawn, n_directions: int, rows: int, columns: int, name: str, kind: Any = np.uint8
) -> dict[str, Array]:
    """Return integers, and a scale and a zero point of each direction or of each of its columns."""
    limits, of = np.iinfo(kind), (n_directions, columns) if draw.coin() else (n_directions,)
    values = draw.random.integers(limits.min, limits.max, (n_directions, rows, columns), kind, endpoint=True)
    zero = np.full(of, draw.random.integers(100, 130) if kind == np.uint8 else 0, kind)
    return {name: values, f"{name}s": (0.01 * np.abs(draw.array(*of)) + 1e-3), f"{name}z": zero}


@pytest.mark.parametrize("seed", SEEDS)
def test_quantised_lstm(seed: int) -> None:
    draw = Drawn(seed)
    steps, batch, width, hidden = draw.extent(1, 4), draw.extent(1, 3), draw.extent(1, 7), draw.extent(1, 5)
    direction = draw.choice("forward", "reverse", "bidirectional")
    n = 2 if direction == "bidirectional" else 1
    inputs = {"x": draw.array(steps, batch, width)}
    kind = np.uint8 if saturates() or draw.coin() else np.int8
    constants = _weights(draw, n, width, 4 * hidden, "w", kind)
    constants |= _weights(draw, n, hidden, 4 * hidden, "r", kind)
    if draw.coin():
        constants["b"] = draw.array(n, 8 * hidden)
    if draw.coin():
        inputs |= {"h": draw.array(n, batch, hidden), "c": draw.array(n, batch, hidden)}
    if batch == 1 and draw.coin():
        inputs["lengths"] = draw.random.integers(1, steps + 1, batch).astype(np.int32)
    if draw.coin():
        constants["p"] = draw.array(n, 3 * hidden)
    names = [name if name in inputs or name in constants else "" for name in _INPUTS]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        names,
        ["y", "yh", "yc"],
        domain=DOMAIN,
        hidden_size=hidden,
        direction=direction,
    )
    model = model_of(node, inputs, dict.fromkeys(node.output, TensorProto.FLOAT), constants)
    due, found = by_runtime(model, inputs), computed(model, inputs)
    for name in node.output:
        np.testing.assert_allclose(found[name], due[name], rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize("what", ["half", "lengths"])
def test_what_is_not_known_of_quantised_lstms_is_refused(what: str) -> None:
    draw = Drawn(1)
    inputs = {"x": draw.array(2, 2, 3)} | ({"lengths": np.ones(2, np.int32)} if what == "lengths" else {})
    constants = _weights(draw, 1, 3, 8, "w") | _weights(draw, 1, 2, 8, "r")
    names = [name if name in inputs or name in constants else "" for name in _INPUTS]
    node = helper.make_node("DynamicQuantizeLSTM", names, ["y"], domain=DOMAIN, hidden_size=2)
    model = model_of(node, inputs, {"y": TensorProto.FLOAT}, constants)
    with pytest.raises(UnsupportedOpError, match="lengths of several sequences"):
        import_proto(model, source="m", dtype="fp16" if what == "half" else None)


def test_a_model_that_is_quantised_dynamically_is_read(tmp_path: Path) -> None:
    draw, value = Drawn(2), helper.make_tensor_value_info
    weights = {"w": draw.array(1, 16, 3), "r": draw.array(1, 16, 4), "m": draw.array(4, 5)}
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r"], ["", "h"], hidden_size=4),
        helper.make_node("MatMul", ["h", "m"], ["y"]),
    ]
    ends = [value("x", TensorProto.FLOAT, [2, 1, 3])], [value("y", TensorProto.FLOAT, [1, 1, 5])]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", *ends, tensors)
    plain, quantised = tmp_path / "plain.onnx", tmp_path / "quantised.onnx"
    _onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), plain)
    quantizer.quantize_dynamic(plain, quantised)
    assert "DynamicQuantizeLSTM" in {node.op_type for node in _onnx.load(quantised).graph.node}
    assert import_model(quantised).output_names == ("y",)
