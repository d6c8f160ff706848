"""Proof of a plan by code that did not make it, behind `--prove`."""

from __future__ import annotations

from t10.driver import Executable, Progress
from t10.plan.verify import require_valid

PROVED = "plan proved: windows, rings, coverage, data, layouts, memory"


def prove(executable: Executable, progress: Progress) -> None:
    """Check the plan with code that shares nothing with the planner; raises `VerifyError` with what it breaks."""
    progress("prove", 0, 1)
    require_valid(executable.plan, executable.chip)
