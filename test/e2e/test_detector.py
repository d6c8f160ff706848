"""A detector with its suppression of boxes in the graph, bounded: numbers of ONNX Runtime on both simulators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.detector import SUPPRESSION, detector
from support.engines import by_runtime

import t10
from t10.backend import run_on_tiles


@pytest.mark.slow
def test_a_detector_finds_what_onnx_runtime_finds(tmp_path: Path) -> None:
    model = detector(size=16, most=1)
    path = tmp_path / "detector.onnx"
    path.write_bytes(model.SerializeToString())
    x = {"image": np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)}
    due = by_runtime(model, x)["detections"]
    assert len(due) == 3
    executable = t10.compile(path, "test-4", bounds={SUPPRESSION: 4}, program=True)
    for found in (executable.run(x), run_on_tiles(executable, x).outputs):
        assert found[f"{SUPPRESSION}.count"] == 3
        np.testing.assert_allclose(found["detections"][:3], due, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(found["detections"][3:], 0)
