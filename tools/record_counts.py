#!/usr/bin/env python3
"""Record, for `t10 conformance --summary`, what the commands found that need files T10 does not carry.

python benchmarks/onnx_mlir.py FOLDER --json texts.json
python benchmarks/torch_exports --json exports.json
python tools/record_counts.py --onnx-mlir texts.json --torch-exports exports.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from t10.conformance.measured import FILE_NAME, Measured, write_measured
from t10.conformance.summary import COLUMNS

ROOT = Path(__file__).resolve().parents[1]

EXPORTER = "exporter"
"""The status of an export that the exporter did not write."""
NAMES = ("name", "sample", "exporter", "opset")
"""What tells rows apart."""
STATUS_OF_VERDICT = {"refused": "unsupported", "HANGS": "time limit", "CRASH": "crash", "DEFECT": "crash"}


def main(command_line: list[str] | None = None) -> int:
    """Record the counts of the files that are given, and print them."""
    arguments = _arguments(command_line)
    found: list[Measured] = []
    if arguments.onnx_mlir:
        found.append(of_texts(merged_rows(map(_rows, arguments.onnx_mlir))))
    if arguments.torch_exports:
        found.extend(of_exports(merged_rows(map(_rows, arguments.torch_exports))))
    write_measured(found, ROOT / "test" / "conformance" / FILE_NAME)
    for each in found:
        print(f"{each.what}: {_words(each.counts)}")
    return 0


def merged_rows(files: Iterable[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rows of several files, of those of one name the last."""
    return list({tuple(row.get(key) for key in NAMES): row for rows in files for row in rows}.values())


def of_texts(rows: Iterable[dict[str, Any]]) -> Measured:
    """Return the counts of the rows of benchmarks/onnx_mlir.py: those that need constants, or are refused, apart."""
    counts = Counter(_status_of_text(row) for row in rows)
    return Measured("texts of onnx-mlir", dict(counts), "python benchmarks/onnx_mlir.py FOLDER")


def _status_of_text(row: dict[str, Any]) -> str:
    verdict = row["verdict"].removeprefix("UNEXPECTED ").partition(" ")[0]
    if verdict == "equal":
        return "with constants" if row["constants"] else "pass"
    return STATUS_OF_VERDICT.get(verdict, "wrong")


def of_exports(rows: Iterable[dict[str, Any]]) -> list[Measured]:
    """Return the counts of the rows of benchmarks/torch_exports, by exporter; what it could not write apart."""
    by_exporter: dict[str, Counter[str]] = {}
    for row in rows:
        by_exporter.setdefault(row["exporter"], Counter())[row["status"]] += 1
    found: list[Measured] = []
    for exporter, counts in sorted(by_exporter.items()):
        given = {status: n for status, n in counts.items() if status in COLUMNS}
        apart = {"not written by the exporter": counts[EXPORTER]} if counts[EXPORTER] else {}
        found.append(
            Measured(f"exports of PyTorch ({exporter})", given, "python benchmarks/torch_exports", apart)
        )
    return found


def _words(counts: Any) -> str:
    return ", ".join(f"{counts[column]} {column}" for column in COLUMNS if counts.get(column))


def _rows(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))


def _arguments(command_line: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--onnx-mlir", type=Path, nargs="+", metavar="JSON", help="rows of benchmarks/onnx_mlir.py"
    )
    parser.add_argument(
        "--torch-exports", type=Path, nargs="+", metavar="JSON", help="rows of benchmarks/torch_exports"
    )
    arguments = parser.parse_args(command_line)
    if not (arguments.onnx_mlir or arguments.torch_exports):
        parser.error("expected --onnx-mlir or --torch-exports")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
