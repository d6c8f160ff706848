"""What is around the package: version, licences, workflows, and that they say what is so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import make_dist
import pytest
import yaml

from t10.cli import main, parsing
from t10.report import analyser
from t10.report.analyser.document import STYLES
from t10.report.analyser.page import ANALYSER, COMPARISON
from t10.report.analyser.stages import PIPELINE
from t10.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github").rglob("*.yml"))


def test_the_version_names_the_commit_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run([*git, *words], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    monkeypatch.setattr(parsing, "ROOT", tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"t10 {VERSION} (commit {done.stdout[:12]})\n"


def test_without_a_checkout_the_version_is_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "ROOT", tmp_path)
    assert parsing.commit_of() == ""


def test_a_distribution_has_the_files_and_the_name_of_the_commit_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, folder = tmp_path / "checkout", tmp_path / "folder"
    kept, left = checkout / "python/t10/kept.py", checkout / "out/left.json"
    for path in (kept, left):
        path.parent.mkdir(parents=True)
        path.touch()
    (checkout / "link").symlink_to("python/t10")
    git = ("git", "-C", str(checkout), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "python", "link"), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *words], check=True)
    done = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    folder.mkdir()
    make_dist.export_commit(checkout, folder)
    assert (folder / "link").is_symlink()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    assert found == {"python/t10/kept.py", "python/t10/commit.txt"}

    def files_of(package: str) -> Path:
        return folder / "python" / package

    monkeypatch.setattr(parsing, "files", files_of)
    assert parsing.commit_of() == done.stdout[:12]


def test_the_makefile_distributes_what_the_tool_makes() -> None:
    command = ("make", "--dry-run", "dist")
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert "tools/make_dist.py" in printed
    assert make_dist.COMMIT_FILE in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")


def test_the_changelog_has_a_dated_section_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$", text, re.MULTILINE)


def test_workflows_run_targets_that_there_are() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    called = [
        name
        for path in WORKFLOWS
        for name in re.findall(r"\bmake ([a-z-]+)", path.read_text(encoding="utf-8"))
    ]
    assert {"test", "demo", "page", "dist"} <= set(called) <= targets


@pytest.mark.parametrize(
    "path",
    [*WORKFLOWS, ROOT / ".pre-commit-config.yaml"],
    ids=lambda path: path.name,
)
def test_configuration_is_yaml(path: Path) -> None:
    found: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)


def test_every_licence_that_is_named_is_there() -> None:
    text = (ROOT / "REUSE.toml").read_text(encoding="utf-8")
    named = set(re.findall(r'License-Identifier = "([^"]+)"', text))
    assert named == {path.stem for path in (ROOT / "LICENSES").glob("*.txt")}
    assert (ROOT / "LICENSES/Apache-2.0.txt").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_package_has_the_files_of_its_pages() -> None:
    folder = Path(str(analyser.__file__)).parent / "assets"
    assert {*ANALYSER, *COMPARISON, *PIPELINE, *STYLES, "uPlot.LICENSE"} == {
        path.name for path in folder.iterdir()
    }
