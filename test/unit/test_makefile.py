"""What the Makefile installs when, from the commands that it would run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import requirements

ROOT = Path(__file__).resolve().parents[2]
STAMPS = (".made", ".packages", ".built", ".runs", ".installed")


def _commands(folder: Path, *arguments: str) -> str:
    """Return what `make` would run with the environment in `folder`."""
    command = ("make", "--dry-run", f"VENV={folder}", *arguments)
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    for stamp in STAMPS:
        (tmp_path / stamp).touch()
    return tmp_path


def test_the_demo_does_not_install_the_tools_of_the_suite(tmp_path: Path) -> None:
    commands = _commands(tmp_path, "demo")
    assert "--editable ." in commands
    assert "requirements.py >" in commands
    assert "requirements.py dev" not in commands


def test_the_suite_after_the_demo_installs_its_tools_alone(installed: Path) -> None:
    (installed / ".installed").unlink()
    commands = _commands(installed, "dev")
    assert "requirements.py dev" in commands
    assert "requirements.py >" not in commands
    assert "--editable ." not in commands


@pytest.mark.parametrize("target", ["demo", "dev"])
def test_what_is_installed_is_not_installed_again(installed: Path, target: str) -> None:
    assert "pip" not in _commands(installed, target)


@pytest.mark.parametrize("target", ["demo", "dev"])
def test_a_changed_native_source_is_built_without_fetching_packages(installed: Path, target: str) -> None:
    for stamp in (".built", ".runs"):
        os.utime(installed / stamp, (0, 0))
    commands = _commands(installed, target)
    assert "--editable ." in commands
    assert "--requirement" not in commands


def test_packages_are_compiled_at_once_where_python_may_not_do_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert "--no-compile" in _commands(tmp_path, "demo")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert "--no-compile" not in _commands(tmp_path, "demo")


@pytest.mark.parametrize(("extra", "name"), [("", "torch-mlir"), ("dev", "pytest")])
def test_requirements_are_those_of_the_project(extra: str, name: str) -> None:
    listed = requirements.requirements(extra)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert [line for line in listed if f'  "{line}",' not in text] == []
    assert any(re.match(rf"{name}\b", line) for line in listed)
    assert not {*requirements.requirements()} & {*requirements.requirements("dev")}
