"""The forking lit format: what passes, what fails, and what it hands to lit's own shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TEST_ROOT = Path(__file__).resolve().parent.parent

CONFIG = f"""
import os, sys
sys.path.insert(0, {str(TEST_ROOT)!r})
from t10_lit import ForkingShTest
config.name = "sample"
config.suffixes = [".test"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
config.maxIndividualTestTime = 30
config.test_format = ForkingShTest(llvm_filecheck="", programs={{}})
"""


def _lit(folder: Path, text: str) -> tuple[int, str]:
    """Run a suite of one test; return lit's exit status and all it printed."""
    (folder / "lit.cfg.py").write_text(CONFIG)
    (folder / "case.test").write_text(text)
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j1", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "run_lines",
    [
        "RUN: cat %s | filecheck %s",
        "RUN: filecheck %s < %s",
        "RUN: cat %s > %t && filecheck %s --input-file %t",
        "RUN: not cat missing-file 2>&1 | filecheck %s --check-prefix MISSING",
        "RUN: not filecheck --check-prefix ABSENT %s < %s",
        "RUN: cat missing-file 2> %t || filecheck %s --check-prefix MISSING < %t",
        "RUN: cat %s \\\nRUN:   | filecheck %s",
        "RUN: env A=B cat %s | filecheck %s",  # lit's shell
    ],
    ids=range(8),
)
def test_run_lines_that_hold_pass(tmp_path: Path, run_lines: str) -> None:
    checks = "CHECK: a{{[n]}}d b\nand b\nMISSING: No such {{file}}\nNo such file\nABSENT: no{{ }}where\n"
    status, output = _lit(tmp_path, f"{run_lines}\n\n{checks}")
    assert status == 0, output
    assert "Passed: 1" in output


@pytest.mark.parametrize(
    ("run_line", "says"),
    [
        ("cat %s | filecheck %s", 'match "no{{ }}where"'),
        ("cat missing-file | cat", "No such file"),
        ("not cat %s", "exit status 1"),
        ("cat %s && cat missing-file", "No such file"),
        ("cat missing-file ; filecheck %s < %s", "exit status"),
    ],
)
def test_run_lines_that_do_not_hold_fail_and_show_why(tmp_path: Path, run_line: str, says: str) -> None:
    status, output = _lit(tmp_path, f"RUN: {run_line}\n\nCHECK: no{{{{ }}}}where\n")
    assert status == 1, output
    assert "Failed: 1" in output
    assert says.lower() in output.lower()
