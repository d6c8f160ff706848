"""What prices and fronts are kept under covers all code that they are made by."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from t10.cost import code_digest
from t10.cost.code_digest import COST_PARTS, SUFFIXES, digest_of
from t10.plan.fronts.stored_fronts import planner_fingerprint

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "t10"


def _names(source: str) -> Iterator[str]:
    """Yield the names of `t10` that a module imports, anywhere in it: `core.plan`, `core.plan.OperatorPlan`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            found = []
        yield from (name[len("t10.") :] for name in found if name.startswith("t10."))


def _files(name: str) -> Iterator[Path]:
    """Yield the modules below a part, or the one that a name is of."""
    path = PACKAGE / name
    if path.is_dir():
        yield from path.rglob("*.py")
    elif path.is_file():
        yield path


def _parts(start: str) -> set[str]:
    """Return the packages and modules of `t10` that a package imports, itself among them, directly or not."""
    found: set[str] = set()
    todo = {start}
    while todo:
        part = todo.pop()
        found.add(part)
        for path in _files(part):
            for name in _names(path.read_text(encoding="utf-8")):
                first = name.split(".")[0]
                part = first if (PACKAGE / first).is_dir() else f"{first}.py"
                todo |= {part} - found
    return found


def test_all_that_prices_are_counted_by_is_in_their_digest() -> None:
    assert set(COST_PARTS) == _parts("cost")


def test_all_that_plans_are_made_by_is_in_their_digest() -> None:
    assert {*COST_PARTS, "plan"} == _parts("plan")
    assert planner_fingerprint() == digest_of((*COST_PARTS, "plan"))


@pytest.mark.parametrize("path", ["errors.py", *(f"core/inner/one{suffix}" for suffix in SUFFIXES)])
def test_a_changed_file_is_another_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def files(_: str) -> Path:
        return tmp_path

    monkeypatch.setattr(code_digest, "files", files)
    part, file = path.split("/")[0], tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"a = 1")
    before = digest_of((part,))
    file.write_bytes(b"a = 2")
    assert digest_of((part,)) != before
