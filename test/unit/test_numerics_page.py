"""The contract of numbers: every row of docs/numerics.md names what holds it, and that exists."""

from __future__ import annotations

import ast
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

from t10.conformance.grid.cases import load_grid

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "numerics.md"
_NAME = re.compile(r"`((?:test|grid)/[^`]+)`")


def _rows() -> list[str]:
    """Return the rows of all tables, without heads and rulers."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("|")]
    rulers = {i for i, line in enumerate(table) if set(line) <= set("|-: ")}
    return [line for i, line in enumerate(table) if i not in rulers and i + 1 not in rulers]


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row.split("|")[1].strip())
def test_every_row_names_what_holds_it(row: str) -> None:
    names = _NAME.findall(row.rstrip("| ").rpartition("|")[2])
    assert names
    for name in names:
        path, _, function = name.partition("::")
        if name.startswith("grid/"):
            assert any(fnmatchcase(case.name, name) for case in load_grid()), name
        else:
            assert function in _functions(path), name
