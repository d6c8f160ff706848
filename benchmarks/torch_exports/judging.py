"""Exported files as test cases of `t10.conformance`, and what becomes of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from t10.conformance.cases import Case, DataSet
from t10.conformance.verdict import Verdict
from t10.conformance.workers import Limits, run_cases
from t10.errors import InputError
from t10.reference import run_onnx_runtime
from torch_exports.exporting import Export, export
from torch_exports.sample import Sample

CHIPS = ("test-16", "test-64", "ipu-mk2")
LIMITS = Limits(cpu_seconds=300)
EXPORTER = "exporter"
STATUSES = ("pass", "unsupported", "wrong", "crash", "time limit", EXPORTER)
"""What becomes of an export: verdicts of `t10.conformance`, or that the exporter writes none."""

Job = tuple[Sample, str, int]
_onnx: Any = onnx  # typed in part only


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a module, exporter and opset; `note` says how ONNX Runtime differs from PyTorch, if it does.

    `tiles` is what the simulator of tiles gave, where the plan simulator passes.
    """

    sample: str
    exporter: str
    opset: int
    status: str
    reason: str = ""
    note: str = ""
    seconds: float = 0.0
    tiles: str = ""
    tiles_reason: str = ""

    @property
    def is_passed_by_all(self) -> bool:
        """Return whether both engines compute what they should."""
        return self.status == self.tiles == "pass"


def rows(jobs: Sequence[Job], folder: Path, processes: int, progress: Callable[[Verdict], None]) -> list[Row]:
    """Export, compile, execute and compare; return a row for each, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    exports = [export(sample, exporter, opset, folder) for sample, exporter, opset in jobs]
    made = [(each, *_case(each, job[0])) for each, job in zip(exports, jobs, strict=True) if not each.refusal]
    notes = {case.name: note for _, case, note in made}
    cases = [case for _, case, _ in made]
    verdicts = (
        run_cases(cases, LIMITS, processes, lambda verdict, _done, _all: progress(verdict)) if cases else ()
    )
    by_name = {verdict.name: verdict for verdict in verdicts}
    found: list[Row] = []
    for each in exports:
        verdict = by_name.get(_name(each))
        if verdict is None:
            found.append(Row(each.sample, each.exporter, each.opset, EXPORTER, each.refusal))
        else:
            parts = (verdict.status, verdict.reason, notes[verdict.name], round(verdict.seconds, 2))
            tiles = (verdict.tiles, verdict.tiles_reason)
            found.append(Row(each.sample, each.exporter, each.opset, *parts, *tiles))
    return found


def _name(made: Export) -> str:
    return f"{made.sample}/{made.exporter}/{made.opset}"


def _case(made: Export, sample: Sample) -> tuple[Case, str]:
    """Return a file as a case, and how its reference differs from PyTorch's outputs, empty if it does not.

    The reference is ONNX Runtime's: an exporter that writes another meaning than the module's is not T10's defect.
    """
    model = _onnx.load(str(made.path))
    stored = {tensor.name for tensor in model.graph.initializer}  # old exports list weights among the inputs
    names = [value.name for value in model.graph.input if value.name not in stored]
    inputs = {name: made.inputs[int(name[1:])] for name in names}  # one that nothing reads may be missing
    kinds = [onnx.helper.tensor_dtype_to_np_dtype(v.type.tensor_type.elem_type) for v in model.graph.output]
    try:
        found = run_onnx_runtime(made.path, inputs)
        outputs = tuple(y.astype(kind) for y, kind in zip(found.values(), kinds, strict=True))
        note = _difference(outputs, made.outputs, sample)
    except InputError as error:
        outputs, note = made.outputs, f"compared with PyTorch: {' '.join(str(error).split())[:200]}"
    rtol, atol = sample.tolerance
    shapes = {f"x{i}": made.inputs[i].shape for i in sample.open_axes}
    case = Case(
        name=_name(made),
        model=model,
        data_sets=(DataSet(tuple(inputs.values()), outputs),),
        rtol=rtol,
        atol=atol,
        chips=CHIPS,
        shapes=shapes,
    )
    return case, note


def _difference(found: Sequence[Any], wanted: Sequence[Any], sample: Sample) -> str:
    """Return how ONNX Runtime's outputs differ from PyTorch's."""
    rtol, atol = sample.tolerance
    for place, (y, reference) in enumerate(zip(found, wanted, strict=True)):
        if (y.shape, y.dtype) != (reference.shape, reference.dtype):
            return (
                f"y{place} is {y.dtype}{list(y.shape)}, PyTorch's is {reference.dtype}{list(reference.shape)}"
            )
        if not np.allclose(y.astype(np.float64), reference.astype(np.float64), rtol, atol, equal_nan=True):
            error = np.abs(y.astype(np.float64) - reference.astype(np.float64)).max()
            return f"y{place} of ONNX Runtime differs from PyTorch's by {error:.1e}"
    return ""
