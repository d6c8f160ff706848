"""House rules no linter knows: sizes, links, and words that must not be in the tree."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dialect", "passes", "python/t10", "test", "tools", "benchmarks", "docs", "examples")
LINKS = {"python/t10/dialect": "dialect", "python/t10/passes": "passes"}
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_LINE_CHARACTERS = 120

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError|mark\.skip|mark\.xfail|XFAIL)\b")
ONE_MACHINE = re.compile(r"(^|[^.a-zA-Z])/(work|tmp|root|home)/[a-z.]|\.\./shared")
BARE_IGNORE = re.compile(
    r"# *noqa(?!: *[A-Z]+[0-9]+\W+\w)|# *type: *ignore|# *pyright: *ignore(?!\[\w+\]\W+\w)|importorskip\((?!.*reason=)"
)
"""What is not looked at without a rule's name and a reason."""


RULE = re.compile(r"\|[ :]*-")
"""What follows the header of a table."""
MODELS = {".onnx", ".npz", ".mlir", ".safetensors"}


@cache
def _all_files() -> tuple[Path, ...]:
    """Return the files of the repository; links and outputs of tools are left out."""
    return tuple(
        path
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*"))
        if (inside := path.relative_to(ROOT).as_posix())
        and not any(inside.startswith(f"{link}/") for link in LINKS)
        and "/Output/" not in inside
        and path != Path(__file__).resolve()
        and path.is_file()
    )


def _files(*suffixes: str) -> Iterator[Path]:
    """Yield the files of the repository with one of the suffixes."""
    yield from (path for path in _all_files() if path.suffix in suffixes)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _functions(block: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions in a module or a statement; expressions, most of a module, are not walked."""
    for node in ast.iter_child_nodes(block):
        if isinstance(node, ast.FunctionDef):
            yield node
        if isinstance(node, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from _functions(node)


def _hits(pattern: re.Pattern[str], *suffixes: str) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in _files(*suffixes)
        for number, line in enumerate(_text(path).splitlines(), start=1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("link", LINKS)
def test_the_package_links_to_the_folders_at_the_top(link: str) -> None:
    assert (ROOT / link).is_symlink()
    assert (ROOT / link).resolve() == ROOT / LINKS[link]


def test_no_source_file_is_too_long() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): len(_text(path).splitlines())
        for path in _files(".py", ".cpp", ".h")
    }
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in _files(".py")
        for node in _functions(ast.parse(_text(path)))
        if node.end_lineno
        if node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]
    assert too_long == []


def test_lines_of_the_changelog_are_wrapped() -> None:
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    too_long = [
        f"{number}: {len(line)}" for number, line in enumerate(lines, 1) if len(line) > MAX_LINE_CHARACTERS
    ]
    assert too_long == []


def test_no_row_of_a_table_is_cut_off_from_its_header() -> None:
    headless = [f"{path.name}:{number}" for path in _pages() for number in _headless_rows(path)]
    assert headless == []


def _pages() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def _headless_rows(path: Path) -> Iterator[int]:
    """Yield the lines that begin a table without a header: a blank line before them ended theirs."""
    is_code, before = False, ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True), 1):
        is_code ^= line.startswith("```")
        if not is_code and line.startswith("|") and not before.startswith("|") and not RULE.match(after):
            yield number
        before = line


def test_nothing_is_left_to_be_done() -> None:
    assert _hits(UNFINISHED, ".py", ".pyi", ".cpp", ".h", ".mlir", ".test") == []


def test_no_path_of_one_machine() -> None:
    assert _hits(ONE_MACHINE, ".py", ".cpp", ".h", ".mlir", ".test", ".md", ".yaml", ".json") == []


def test_what_is_ignored_names_its_rule_and_a_reason() -> None:
    assert _hits(BARE_IGNORE, ".py", ".pyi") == []


def test_no_model_is_left_in_the_root() -> None:
    found = subprocess.run(
        ["git", "ls-files", ":(glob)*"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert not [name for name in found.stdout.splitlines() if Path(name).suffix in MODELS]
