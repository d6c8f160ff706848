"""Mutants: the tool reports what tests do not notice and leaves the tree alone; a draw of the list is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from mutants import drawn, read_mutants

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "mutants.py"
SECONDS = 20.0
"""How long mutants are drawn in CI; some ten more go by until the last one is judged."""

LIST = """
halves.py:
- name: rounds-up
  old: n // 2
  new: -(-n // 2)
  means: odd numbers have larger halves
  tests: [test_halves.py::test_even, test_halves.py::test_odd]
- name: never-ends
  old: return n // 2
  new: |-
    __import__("pathlib").Path("begun").write_text(f"{__import__('os').getpid()}\\n")
        while n:
            pass
  means: it runs on and on
  tests: [test_halves.py]
- name: not-checked
  old: '"half"'
  new: '"moiety"'
  means: another word
  tests: [test_halves.py]
"""
STALE = {
    "its old text occurs 0 times in halves.py, expected once": ("old: n // 2", "old: n / 2"),
    "its old text occurs 3 times in halves.py, expected once": ("old: n // 2", "old: n"),
    "rounds-up: its old text occurs 0 times": ("old: n // 2", "old: -(-n // 2)"),
    "there is no file quarters.py": ("halves.py:\n", "quarters.py:\n"),
    "there are no tests test_quarters.py": ("tests: [test_halves.py]", "tests: [test_quarters.py]"),
    "two mutants are called rounds-up": ("name: never-ends", "name: rounds-up"),
    "there are no tests test_halves.py::test_none": ("test_halves.py::test_odd", "test_halves.py::test_none"),
}
"""Changes of the list, and what is said of each."""

NATIVE = """
halves.cpp:
- name: built-for-ever
  old: int halves;
  new: int moieties;
  means: the build runs on and on
  tests: [test_halves.py]
"""
TESTS = """
import time
from halves import half
def test_even(): assert half(4) == 2
def test_odd(): assert half(5) == 2
"""
BUILD = """
cmake_minimum_required(VERSION 3.16)
project(halves LANGUAGES NONE)
add_custom_target(halves ALL COMMAND sh -c "echo $$ > begun; sleep 1000; true" VERBATIM)
"""


def is_running(process: int) -> bool:
    """Return whether a process lives: one that was killed stays as a zombie until init collects it."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def tree(folder: Path, text: str = LIST) -> Path:
    """Return a small project with a list of mutants."""
    (folder / "test" / "mutants").mkdir(parents=True)
    (folder / "python").mkdir()
    (folder / "halves.py").write_text('NAME = "half"\ndef half(n):\n    return n // 2\n')
    (folder / "halves.cpp").write_text("int halves;")
    (folder / "CMakeLists.txt").write_text(BUILD)
    (folder / "test_halves.py").write_text(TESTS)
    (folder / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["."]\naddopts = ["-ra"]\n'
    )
    (folder / "test" / "mutants" / "halves.yaml").write_text(text)
    return folder


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOOL), "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_survivors_are_reported_and_the_tree_stays_as_it_is(tmp_path: Path) -> None:
    root = tree(tmp_path)
    before = contents(root)
    done = run(root, "--limit", "2")
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert [line.split()[0] for line in lines if "halves" in line or " s  " in line][:3] == [
        "killed",
        "killed",
        "SURVIVED",
    ]
    assert "test_halves.py::test_odd" in lines[0]
    assert lines[1].endswith("time")
    assert "halves.py: another word" in done.stdout
    assert lines[-1] == "3 of 3 mutants: 2 killed, 1 survived, 0 equivalent"
    assert contents(root) == before


@pytest.mark.slow
def test_equivalent_mutants_pass_until_a_test_kills_them(tmp_path: Path) -> None:
    known = LIST.replace("  means: another word\n", "  means: another word\n  equivalent: nothing reads it\n")
    root = tree(tmp_path, known.replace("  means: odd", "  equivalent: no number is odd\n  means: odd"))
    assert run(root, "--only", "not-*").returncode == 0
    done = run(root, "--only", "rounds-*")
    assert done.returncode == 1
    assert "is listed as equivalent: no number is odd" in done.stdout


@pytest.mark.parametrize(("said", "change"), STALE.items())
def test_a_stale_list_is_an_error(tmp_path: Path, said: str, change: tuple[str, str]) -> None:
    done = run(tree(tmp_path, LIST.replace(*change)), "--only", "rounds-up")
    assert done.returncode == 2
    assert said in done.stderr


def test_tests_must_pass_without_the_mutant(tmp_path: Path) -> None:
    root = tree(tmp_path)
    (root / "test_halves.py").write_text(TESTS.replace("half(5) == 2", "half(5) == 3"))
    done = run(root, "--only", "rounds-up")
    assert done.returncode == 2
    assert "test_halves.py::test_odd fails without any mutant" in done.stderr


@pytest.mark.parametrize("name", ["never-ends", "built-for-ever"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_behind(tmp_path: Path, name: str, number: signal.Signals) -> None:
    root, copies = tree(tmp_path / "root", LIST + NATIVE), tmp_path / "copies"
    copies.mkdir()
    before = contents(root)
    with subprocess.Popen(
        [sys.executable, str(TOOL), "--root", str(root), "--only", name],
        env={**os.environ, "TMPDIR": str(copies)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        endless = ""
        while not endless.endswith("\n"):
            assert process.poll() is None
            time.sleep(0.05)
            endless = "".join(path.read_text() for path in copies.rglob("begun"))
        for _ in range(3):
            os.killpg(process.pid, number)
            time.sleep(0.05)
        said, told = process.communicate()
    assert process.returncode == 128 + number
    assert said == ""
    assert told == f"mutants: ended by {number.name} after 0 mutants\n"
    assert not list(copies.iterdir())
    assert contents(root) == before
    assert not is_running(int(endless))


def test_the_list_is_long_and_drawn_by_the_commit() -> None:
    mutants = read_mutants(ROOT)
    assert len(mutants) >= 120
    one, other = drawn(mutants, "a"), drawn(mutants, "b")
    assert one == drawn(reversed(mutants), "a")
    assert one != other
    assert sorted(m.name for m in one) == sorted(m.name for m in other)


@pytest.mark.slow
def test_a_draw_of_the_list_is_killed() -> None:
    done = run(ROOT, "--draw", "HEAD", "--seconds", str(SECONDS))
    assert done.returncode == 0, done.stdout + done.stderr
