"""Do planner, checker and IR verifiers agree on a model: compiled, read back, proved, and computed as by ONNX Runtime?

disagreement(model, inputs, chip, folder)      a sentence, or None
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import t10
from t10.arrays import Arrays
from t10.driver import Executable
from t10.errors import InfeasiblePlanError, T10Error
from t10.frontend.importer import import_model
from t10.opt.main import main as t10_opt
from t10.passes.pipeline import read_module_plan
from t10.plan.schedule import with_costs
from t10.plan.verify import verify_module

TOLERANCE = {"rtol": 2e-3, "atol": 1e-4}


def disagreement(model: Any, inputs: Arrays, chip: str, folder: Path) -> str | None:
    """Return what is wrong with the plan of a model on a chip, None where nothing is or the chip is too small."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    try:
        executable = t10.compile(path, chip)
    except InfeasiblePlanError:
        return None
    except T10Error as error:
        return f"compile: {error}"
    return (
        _wrong_plan(executable, folder)
        or _wrong_stages(path, chip, folder)
        or _wrong_numbers(executable, path, inputs)
    )


def _wrong_plan(executable: Executable, folder: Path) -> str | None:
    """Return how the module that is written differs from what was planned, or breaks a rule of the checker."""
    plan, _ = read_module_plan(executable.module, executable.chip, executable.cost_model, "module.mlir")
    if with_costs(plan, executable.plan) is None:
        return "the module reads back as another plan"
    found = verify_module(plan, executable.chip)
    if found:
        return f"the checker: {found[0]}"
    (folder / "module.mlir").write_text(executable.module, encoding="utf-8")
    return _opt("--t10-verify-plan", folder / "module.mlir", folder / "proved.mlir", executable.module)


def _wrong_stages(path: Path, chip: str, folder: Path) -> str | None:
    """Return what `t10-opt` refuses of the plans that its own passes make, read from text after the choice."""
    text = str(import_model(path).module.operation.get_asm())
    (folder / "linalg.mlir").write_text(text, encoding="utf-8")
    planned = folder / "planned.mlir"
    return _opt(f"--t10-reconcile=chip={chip}", folder / "linalg.mlir", planned) or _opt(
        "--t10-verify-plan", planned, folder / "proved.mlir"
    )


def _opt(flag: str, source: Path, result: Path, expected: str | None = None) -> str | None:
    """Return what `t10-opt` says against a module; it must leave the text `expected`, if that is given."""
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors):
        code = t10_opt([flag, str(source), "-o", str(result)])
    if code:
        return f"t10-opt {flag} of {source.name}: exit {code}: {errors.getvalue().strip()}"
    if expected is not None and result.read_text(encoding="utf-8") != expected:
        return f"t10-opt {flag} of {source.name} leaves another module"
    return None


def _wrong_numbers(executable: Executable, path: Path, inputs: Arrays) -> str | None:
    runtime: Any = onnxruntime
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    found = executable.run(inputs)
    for name, value in zip(names, session.run(names, inputs), strict=True):
        scale = max(float(np.abs(value).max(initial=0)), 1.0)
        if not np.allclose(found[name], value, TOLERANCE["rtol"], TOLERANCE["atol"] * scale, equal_nan=True):
            return f"output {name} differs from ONNX Runtime by {np.abs(found[name] - value).max()}"
    return None
