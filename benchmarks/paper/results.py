"""Rows that were measured before, in the CSV files beside this module: a run goes on where the last one ended."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from paper.systems import ROW_FIELDS, Row

DATA = Path(__file__).resolve().parent / "data"
LATENCY = DATA / "latency.csv"
OPERATORS = DATA / "operators.csv"
TEXTS = ("chip", "cost_model", "model", "system", "status")
OPERATOR_FIELDS: tuple[str, ...] = ("chip", "cost_model", "model", "batch", "system", "operator", "cycles")

Key = tuple[str, str, str, int, str]


def read_rows(path: Path = LATENCY) -> dict[Key, Row]:
    """Return the rows of a file by key."""
    found = [_row(each) for each in _lines(path)]
    return {row.key: row for row in found}


def read_operators(path: Path = OPERATORS) -> dict[Key, dict[str, int]]:
    """Return the cycles of operators by the key of their row."""
    found: dict[Key, dict[str, int]] = {}
    for each in _lines(path):
        key = (each["chip"], each["cost_model"], each["model"], int(each["batch"]), each["system"])
        found.setdefault(key, {})[each["operator"]] = int(each["cycles"])
    return found


def write_rows(rows: Iterable[Row], path: Path = LATENCY) -> None:
    """Write rows, in the order of their keys."""
    ordered = sorted(rows, key=lambda row: row.key)
    _write(path, ROW_FIELDS, [row.record() for row in ordered])


def write_operators(found: Mapping[Key, Mapping[str, int]], path: Path = OPERATORS) -> None:
    """Write the cycles of operators, in the order of keys and names."""
    lines: list[dict[str, Any]] = [
        dict(zip(OPERATOR_FIELDS, (*key, name, cycles), strict=True))
        for key, by_name in sorted(found.items())
        for name, cycles in sorted(by_name.items())
    ]
    _write(path, OPERATOR_FIELDS, lines)


def _lines(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _write(path: Path, names: tuple[str, ...], lines: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    part.replace(path)


def _row(line: Mapping[str, str]) -> Row:
    values: dict[str, Any] = {
        name: text if name in TEXTS else int(text) for name, text in line.items() if name in ROW_FIELDS
    }
    return Row(**values)
