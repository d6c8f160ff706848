"""ResNet-18 in full size on all 1,472 cores: every core, every step, equal to ONNX Runtime."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.draw import drawn

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "resnet18.py"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", drawn(["float32", "float16"], 1))
def test_full_resnet18_equals_onnx_runtime(dtype: str) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--dtype", dtype], capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok" in done.stdout
    assert "1,472 cores" in done.stdout
