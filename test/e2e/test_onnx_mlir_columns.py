"""A network whose convolutions are columns, as onnx-mlir's main branch writes them, costs what it did with 0.4.2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.onnx_mlir_columns import as_columns

import t10
from t10.random_inputs import random_inputs

TEXT = Path(__file__).parent / "Inputs" / "onnx_mlir" / "unet_dynamo.ir.mlir"


@pytest.mark.slow
def test_columns_cost_no_more_than_convolutions(tmp_path: Path) -> None:
    text, n_apart = as_columns(TEXT.read_text())
    assert n_apart == 3
    file = tmp_path / "unet.onnx.mlir"
    file.write_text(text)
    before, after = (t10.compile(path, "test-16") for path in (TEXT, file))
    assert [op.kind for op in after.plan.graph.operators] == [op.kind for op in before.plan.graph.operators]
    assert after.plan.optimality == before.plan.optimality
    inputs = random_inputs(before.plan.graph, seed=0)
    for name, wanted in before.run(inputs).items():
        np.testing.assert_array_equal(after.run(inputs)[name], wanted)
