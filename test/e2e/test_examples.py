"""The examples run, and show what they say they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from t10.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# What the demo prints on a terminal of 80 columns, so that its first screen has all of it.
MOST_LINES = 55


@pytest.mark.slow
def test_the_library_example_prints_plans_that_rotate() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "compile_and_run.py"],
        env={"PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "rotates, ft = " in done.stdout
    assert "cycles (modelled)" in done.stdout


@pytest.mark.parametrize(("package", "example"), [("torch", "from_torch.py"), ("jax", "from_jax.py")])
def test_the_examples_of_other_frameworks_agree_with_them(package: str, example: str) -> None:
    pytest.importorskip(package, reason="examples of other frameworks need them")
    done = subprocess.run(
        [sys.executable, EXAMPLES / example],
        env={"PYTHONPATH": str(ROOT / "python"), "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    errors = [float(number) for number in re.findall(r"error ([0-9.e+-]+)", done.stdout)]
    assert errors
    assert max(errors) < 1e-4


@pytest.mark.slow
def test_little_memory_changes_plans_but_not_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    model, chip = EXAMPLES / "models" / "resnet18_fp16.onnx", EXAMPLES / "small-memory.yaml"
    assert main(["verify", str(model), "--chip", str(chip), "--prove"]) == 0
    assert "small-memory:" in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_is_quick_and_right(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["demo", "-o", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| core ")]
    held = [[cell.strip() for cell in row[2:-1]] for row in rows]
    # Eight cores hand the eighths of half of the axis on: what a core gets, the one above it had.
    assert len(held) == 8
    assert all(held[i + 1][1:] == held[i][:-1] for i in range(7))
    assert "Its plans, time against memory" in text
    assert re.search(r"y .* float16 .* ok ", text)
    assert len(text.splitlines()) <= MOST_LINES
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h1>bert_feed_forward" in page
    assert "Equal to ONNX Runtime" in page.partition("<h2>")[0]
    assert (tmp_path / "out" / "program" / "program.cpp").is_file()
