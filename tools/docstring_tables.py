"""Tables of docs/ that are made of first lines of docstrings: the packages, and the scripts of `benchmarks/`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ROOT / "python" / "t10"
LINKED = ("dialect", "passes")
"""Packages whose sources are folders of the repository (docs/adr/0001)."""


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def packages_table() -> str:
    """Return a row per package and sub-package: what it is for."""
    lines = ["| package | what it is |", "|---|---|"]
    for folder in sorted(_packages()):
        name = folder.relative_to(PACKAGES).as_posix()
        source = name if name.partition("/")[0] in LINKED else f"python/t10/{name}"
        lines.append(f"| [`t10.{name.replace('/', '.')}`](../{source}) | {_cell(folder / '__init__.py')} |")
    return "\n".join(lines) + "\n"


def scripts_table() -> str:
    """Return a row per script of `benchmarks/`: what it measures."""
    lines = ["| script | what it does |", "|---|---|"]
    folder = ROOT / "benchmarks"
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/__main__.py")]):
        shown = path.parent if path.name == "__main__.py" else path
        lines.append(f"| `{shown.relative_to(ROOT).as_posix()}` | {_cell(path)} |")
    return "\n".join(lines) + "\n"


def _packages() -> Iterator[Path]:
    for depth in ("*", "*/*"):
        for path in PACKAGES.glob(f"{depth}/__init__.py"):
            yield path.parent


def _cell(path: Path) -> str:
    return first_line(path).replace("|", "\\|")
