#!/usr/bin/env python3
"""Export small PyTorch modules with both exporters at every opset; compile, execute and compare.

    python benchmarks/torch_exports                              # everything: an hour on one core
    python benchmarks/torch_exports --only lstm,gru --exporters dynamo --opsets 18,23
    python benchmarks/torch_exports --save FOLDER --json FILE    # keep and reuse the files; the rows as JSON

Needs PyTorch and onnxscript, which T10 does not depend on: without them nothing is measured. Every file is planned for
test-16, or the next chip that holds it, and executed on the plan simulator; its outputs are compared with those of
ONNX Runtime, or with PyTorch's where ONNX Runtime has no kernel. Where an exporter fails, or writes another opset than
it was asked for, there is nothing to compile, which is counted apart. The exit code is 0 if all that there is passes,
or is refused as it must be.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("python", "benchmarks")]

if TYPE_CHECKING:
    from t10.conformance.verdict import Verdict
    from torch_exports.judging import Row
    from torch_exports.sample import Sample

FILES = ("networks", "pictures", "tensors", "quantised", "loops")
NEEDED = ("torch", "onnxscript")
REFUSED = {"places_that_data_decide": "NonZero"}
"""Modules that T10 refuses, and the operator it must name."""


def main(command_line: list[str] | None = None) -> int:
    arguments = _arguments(command_line)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not measured: {' and '.join(missing)} not installed")
        return 0
    from torch_exports.exporting import OPSETS
    from torch_exports.judging import EXPORTER, rows
    from torch_exports.sample import torch

    torch.set_num_threads(1)
    samples, exporters = _samples(arguments.only), arguments.exporters.split(",")
    unknown = [name for name in exporters if name not in OPSETS]
    if unknown or not samples:
        print(f"unknown: {', '.join(unknown) or arguments.only} (exporters: {', '.join(OPSETS)})")
        return 2
    opsets = [int(text) for text in arguments.opsets.split(",") if text]
    jobs = [(s, e, v) for s in samples for e in exporters for v in OPSETS[e] if not opsets or v in opsets]
    with tempfile.TemporaryDirectory() as temporary:
        found = rows(jobs, arguments.save or Path(temporary), arguments.jobs, _progress)
    _print_reasons(found)
    _print_table(found)
    versions = [f"{name} {importlib.import_module(name).__version__}" for name in NEEDED]
    print(f"{len(samples)} modules, {len(found)} exports; {', '.join(versions)}")
    if arguments.json:
        text = json.dumps([asdict(row) for row in found], indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0 if all(row.status in ("pass", EXPORTER) or _is_meant(row) for row in found) else 1


def _is_meant(row: Row) -> bool:
    """Return whether a refusal is one that must be: its reason names the operator that cannot be planned."""
    return row.status == "unsupported" and row.sample in REFUSED and REFUSED[row.sample] in row.reason


def _samples(only: str) -> list[Sample]:
    """Return the modules whose name holds one of some texts."""
    from torch_exports.sample import SAMPLES

    for file in FILES:
        importlib.import_module(f"torch_exports.{file}")
    return [each for name, each in SAMPLES.items() if any(part in name for part in only.split(","))]


def _progress(verdict: Verdict) -> None:
    print(f"{verdict.name}: {verdict.status} ({verdict.seconds:.1f} s)", flush=True)


def _print_reasons(found: Sequence[Row]) -> None:
    """Print what did not pass and what is to be noted, equal ones of a module together with their opsets."""
    opsets: dict[tuple[str, ...], list[int]] = {}
    for row in found:
        if row.status != "pass":
            opsets.setdefault((row.sample, row.exporter, row.status, row.reason), []).append(row.opset)
        elif row.note:
            opsets.setdefault((row.sample, row.exporter, "note", row.note), []).append(row.opset)
    for (sample, exporter, status, reason), of in opsets.items():
        print(f"{sample}, {exporter} {', '.join(map(str, of))}: {status}: {reason}")


def _print_table(found: Sequence[Row]) -> None:
    """Print how many exports of each exporter and opset have each status."""
    from torch_exports.judging import STATUSES

    counts: dict[tuple[str, int], Counter[str]] = {}
    for row in found:
        counts.setdefault((row.exporter, row.opset), Counter())[row.status] += 1
    print(f"| exporter | opset | {' | '.join(STATUSES)} |")
    print("|---|---:|" + "---:|" * len(STATUSES))
    for (exporter, opset), counted in sorted(
        counts.items(), key=lambda each: (each[0][0] == "dynamo", each[0])
    ):
        print(f"| {exporter} | {opset} | {' | '.join(str(counted[status]) for status in STATUSES)} |")


def _arguments(command_line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXTS", help="modules whose name holds one of these")
    parser.add_argument("--exporters", default="torchscript,dynamo", help="(default: %(default)s)")
    parser.add_argument(
        "--opsets", default="", metavar="LIST", help="of those each exporter offers (default: all)"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--save",
        type=Path,
        metavar="FOLDER",
        help="keep the exported files there, and use those that are there",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args(command_line)


if __name__ == "__main__":
    sys.exit(main())
