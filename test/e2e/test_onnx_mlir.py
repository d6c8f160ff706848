"""What onnx-mlir really writes is compiled and computes what ONNX Runtime does on the source model, or is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import onnx_mlir
import pytest
from support.draw import one_of_each

from t10.opt.main import main as t10_opt

ROOT = Path(__file__).resolve().parents[2]
TEXTS = ROOT / "test" / "e2e" / "Inputs" / "onnx_mlir"


EXPECTED = TEXTS / "expected.txt"
SOURCES = sorted(TEXTS.glob("*.onnx"))
FORMS = [[path.name for path in sorted(TEXTS.glob(f"{source.stem}.*.mlir"))] for source in SOURCES]
"""What onnx-mlir wrote for every model: --EmitONNXBasic, --EmitONNXIR."""


def test_every_text_that_is_listed_is_there() -> None:
    names = [name.removesuffix(".mlir") for forms in FORMS for name in forms]
    assert len(names) == 26
    assert set(onnx_mlir.expectations(EXPECTED)) <= set(names)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each(FORMS))
def test_every_model_is_equal_or_refused_as_stated(name: str) -> None:
    row = onnx_mlir.measure(TEXTS / name, Namespace(extent=2, chips="test-16,test-64,ipu-mk2"))
    assert onnx_mlir.judged(row, onnx_mlir.expectations(EXPECTED), is_listed=True).is_expected, row


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("only", "code"), [("x_loop_if", 0), ("x_custom_op", 1)])
def test_the_tool_says_whether_all_is_as_expected(only: str, code: int, tmp_path: Path) -> None:
    expected = tmp_path / "expected.txt"
    expected.write_text("".join(line for line in EXPECTED.open() if not line.startswith("x_custom_op")))
    tool = [sys.executable, ROOT / "benchmarks" / "onnx_mlir.py", TEXTS, "--expect", expected, "--only", only]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stdout
    assert f"{2 - code} texts: " in done.stdout


@pytest.mark.slow
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
