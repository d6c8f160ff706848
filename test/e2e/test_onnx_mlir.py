"""What onnx-mlir really writes is compiled and computes what ONNX Runtime does on the source model, or is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from t10.opt.main import main as t10_opt

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "test" / "e2e" / "Inputs" / "onnx_mlir"


def test_every_text_is_equal_or_refused_as_stated() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "onnx_mlir.py", TEXTS, "--expect", TEXTS / "expected.txt"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "26 texts: " in done.stdout


@pytest.mark.parametrize(
    ("name", "first"),
    [("mlp_dynamo.ir", ["--t10-import=shape=batch=2"]), ("mixed_dynamo.basic", []), ("x_old_opset7.ir", [])],
)
def test_two_passes_lead_from_text_to_tiles(
    name: str, first: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = str(TEXTS / f"{name}.mlir")
    assert t10_opt([*first, "--t10-partition=chip=test-16", "--t10-lower-ipu", text]) == 0
    written = capsys.readouterr().out
    has_tiles, left = '"ipu.graph"' in written, re.search(r'"onnx\.\w+"\(', written)
    assert has_tiles
    assert left is None
