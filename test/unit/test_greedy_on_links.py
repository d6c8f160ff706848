"""Algorithm 1 on chips with links."""

from __future__ import annotations

from pathlib import Path

from onnx import TensorProto, helper
from support.models import save, weights

from t10.chip import load_chip
from t10.chip.levels import Level
from t10.driver import compile
from t10.plan.options import PlanOptions
from t10.plan.schedule import sum_of_cycles


def test_algorithm_1_counts_what_passes_links(tmp_path: Path) -> None:
    """Plans of a product take about alike, and what arrives under them passes links or does not."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    path = save(
        tmp_path / "m.onnx",
        nodes,
        {"x": (TensorProto.FLOAT, [48, 192])},
        {"y": (TensorProto.FLOAT, [48, 512])},
        w=weights(0, 192, 512, dtype="float32"),
    )
    core = Level(name="core", count=18)
    ring = Level(name="chip", count=3, topology="ring", link_bytes_per_cycle=0.25, latency_cycles=170)
    changes = {"name": "slow-ring", "n_cores": 54, "levels": (core, ring)}
    chip = load_chip("test-64").model_copy(update=changes)
    greedy, exact = (
        sum_of_cycles(compile(path, chip, options=PlanOptions(reconcile=method)).plan)
        for method in ("greedy", "exact")
    )
    assert greedy <= 1.2 * exact
