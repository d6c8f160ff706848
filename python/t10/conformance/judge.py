"""One test: its model compiled for a small chip, executed by the plan simulator, compared with its references."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.backend import run_on_tiles
from t10.conformance.cases import Case, DataSet
from t10.conformance.grid.cases import GridPack
from t10.conformance.grid.judge import pack_verdict
from t10.conformance.verdict import Status, Verdict
from t10.core.dtypes import in_numpys_types
from t10.driver import Executable, compile
from t10.errors import InfeasiblePlanError, InputError, MissingConstantError, T10Error, UnsupportedOpError
from t10.plan.options import PlanOptions
from t10.reference import run_onnx_runtime

_OPTIONS = PlanOptions(reconcile="greedy", max_front=8)
_LONGEST_REASON = 500

PLAN_ONLY = ("light",)
"""Kinds of tests that are too large for the simulator of tiles."""

Run = Callable[[Arrays], Mapping[str, NDArray[Any]]]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A compiled model, the inputs that were fixed, and, where it has no program, why."""

    executable: Executable
    constants: Arrays
    refusal: str = ""


ROUNDED = frozenset(
    {
        "node/test_attention_4d_causal_fp16",
        "node/test_attention_4d_causal_fp16_expanded",
        "node/test_dft_inverse",
        "node/test_dft_inverse_opset19",
    }
)
"""Tests whose references carry more rounding than their tolerances allow: sums in f16, and 2e-7 where the result is 0.

Of these a unit in the last place of the largest element is allowed besides. Both sides are as near to the true values.
"""


def judge(case: Case | GridPack) -> Verdict:
    """Return what a test gives. Defects are verdicts too: nothing but an interrupt leaves this function."""
    if isinstance(case, GridPack):
        return pack_verdict(case)
    started = time.perf_counter()
    verdict = Verdict(case.name, case.operator, "pass")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(case.model.SerializeToString())
        try:
            compiled = _compiled(path, case)
        except (UnsupportedOpError, InputError) as error:
            verdict = replace(verdict, status="unsupported", reason=_short(_stated(error, path)))
        except Exception as error:
            verdict = replace(verdict, status="crash", reason=_short(f"{type(error).__name__}: {error}"))
        else:
            verdict = _executed(verdict, case, path, compiled)
    return replace(verdict, seconds=time.perf_counter() - started)


def _stated(error: T10Error, path: Path) -> str:
    """Return what an error says first, without the file, and how many nodes it speaks of besides."""
    listed = error.details if isinstance(error, UnsupportedOpError) else ()
    first = listed[0] if listed else str(error)
    more = f" (and {len(listed) - 1} more)" if len(listed) > 1 else ""
    return first.replace(f"{path}: ", "") + more


def _executed(verdict: Verdict, case: Case, path: Path, compiled: _Compiled) -> Verdict:
    """Return the verdict of a model that was compiled: refusing its inputs now would be a defect, too."""
    executable = compiled.executable
    status, reason = _tried(case, path, executable.run, executable)
    verdict = replace(verdict, constants=tuple(compiled.constants), status=status, reason=reason)
    if status != "pass" or case.kind in PLAN_ONLY:
        return verdict
    if compiled.refusal:
        return replace(verdict, tiles="unsupported", tiles_reason=compiled.refusal)
    tiles, reason = _tried(case, path, lambda given: run_on_tiles(executable, given).outputs, executable)
    return replace(verdict, tiles=tiles, tiles_reason=reason)


def _tried(case: Case, path: Path, run: Run, executable: Executable) -> tuple[Status, str]:
    """Return what an engine gives; it may refuse what it has no code for."""
    try:
        difference = _difference(case, path, run, executable)
    except UnsupportedOpError as error:
        return "unsupported", _short(_stated(error, path))
    except Exception as error:
        return "crash", _short(f"{type(error).__name__}: {error}")
    return "wrong" if difference else "pass", difference


def _compiled(path: Path, case: Case) -> _Compiled:
    """Return the compiled model, and the inputs that had to be fixed: only those that the compiler asks for."""
    try:
        return _beside_program(path, case, {})
    except MissingConstantError as error:
        given = _inputs(case, case.data_sets[0])
        constants = {name: given[name] for name in error.inputs if name in given}
        if len(case.data_sets) > 1 or len(constants) < len(error.inputs):
            raise
    return _beside_program(path, case, constants)


def _beside_program(path: Path, case: Case, constants: Arrays) -> _Compiled:
    """Return the model, planned beside its program, or without one where there is no code for it."""
    if case.kind in PLAN_ONLY:
        return _Compiled(_fitting(path, case, constants, program=False), constants)
    try:
        return _Compiled(_fitting(path, case, constants, program=True), constants)
    except MissingConstantError:
        raise
    except UnsupportedOpError as error:
        refusal = _short(_stated(error, path))
    return _Compiled(_fitting(path, case, constants, program=False), constants, refusal)


def _fitting(path: Path, case: Case, constants: Arrays, *, program: bool) -> Executable:
    given: dict[str, Any] = {
        "options": _OPTIONS,
        "shapes": case.shapes,
        "constants": constants,
        "program": program,
    }
    for chip in case.chips[:-1]:
        try:
            return compile(path, chip, **given)
        except InfeasiblePlanError:
            continue
    return compile(path, case.chips[-1], **given)


def _inputs(case: Case, data: DataSet) -> Arrays:
    """Return the tensors among the inputs of a data set by name."""
    stored = {tensor.name for tensor in case.model.graph.initializer}
    names = [value.name for value in case.model.graph.input if value.name not in stored]
    given = zip(names, data.inputs, strict=False)
    return {name: array for name, array in given if array is not None}


def _difference(case: Case, path: Path, run: Run, executable: Executable) -> str:
    """Return how outputs differ from the references, empty if they do not."""
    taken = {value.name for value in executable.inputs}
    for number, data in enumerate(case.data_sets):
        given = _inputs(case, data)
        outputs = run({name: array for name, array in given.items() if name in taken})
        names = [value.name for value in case.model.graph.output]
        expected = data.outputs
        if not expected:
            references = run_onnx_runtime(path, given)
            expected = tuple(references[name] for name in names)
        found = _worst(case, expected, [outputs[name] for name in names])
        if found:
            return found if len(case.data_sets) == 1 else f"data set {number}: {found}"
    return ""


def _worst(case: Case, references: Sequence[NDArray[Any] | None], outputs: Sequence[NDArray[Any]]) -> str:
    for value, found, expected in zip(case.model.graph.output, outputs, references, strict=True):
        if expected is None:
            return f"output {value.name} has a reference that is no tensor"
        expected = in_numpys_types(expected, found.dtype)  # float8 and int4 are kept in wider types
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            return (
                f"output {value.name} is {found.dtype}{list(found.shape)}, "
                f"expected {expected.dtype}{list(expected.shape)}"
            )
        y, reference = found.astype(np.float64), expected.astype(np.float64)
        atol = case.atol + (float(np.spacing(np.abs(expected).max())) if case.name in ROUNDED else 0.0)
        near = np.isclose(y, reference, rtol=case.rtol, atol=atol, equal_nan=True)
        if not near.all():
            place = tuple(int(i) for i in np.argwhere(~near)[0])
            return (
                f"output {value.name}: {np.count_nonzero(~near)} of {near.size} elements differ, "
                f"at {list(place)} {found[place]} for {expected[place]}"
            )
    return ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."
