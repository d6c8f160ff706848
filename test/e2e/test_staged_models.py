"""A language model over four chips: executed stage by stage, proved, and compared with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled.transformers import llama2_whole

from t10.cli.stages import prove_stages
from t10.plan.options import PlanOptions
from t10.random_inputs import random_inputs
from t10.reference import OnnxRuntime, compare, load_onnx
from t10.staged import compile_stages

LAYERS = 4
NEAR = PlanOptions(gap=0.3)
"""A cut within 30 % of the best is found sooner."""


@pytest.mark.slow
def test_four_layers_over_four_chips(tmp_path: Path) -> None:
    model = tmp_path / "llama.onnx"
    model.write_bytes(llama2_whole("float32").model().SerializeToString(deterministic=True))
    staged = compile_stages(model, "test-4x16", stages=4, options=NEAR)
    prove_stages(staged, lambda name, done, total: None)
    inputs = random_inputs(staged.graph, 1)
    result = staged.execute(inputs)
    reference = OnnxRuntime(load_onnx(model), model, {}).outputs(inputs)
    compared = compare(result.outputs, reference, 1e-4)
    assert len(compared) == 1 + 2 * LAYERS
    assert all(each.is_within for each in compared)
    assert result.cycles == staged.staged.latency_cycles
    stages = staged.staged.stages
    assert [stage.group for stage in stages] == [0, 1, 2, 3]
    # What goes on is little: a token's state.
    assert all(sum(each.n_bytes for each in stage.sends) < 2048 for stage in stages)
