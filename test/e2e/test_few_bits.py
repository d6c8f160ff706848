"""Weights of four bits fit where those of a byte do not: a network of packed products, on all engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.engines import by_runtime, on_every_engine

import t10
from t10.errors import InfeasiblePlanError
from t10.frontend import few_bits

CHIP = "test-4:sram_bytes=131072"
N, BLOCK, LAYERS = 256, 32, 5


def network() -> Any:
    """Return products with packed weights, one after another."""
    random = np.random.default_rng(3)
    stored: list[Any] = []
    nodes: list[Any] = []
    for layer in range(LAYERS):
        weights = random.integers(0, 256, (N, N // BLOCK, BLOCK // 2)).astype(np.uint8)
        scales = random.uniform(0.002, 0.02, N * N // BLOCK).astype(np.float16)
        stored += [
            numpy_helper.from_array(weights, f"w{layer}"),
            numpy_helper.from_array(scales, f"s{layer}"),
        ]
        inputs = [f"x{layer}", f"w{layer}", f"s{layer}"]
        attributes: dict[str, Any] = {"K": N, "N": N, "bits": 4, "block_size": BLOCK}
        nodes.append(
            helper.make_node("MatMulNBits", inputs, [f"x{layer + 1}"], domain="com.microsoft", **attributes)
        )
    ends = [helper.make_tensor_value_info(f"x{layer}", TensorProto.FLOAT16, (1, N)) for layer in (0, LAYERS)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.slow
def test_a_network_fits_with_packed_weights_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, end = network(), f"x{LAYERS}"
    x = {"x0": np.random.default_rng(5).standard_normal((1, N)).astype(np.float16)}
    due = by_runtime(model, x)[end].astype(np.float32)
    for engine, found in on_every_engine(model, x, tmp_path, CHIP).items():
        error = np.abs(found[end].astype(np.float32) - due).max()
        assert error < 5e-3 * np.abs(due).max(), engine
    monkeypatch.setattr(few_bits, "OPSET", 99)  # a number per byte
    with pytest.raises(InfeasiblePlanError):
        t10.compile(tmp_path / "model.onnx", CHIP)
