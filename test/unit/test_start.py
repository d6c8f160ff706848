"""Where programs begin: Ctrl-C and SIGTERM at any moment, also while modules are imported, are one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_SCRIPT = """
import os, sys
from t10 import start

class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Interrupting())
sys.argv = ["program", *{words!r}]
sys.exit(start.{function}())
"""
_PROGRAMS = {
    "t10": ["chips"],
    "t10-opt": ["--t10-fuse", "-"],
    "t10-translate": ["--ipu-to-asm", "-"],
}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@pytest.mark.parametrize("program", _PROGRAMS)
@pytest.mark.parametrize("module", ["t10.errors", "numpy"])
def test_a_program_interrupted_during_an_import_says_so(
    module: str, program: str, number: signal.Signals
) -> None:
    script = _SCRIPT.format(
        module=module, number=int(number), words=_PROGRAMS[program], function=program.replace("-", "_")
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        input="module {}",
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a shell may ignore it
    )
    assert (result.returncode, result.stderr) == (130, f"\n{program}: interrupted\n")


def test_a_program_whose_signals_are_ignored_goes_on() -> None:
    script = _SCRIPT.format(module="numpy", number=int(signal.SIGINT), words=["chips"], function="t10")
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert (result.returncode, result.stderr) == (0, "")
