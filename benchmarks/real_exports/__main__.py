#!/usr/bin/env python3
"""Export small networks of public libraries with both exporters; compile, execute and compare.

    python benchmarks/real_exports                            # everything: about two hours on one core
    python benchmarks/real_exports --only llama,yolo --exporters dynamo
    python benchmarks/real_exports --save FOLDER --json FILE  # keep and reuse the files; the rows as JSON

Needs PyTorch and onnxscript; of transformers, torchvision and timm what is installed, the networks of the others are
skipped by name. Weights are random, nothing is downloaded. Every file is planned for test-16, or the next chip that
holds it, beside its program, and executed on the plan simulator and on that of tiles; both are compared with ONNX
Runtime, or with PyTorch where ONNX Runtime refuses the file. The exit code is 0 if nothing is wrong and 95 % of the
files pass.
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
    from torch_exports.judging import Row

    from t10.conformance.verdict import Verdict

FILES = ("language", "senses", "written")
NEEDED = ("torch", "onnxscript")
OPSETS = {"torchscript": 17, "dynamo": 20}
BAR = 0.95
"""Least part of the files that must pass."""


def main(command_line: list[str] | None = None) -> int:
    arguments = _arguments(command_line)
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not measured: {' and '.join(missing)} not installed")
        return 0
    from torch_exports.judging import rows
    from torch_exports.sample import SAMPLES, torch

    from real_exports.network import LIBRARIES

    torch.set_num_threads(1)
    for file in FILES:
        importlib.import_module(f"real_exports.{file}")
    names = [name for name in LIBRARIES if any(part in name for part in arguments.only.split(","))]
    absent = [n for n in names if LIBRARIES[n] and importlib.util.find_spec(LIBRARIES[n]) is None]
    for library in sorted({LIBRARIES[name] for name in absent}):
        skipped = [name for name in absent if LIBRARIES[name] == library]
        print(f"skipped, {library} is not installed: {', '.join(skipped)}")
    exporters = arguments.exporters.split(",")
    jobs = [(SAMPLES[n], e, OPSETS[e]) for n in names if n not in absent for e in exporters]
    with tempfile.TemporaryDirectory() as temporary:
        found = rows(jobs, arguments.save or Path(temporary), arguments.jobs, _progress)
    _print(found)
    if arguments.json:
        text = json.dumps([asdict(row) for row in found], indent=1)
        arguments.json.write_text(text + "\n", encoding="utf-8")
    return 0 if _is_good(found) else 1


def _exported(found: Sequence[Row]) -> list[Row]:
    return [row for row in found if row.status != "exporter"]


def _is_good(found: Sequence[Row]) -> bool:
    exported = _exported(found)
    n_passed = sum(row.is_passed_by_all for row in exported)
    is_wrong = any(row.status not in ("pass", "unsupported") or row.tiles == "wrong" for row in exported)
    return not is_wrong and n_passed >= BAR * len(exported)


def _progress(verdict: Verdict) -> None:
    tiles = f", tiles {verdict.tiles}" if verdict.tiles else ""
    print(f"{verdict.name}: {verdict.status}{tiles} ({verdict.seconds:.1f} s)", flush=True)


def _print(found: Sequence[Row]) -> None:
    for row in found:
        name = f"{row.sample}, {row.exporter} {row.opset}"
        if row.status != "pass":
            print(f"{name}: {row.status}: {row.reason}")
        elif row.tiles != "pass":
            print(f"{name}: on tiles {row.tiles or 'not tried'}: {row.tiles_reason}")
    exported = _exported(found)
    counted = Counter(row.status for row in exported)
    listed = ", ".join(f"{n} {status}" for status, n in sorted(counted.items()))
    n_both = sum(row.is_passed_by_all for row in exported)
    networks = len({row.sample for row in exported})
    part = 100 * n_both / max(1, len(exported))
    print(
        f"{networks} networks, {len(exported)} files: {listed}; {n_both} ({part:.0f} %) pass on plan and tiles"
    )


def _arguments(command_line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXTS", help="networks whose name holds one of these")
    parser.add_argument("--exporters", default="torchscript,dynamo", help="(default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: %(default)s)")
    parser.add_argument(
        "--save", type=Path, metavar="FOLDER", help="keep the exported files there, and use those"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there too")
    return parser.parse_args(command_line)


if __name__ == "__main__":
    sys.exit(main())
