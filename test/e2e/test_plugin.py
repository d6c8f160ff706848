"""A package of its own adds a pass, a dialect, a chip and codelets; the tutorial about it is true."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.plugin import SOURCE, install_plugin

ROOT = SOURCE.parents[1]
TUTORIAL = (ROOT / "docs" / "your-first-pass.md").read_text(encoding="utf-8")
MODULE = re.findall(r"```mlir\n(.*?)```", TUTORIAL, re.DOTALL)[0]


class Installed:
    """Commands in a process that finds the package, in a folder that holds product.mlir."""

    def __init__(self, folder: Path, *site: Path) -> None:
        self.folder = folder
        (folder / "product.mlir").write_text(MODULE)
        paths = [ROOT / "python", *site]
        self.env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `t10-opt` or `t10` with arguments."""
        module = {"t10-opt": "t10.opt.main", "t10": "t10.cli.__main__"}[words[0]]
        command = [sys.executable, "-m", module, *words[1:]]
        return subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path, install_plugin(tmp_path / "site"))


def test_the_tutorial_shows_the_package_as_it_is() -> None:
    shown = re.findall(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    assert shown == [(SOURCE / "src" / "t10_example" / "count_products.py").read_text(encoding="utf-8")]
    project = (SOURCE / "pyproject.toml").read_text(encoding="utf-8")
    for line in re.findall(r"```toml\n(.*?)```", TUTORIAL, re.DOTALL)[0].splitlines():
        assert line in project


def test_the_commands_of_the_tutorial_run(installed: Installed) -> None:
    lines = re.findall(r"```sh\n(.*?)```", TUTORIAL, re.DOTALL)[0].splitlines()
    commands = [shlex.split(line) for line in lines if line.startswith("t10-opt")]
    assert len(commands) == 4
    counted, refused, fused, listed = (installed.run(*command) for command in commands)
    assert "attributes {example.products = 64 : i64}" in counted.stdout
    assert "product.mlir:5:8: remark: 'linalg.matmul' op computes 64 products" in counted.stderr
    error = re.findall(r"```text\n(.*?)```", TUTORIAL, re.DOTALL)[0]
    assert refused.stderr.startswith(error)
    assert refused.returncode == 3
    assert "example.products = 64" in fused.stdout
    assert "linalg.matmul" not in fused.stdout
    assert "example-count-products" in listed.stdout


def test_options_and_help_of_a_pass_are_those_of_its_class(installed: Installed) -> None:
    told = installed.run("t10-opt", "--help").stdout
    assert "Passes of other packages:" in told
    assert "refuse matrix products of more" in told
    wrong = installed.run("t10-opt", "--example-count-products=least=3", "product.mlir")
    assert "has no option 'least'" in wrong.stderr
    near = installed.run("t10-opt", "--example-count-product", "product.mlir")
    assert "Did you mean '--example-count-products'?" in near.stderr


def test_operations_of_its_dialect_are_known(installed: Installed) -> None:
    (installed.folder / "note.mlir").write_text('"example.note"() {text = "seen"} : () -> ()\n')
    (installed.folder / "bad.mlir").write_text('"example.note"() : () -> ()\n')
    assert 'text = "seen"' in installed.run("t10-opt", "note.mlir").stdout
    assert installed.run("t10-opt", "bad.mlir").returncode == 2


@pytest.mark.slow
def test_its_chip_and_codelets_have_names(installed: Installed) -> None:
    done = installed.run("t10-opt", "--t10-partition=chip=example-8", "product.mlir")
    assert 't10.chip = "example-8"' in done.stdout, done.stderr
    unknown = installed.run("t10-opt", "--t10-partition=chip=example-9", "product.mlir")
    assert "example-8" in unknown.stderr
    compile_ = (
        "t10",
        "compile",
        "product.mlir",
        "--chip",
        "example-8:sync_cycles=60",
        "--codelets",
        "example",
    )
    made = installed.run(*compile_, "-o", "out", "--quiet")
    assert made.returncode == 0, made.stderr
    absent = installed.run(*compile_[:-1], "nobody", "-o", "out", "--quiet")
    assert absent.returncode == 2


def test_two_packages_of_one_name_are_refused(tmp_path: Path) -> None:
    sites = install_plugin(tmp_path / "site"), install_plugin(tmp_path / "other", "t10-other")
    done = Installed(tmp_path, *sites).run("t10-opt", "--example-count-products", "product.mlir")
    assert done.returncode == 2
    assert "is added by t10-other, but t10-example has it already" in done.stderr


WRONG = """
from dataclasses import dataclass
from typing import ClassVar
from t10.dialect.mlir import ir
from t10.passes.registry import Pass

@dataclass(frozen=True, slots=True)
class Circle(Pass):
    \"\"\"Needs itself.\"\"\"
    name: ClassVar[str] = "wrong-circle"
    prerequisites: ClassVar[tuple[str, ...]] = ("wrong-circle",)

@dataclass(frozen=True, slots=True)
class Leaves(Pass):
    \"\"\"Ends the program.\"\"\"
    name: ClassVar[str] = "wrong-leaves"
    def apply(self, module):
        raise SystemExit(0)

@dataclass(frozen=True, slots=True)
class Breaks(Pass):
    \"\"\"Leaves a function that takes nothing.\"\"\"
    name: ClassVar[str] = "wrong-breaks"
    def apply(self, module):
        for function in module.body.operations:
            nothing = ir.FunctionType.get([], [])
            function.attributes["function_type"] = ir.TypeAttr.get(nothing)
"""
ENTRIES = """[t10.passes]
wrong-breaks = wrong:Breaks
wrong-circle = wrong:Circle
wrong-leaves = wrong:Leaves
wrong-name = wrong:Nothing
wrong-text = wrong_text:Nothing
"""


def test_wrong_passes_are_named_and_take_nothing_else_down(tmp_path: Path) -> None:
    site = tmp_path / "site"
    about = site / "wrong-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: wrong\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRIES)
    (site / "wrong.py").write_text(WRONG)
    (site / "wrong_text.py").write_text("1 +\n")
    installed = Installed(tmp_path, site)
    circle = installed.run("t10-opt", "--wrong-circle", "product.mlir")
    assert (circle.returncode, circle.stdout) == (2, "")
    assert "pass wrong-circle has itself as a prerequisite: wrong-circle needs wrong-circle" in circle.stderr
    leaves = installed.run("t10-opt", "--wrong-leaves", "product.mlir", "-o", "out.mlir")
    assert leaves.returncode == 70
    assert "internal error in pass wrong-leaves: SystemExit: 0" in leaves.stderr
    breaks = installed.run("t10-opt", "--wrong-breaks", "product.mlir", "-o", "out.mlir")
    assert breaks.returncode == 70
    assert "internal error in pass wrong-breaks: MLIR refuses what it makes" in breaks.stderr
    listed = installed.run("t10-opt", "--list-passes")
    assert listed.returncode == 0
    assert "wrong-circle              Needs itself." in listed.stdout
    assert "(t10.passes: wrong-name is wrong:Nothing, which cannot be loaded: AttributeError" in listed.stdout
    assert "wrong_text:Nothing, which cannot be loaded: SyntaxError" in listed.stdout
    assert installed.run("t10-opt", "--help").returncode == 0
