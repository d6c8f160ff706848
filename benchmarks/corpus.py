#!/usr/bin/env python3
"""Compile, execute and compare every model of a folder on every chip given.

    python benchmarks/corpus.py                                   # the bundled architectures on test-64
    python benchmarks/corpus.py FOLDER --chips test-64,ipu-mk2 --only bert --json results.json

A file MODEL.npz beside MODEL.onnx with arrays in.NAME and ref.NAME gives inputs and references; otherwise inputs are
random and the reference is ONNX Runtime. A model that came without its weights is compiled only. Cycles are modelled.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from t10.arrays import Arrays, read_arrays
from t10.driver import Executable, compile
from t10.errors import T10Error
from t10.random_inputs import random_inputs
from t10.reference import compare, default_tolerance, run_onnx_runtime, split_reference

ROOT = Path(__file__).resolve().parents[1]

BUNDLED = ROOT / "examples" / "models"
ARCHITECTURES = "*_fp[13]*.onnx"
COLUMNS = "model                                chip       ops  plan s  ms (mod.)  peak KiB   run s     error"


@dataclass(frozen=True, slots=True)
class Row:
    """What one model did on one chip; `error` is the largest of its outputs, None where nothing was executed."""

    model: str
    chip: str
    operators: int = 0
    planner_seconds: float = 0.0
    modelled_milliseconds: float = 0.0
    peak_bytes: int = 0
    run_seconds: float = 0.0
    error: float | None = None
    tolerance: float | None = None
    verdict: str = ""

    @property
    def is_good(self) -> bool:
        """Return whether the model did what it should."""
        return self.verdict in ("ok", "planned")


def main() -> int:
    arguments = _arguments()
    folder, pattern = (BUNDLED, ARCHITECTURES) if arguments.folder is None else (arguments.folder, "*.onnx")
    models = sorted(path for path in folder.glob(pattern) if arguments.only in path.name)
    print(COLUMNS)
    rows: list[Row] = []
    for path in models:
        for chip in arguments.chips.split(","):
            row = measure(path, chip)
            rows.append(row)
            _print(row)
    good = sum(row.is_good for row in rows)
    print(f"{good} of {len(rows)} as they should be")
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8"
        )
    return 0 if good == len(rows) else 1


def measure(path: Path, chip: str) -> Row:
    """Return what a model does on a chip; errors become the verdict."""
    try:
        start = time.perf_counter()
        executable = compile(path, chip)
        seconds = time.perf_counter() - start
        report = executable.report()
        row = Row(
            model=path.stem,
            chip=chip,
            operators=len(report.operators),
            planner_seconds=round(seconds, 2),
            modelled_milliseconds=report.total_milliseconds,
            peak_bytes=report.peak_bytes,
            verdict="planned",
        )
        return row if executable.missing_weights else _executed(path, executable, row)
    except T10Error as error:
        return Row(path.stem, chip, verdict=f"{type(error).__name__}: {error}")
    except Exception as error:  # one defect must not cost the other rows
        return Row(path.stem, chip, verdict=f"defect, {type(error).__name__}: {error}")


def _executed(path: Path, executable: Executable, row: Row) -> Row:
    """Return the row with what executing the model adds."""
    inputs, references = _given(path)
    inputs = inputs or random_inputs(executable.plan.graph, seed=0)
    start = time.perf_counter()
    outputs = executable.run(inputs)
    seconds = time.perf_counter() - start
    references = references or run_onnx_runtime(path, inputs)
    tolerance = default_tolerance(executable.plan.graph)
    comparisons = compare(outputs, references, tolerance)
    worst = max((each.error for each in comparisons), default=0.0)
    return replace(
        row,
        run_seconds=round(seconds, 2),
        error=worst,
        tolerance=tolerance,
        verdict="ok" if all(each.is_within for each in comparisons) else "DIFFERS",
    )


def _given(path: Path) -> tuple[Arrays, Arrays]:
    beside = path.with_suffix(".npz")
    return split_reference(read_arrays(beside)) if beside.exists() else ({}, {})


def _print(row: Row) -> None:
    error = "-" if row.error is None else f"{row.error:.2e}"
    print(
        f"{row.model:<36.36} {row.chip:<8} {row.operators:>5} {row.planner_seconds:>7.2f} "
        f"{row.modelled_milliseconds:>10.4f} {row.peak_bytes / 1024:>9.1f} {row.run_seconds:>7.2f} {error:>9} "
        f"{row.verdict}",
        flush=True,
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", help="where the .onnx files lie (default: the bundled architectures)"
    )
    parser.add_argument("--chips", default="test-64", help="comma-separated (default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="models whose file name holds this")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
