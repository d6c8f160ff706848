"""Modules, reproducers and plans that name Python files as cost model: the code runs only where it is given."""

from __future__ import annotations

import json
import py_compile
import shutil
from pathlib import Path

import pytest

import t10
from t10.chip import load_chip
from t10.cli import entry
from t10.cost.registry import cost_model, given, giving, stated
from t10.errors import InputError
from t10.opt import main as opt
from t10.translate import main as translate

CHIP = load_chip("test-16")
MODEL = """func.func @main(%a: tensor<2x6xf32>, %b: tensor<6x3xf32>) -> tensor<2x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = linalg.matmul ins(%a, %b : tensor<2x6xf32>, tensor<6x3xf32>) outs(%init : tensor<2x3xf32>) -> tensor<2x3xf32>
    loc("product")
  return %c : tensor<2x3xf32>
}
"""
PLANNED = "--t10-partition=chip=test-16 cost-model={}"
NOT_GIVEN = "is a Python file, which runs only where it is given"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a current folder with a model and a cost model in x/ that leaves a file `marker` when it runs."""
    monkeypatch.chdir(tmp_path)
    write_code(Path("x/evil.py"))
    Path("model.mlir").write_text(MODEL, encoding="utf-8")
    return tmp_path


def write_code(path: Path, end: str = "") -> None:
    """Write a cost model that leaves a file `marker` in the current folder."""
    path.parent.mkdir(exist_ok=True)
    text = "open('marker', 'w').close()\nfrom t10.cost import IpuCostModel as cost_model\n"
    path.write_text(text + end, encoding="utf-8")


def ran() -> bool:
    """Return whether the code ran since this was asked last."""
    has_run = Path("marker").exists()
    Path("marker").unlink(missing_ok=True)
    return has_run


def planned(*passes: str, file: str = "x/evil.py") -> str:
    """Return the path of a module that was planned under the file; the code ran for that, and no longer counts."""
    assert opt.main(["model.mlir", PLANNED.format(file), *passes, "-o", "planned.mlir"]) == 0
    assert ran()
    return "planned.mlir"


PASSES = ("pareto", "reconcile", "expand", "place", "verify-plan", "lower-ipu")


@pytest.mark.parametrize("name", PASSES)
def test_a_module_does_not_make_a_pass_run_code(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main([planned(), f"--t10-{name}"]) == InputError.exit_code
    assert not ran()
    error = capsys.readouterr().err
    assert f"'x/evil.py' {NOT_GIVEN}" in error
    assert "--allow-cost-model=x/evil.py" in error


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("way", ["option", "flag", "elsewhere"])
def test_a_file_that_is_given_runs(name: str, way: str) -> None:
    path = planned()
    shutil.copy("x/evil.py", "moved.py")
    words = {
        "option": [f"--t10-{name}=cost-model=x/evil.py"],
        "flag": ["--allow-cost-model=x/evil.py", f"--t10-{name}"],
        "elsewhere": ["--allow-cost-model=moved.py", f"--t10-{name}"],
    }
    assert opt.main([path, *words[way], "-o", "out.mlir"]) == 0
    assert ran()
    assert (
        't10.cost_model_digest = "sha256:' in Path("out.mlir").read_text(encoding="utf-8")
        or name == "lower-ipu"
    )


def test_placing_what_is_expanded_prices_wishes_by_the_file_that_is_given() -> None:
    path = planned("--t10-expand")
    assert opt.main([path, "--t10-place"]) == InputError.exit_code
    assert not ran()
    assert opt.main([path, "--allow-cost-model=x/evil.py", "--t10-place", "-o", "out.mlir"]) == 0
    assert ran()


def test_a_file_that_has_changed_since_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    path = planned()
    write_code(Path("x/evil.py"), "x = 1\n")
    assert opt.main([path, "--allow-cost-model=x/evil.py", "--t10-lower-ipu"]) == InputError.exit_code
    assert not ran()
    assert "x/evil.py is not the one that was planned with: sha256:" in capsys.readouterr().err


def test_another_function_of_a_given_file_is_not_given(capsys: pytest.CaptureFixture[str]) -> None:
    path = planned(file="x/evil.py:cost_model")
    assert opt.main([path, "--allow-cost-model=x/evil.py", "--t10-lower-ipu"]) == InputError.exit_code
    assert not ran()
    assert NOT_GIVEN in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["../up/evil.py", "/etc/evil.py", "evil.py:f", "x//evil.py:", "x\\00.py", "a\\0A.py"]
)
def test_hostile_names_are_only_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(planned())
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("x/evil.py", name), encoding="utf-8")
    for words in ([], ["--allow-cost-model=x/evil.py:no_such"]):
        assert opt.main([str(path), "--t10-pareto", *words]) == InputError.exit_code
        assert not ran()
        assert NOT_GIVEN in capsys.readouterr().err


def test_a_module_without_a_digest_takes_the_given_file_of_that_name_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = Path(planned())
    text = path.read_text(encoding="utf-8")
    digest = text[
        text.index(", t10.cost_model_digest") : text.index("} {", text.index("t10.cost_model_digest"))
    ]
    path.write_text(text.replace(digest, ""), encoding="utf-8")
    write_code(Path("y/other.py"))
    assert opt.main([str(path), "--allow-cost-model=y/other.py", "--t10-pareto"]) == InputError.exit_code
    assert not ran()
    capsys.readouterr()
    write_code(Path("y/evil.py"))
    assert opt.main([str(path), "--allow-cost-model=y/evil.py", "--t10-pareto", "-o", "out.mlir"]) == 0
    assert ran()


REPRODUCER = """{{-#
  external_resources: {{
    mlir_reproducer: {{
      pipeline: "builtin.module({})",
      verify_each: true
    }}
  }}
#-}}
"""


def test_the_pipeline_of_a_reproducer_gives_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = "t10-partition{chip=test-16 cost-model=x/evil.py},t10-pareto"
    Path("crash.mlir").write_text(MODEL + REPRODUCER.format(pipeline), encoding="utf-8")
    assert opt.main(["--run-reproducer", "crash.mlir"]) == InputError.exit_code
    assert not ran()
    assert "--allow-cost-model=x/evil.py" in capsys.readouterr().err
    shutil.copytree("x", "y")
    assert (
        opt.main(["--run-reproducer", "--allow-cost-model=y/evil.py", "crash.mlir"]) == InputError.exit_code
    )
    assert not ran()
    assert opt.main(["--run-reproducer", "--allow-cost-model=x/evil.py", "crash.mlir", "-o", "out.mlir"]) == 0
    assert ran()


@pytest.mark.parametrize(
    "pipeline", ["snapshot-op-locations{filename=written}", "gpu-module-to-binary{toolkit=x}"]
)
def test_the_pipeline_of_a_reproducer_neither_writes_files_nor_runs_tools(
    pipeline: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("crash.mlir").write_text(MODEL + REPRODUCER.format(f"cse,{pipeline}"), encoding="utf-8")
    assert opt.main(["--run-reproducer", "crash.mlir"]) == InputError.exit_code
    assert not Path("written").exists()
    assert f"runs {pipeline.partition('{')[0]}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["compile", "planned.mlir", "-o", "out"],
        ["verify", "planned.mlir"],
        ["inspect", "planned.mlir"],
        ["pareto", "planned.mlir", "--op", "product"],
        ["explain", "planned.mlir"],
    ],
)
@pytest.mark.parametrize("stage", ["fused", "planned", "placed", "lowered"])
def test_no_command_runs_code_of_a_module(
    words: list[str], stage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(
        *{"planned": ["--t10-reconcile"], "placed": ["--t10-place"], "lowered": ["--t10-lower-ipu"]}.get(
            stage, []
        )
    )
    entry.main([*words, "--chip", "test-16"] if words[0] not in ("inspect", "explain") else words)
    assert not ran()
    assert translate(["--ipu-to-asm", "planned.mlir"]) == (0 if stage == "lowered" else InputError.exit_code)
    assert not ran()
    capsys.readouterr()


def test_pins_of_a_plan_give_no_code() -> None:
    t10.compile("model.mlir", "test-16").save("out")
    path = Path("out/plan.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    document["extra"] = {"cost_model": str(Path("x/evil.py").resolve())}
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError, match="extra: unknown field"):
        t10.compile("model.mlir", "test-16", plan=path)
    words = ["model.mlir", f"--t10-partition=chip=test-16 plan={path}", "-o", "out.mlir"]
    assert opt.main(words) == InputError.exit_code
    assert not ran()


def test_compiled_code_beside_a_given_file_does_not_run() -> None:
    py_compile.compile("x/evil.py", invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    Path("x/evil.py").write_text("from t10.cost import IpuCostModel as cost_model\n", encoding="utf-8")
    cost_model(given("x/evil.py"), CHIP)
    assert not ran()


def test_a_file_that_changes_after_it_is_given_does_not_run() -> None:
    file = given("x/evil.py")
    write_code(Path("x/evil.py"), "x = 1\n")
    with pytest.raises(InputError, match=r"x/evil\.py has changed since it was given"):
        cost_model(file, CHIP)
    assert not ran()


def test_the_name_of_a_file_alone_runs_nothing() -> None:
    with pytest.raises(InputError, match=NOT_GIVEN):
        cost_model("x/evil.py", CHIP)
    with pytest.raises(InputError, match=NOT_GIVEN):
        stated("x/evil.py", None)
    file = given("x/evil.py")
    assert not isinstance(file, str)
    with giving([file]):
        assert stated("elsewhere/evil.py", file.digest) is file
    assert not ran()
    cost_model(file, CHIP)
    assert ran()
