"""The tutorials of docs do what they say: their commands are run as they stand, one after the other."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = {
    "deploy-a-model": ("out/report.html", "y.npz", "out/program/program.cpp", "half/report.json"),
    "design-a-chip": ("compare.html", "sweep/sweep.csv", "small/report.html"),
}
"""By page: files that are there in the end."""
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# About 20 and 35 s; not marked slow, so that CI runs each every time: what a page shows must be what is printed.
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_as_it_stands(name: str, tmp_path: Path) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    commands = tmp_path / "bin"
    commands.mkdir()
    for tool, module in (("t10", "t10.cli"),):
        (commands / tool).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (commands / tool).chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {
        **os.environ,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "python"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "COLUMNS": "100",
    }
    printed = ""
    blocks = BLOCK.findall(page)
    assert len(blocks) > 3
    for kind, text in blocks:
        if kind == "text":
            assert [line for line in text.splitlines() if _spaced(line) not in _spaced(printed)] == []
            continue
        done = subprocess.run(
            ["bash", "-euc", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"
        printed = done.stdout
    for left in TUTORIALS[name]:
        assert (tmp_path / left).is_file()
        if left.endswith(".csv"):
            with (tmp_path / left).open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            # What is varied makes a difference, and what the page says of it is so.
            assert [len({row[name] for row in rows}) for name in ("cycles", "used_bytes")] == [4, 4]
            few, many_cores, much_memory, _ = (int(row["cycles"]) for row in rows)
            assert much_memory < many_cores < few
    if (ROOT / ".git").exists():
        made = [path.name for path in tmp_path.iterdir() if path.name not in {"bin", "examples", "cache"}]
        # Folders that are not there are named with a slash.
        asked = [f"{name}/" if (tmp_path / name).is_dir() else name for name in made]
        ignored = subprocess.run(
            ["git", "-C", str(ROOT), "check-ignore", *asked], capture_output=True, text=True, check=False
        )
        assert ignored.stdout.split() == asked


def _spaced(text: str) -> str:
    """Return a text with single spaces; its cycles stay: the same input gives the same plan on every machine."""
    return " ".join(text.split())
