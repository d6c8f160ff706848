"""`t10-opt` where lit cannot go: passes that misbehave, prerequisites, closed pipes, start-up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import passes as test_passes

from t10.opt.diagnostics import Diagnostics
from t10.opt.main import main
from t10.passes import registry

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., tuple[int, str, str]]
"""Takes arguments and the input's text; returns exit code, output and errors."""
MODULE = "func.func private @f(tensor<4xf16>)\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs t10-opt on a text with the test passes registered: (exit code, output, errors)."""
    monkeypatch.setattr(registry, "PASSES", (*registry.PASSES, *test_passes.REGISTERED))

    def invoke(*arguments: str, text: str = MODULE) -> tuple[int, str, str]:
        file = tmp_path / "in.mlir"
        file.write_text(text, encoding="utf-8")
        code = main([*arguments, str(file)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err.replace(str(file), "in.mlir")

    return invoke


def test_an_exception_without_diagnostics_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """MLIR refuses some damaged bytecode without a word."""

    class Silent(Exception):
        error_diagnostics: tuple[object, ...] = ()

    diagnostics = Diagnostics("x.mlirbc", None)
    diagnostics.add_exception(Silent("Unable to parse module assembly"))
    diagnostics.show()
    assert capsys.readouterr().err == "x.mlirbc: error: Unable to parse module assembly\n"


def test_a_refusing_pass_points_at_the_operation_and_exits_3(run: Run) -> None:
    code, out, err = run("--t10-test-refuse")
    assert (code, out) == (3, "")
    assert err.splitlines() == [
        "in.mlir:1:1: error: 'func.func' op found a function, expected none (remove it)",
        MODULE.rstrip(),
        "^",
    ]


def test_a_model_that_does_not_fit_exits_4_and_names_the_operator(run: Run) -> None:
    code, _, err = run("--t10-test-too-big")
    assert code == 4
    assert err == "error: operator '/mlp/MatMul': needs 9 bytes, 8 are there\n"


def test_a_defect_of_a_pass_is_one_line_and_exits_70(run: Run) -> None:
    code, _, err = run("--t10-test-crash")
    assert code == 70
    assert "internal error in pass t10-test-crash: ValueError: the sky fell (at passes.py:" in err
    assert "Traceback" not in err


def test_a_defect_of_the_driver_is_one_line_and_exits_70(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object) -> str:
        raise ZeroDivisionError("no")

    monkeypatch.setattr("t10.opt.main.asm", defect)
    code, _, err = run()
    assert code == 70
    assert err.startswith("t10-opt: internal error: ZeroDivisionError: no (at test_opt.py:")


def test_a_pass_that_breaks_a_layout_is_found_out_and_exits_5(run: Run) -> None:
    code, _, err = run("--t10-test-break-layout")
    assert code == 5
    assert "argument #0: linear layout on cores = 0, expected at least 1" in err
    assert "pass t10-test-break-layout left layouts or plans behind" in err


def test_a_module_that_does_not_read_back_is_not_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = MODULE.replace("4xf16", "4xf16, #rtensor.linear<{cores = 0}>")

    def asm(*_: object) -> str:
        return broken

    monkeypatch.setattr("t10.opt.main.asm", asm)
    code, out, err = run()
    assert (code, out) == (70, "")
    assert "argument #0: linear layout on cores = 0, expected at least 1" in err
    assert "the module does not read back" in err


def test_a_pass_that_breaks_the_ir_is_found_out_and_exits_70(run: Run) -> None:
    code, _, err = run("--t10-test-break-ir")
    assert code == 70
    assert "'func.func' op" in err


def test_verify_each_can_be_turned_off(run: Run) -> None:
    assert run("--t10-test-break-layout", "--verify-each=false")[0] == 0


def test_warnings_and_remarks_of_passes_are_shown_and_do_not_fail(run: Run) -> None:
    code, out, err = run("--t10-test-talk")
    assert code == 0
    assert "func.func private @f" in out
    assert "in.mlir:1:1: warning: 'func.func' op looks odd" in err
    assert "in.mlir:1:1: remark: 'func.func' op is a function" in err


def test_warnings_and_remarks_can_be_expected(run: Run) -> None:
    text = "// expected-remark @below {{is a function}}\n// expected-warning @below {{looks odd}}\n" + MODULE
    code, _, err = run("--t10-test-talk", "--verify-diagnostics", text=text)
    assert (code, err) == (0, "")


def test_a_pass_runs_what_it_needs_and_hands_options_down(run: Run) -> None:
    _, out, _ = run("--t10-test-second=chip=test-64")
    assert 'test.first = "test-64 []"' in out
    assert 'test.second = "test-64"' in out
    assert "test.count = 1" in out


def test_a_pass_does_not_run_again_what_was_done(run: Run) -> None:
    _, out, _ = run("--t10-test-first=chip=test-16 weights=3,4", "--t10-test-second", "--t10-test-second")
    assert 'test.first = "test-16 [3, 4]"' in out
    assert "test.count = 1" in out


def test_prerequisites_show_up_among_printed_passes(run: Run) -> None:
    _, _, err = run("--t10-test-second", "--mlir-print-ir-after-all")
    assert err.index("IR Dump After First: t10-test-first") < err.index(
        "IR Dump After Second: t10-test-second"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("chips=x", "pass t10-test-first has no option 'chips' (expected one of: chip, weights)"),
        ("weights=1,x", "option weights of pass t10-test-first is '1,x', expected tuple[int, ...]"),
        ("chip=x chip=y", "pass t10-test-first has option 'chip' twice (expected once)"),
        ("chip=x =", "cannot read '=' in the options of pass t10-test-first"),
    ],
)
def test_wrong_pass_options_exit_1(run: Run, options: str, message: str) -> None:
    code, _, err = run(f"--t10-test-first={options}")
    assert code == 1
    assert message in err


def test_help_lists_options_of_passes_with_default_and_unit(run: Run) -> None:
    _, out, _ = run("--help")
    assert "weights=<tuple[int, ...]>" in out
    assert "numbers (default: none, unit: bytes)" in out
    assert "the chip (default: ipu-mk2)" in out
    assert "Runs first where missing: t10-test-first." in out


def test_a_reproducer_of_our_own_pass_is_kept(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "repro.mlir"
    run("--t10-test-first=chip=a", "--t10-test-crash", f"--mlir-pass-pipeline-crash-reproducer={file}")
    assert 'pipeline: "builtin.module(t10-test-first{chip=a},t10-test-crash)"' in file.read_text()
    assert main(["--run-reproducer", str(file)]) == 70


def test_a_file_that_is_no_text_says_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"\x08\x0a\xff\xfe")
    assert main([str(file)]) == 2
    assert "is neither MLIR text (UTF-8) nor bytecode: byte 2 is 0xff" in capsys.readouterr().err


def test_a_closed_pipe_is_no_error_of_ours() -> None:
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "t10-opt"), "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (0, 141)


def test_starting_imports_neither_numpy_nor_onnx() -> None:
    code = (
        "import sys, t10.opt.main as m; m.main(['--version'])\n"
        "print(sorted({'numpy', 'onnx', 'torch'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_reproducer_survives_a_crash_of_the_process(tmp_path: Path) -> None:
    source, kept = tmp_path / "in.mlir", tmp_path / "repro.mlir"
    source.write_text(MODULE, encoding="utf-8")
    code = (
        "import os, support.passes as passes\n"
        "from t10.passes import registry\n"
        "from t10.opt.main import main\n"
        "registry.PASSES += passes.REGISTERED\n"
        "passes.Crash.apply = lambda self, module: os.abort()\n"
        f"main(['--t10-test-crash', '--mlir-pass-pipeline-crash-reproducer={kept}', {str(source)!r}])"
    )
    environment = {"PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'test'}"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert (done.returncode, b"internal error: SIGABRT" in done.stderr) == (70, True)
    assert 'pipeline: "builtin.module(t10-test-crash)"' in kept.read_text(encoding="utf-8")
