"""Native code that a file brings down ends a command with one line and an exit code, not with a core dump."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t10.core.guard import ended_clearly, reading
from t10.errors import InputError

# MLIR's own parser ends the process at both: it takes for granted that these lists hold numbers and texts.
BAD_PERMUTATION = """
func.func @f(%x: tensor<6x8xf32>, %e: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %t = linalg.transpose ins(%x : tensor<6x8xf32>) outs(%e : tensor<8x6xf32>) permutation = [, 0]
  return %t : tensor<8x6xf32>
}
"""
BAD_ITERATORS = """
#all = affine_map<(i, j) -> (i, j)>
func.func @f(%x: tensor<6x8xf32>, %e: tensor<6x8xf32>) -> tensor<6x8xf32> {
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", -5]}
    ins(%x : tensor<6x8xf32>) outs(%e : tensor<6x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<6x8xf32>
  return %r : tensor<6x8xf32>
}
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT])
def test_a_signal_while_a_file_is_read_is_an_error_of_the_file(number: signal.Signals) -> None:
    ended = _run(
        "import os; from t10.core.guard import ended_clearly, reading\n"
        f"with ended_clearly('t10'), reading('m.mlir'): os.kill(os.getpid(), {int(number)})"
    )
    assert ended.returncode == InputError.exit_code
    assert ended.stderr.startswith("t10: error: m.mlir: ")
    assert number.name in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_signal_while_onnx_runtime_runs_a_file_is_no_defect_of_ours() -> None:
    ended = _run(
        "import os; from t10.core.guard import ended_clearly, running_reference\n"
        f"with ended_clearly('t10'), running_reference('m.onnx'): os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    )
    assert ended.returncode == InputError.exit_code
    assert ended.stderr.startswith(
        "t10: error: m.onnx: ONNX Runtime, which runs it for comparison, gave up (SIGSEGV"
    )


def test_a_file_that_takes_too_long_to_parse_is_an_error_of_the_file() -> None:
    ended = _run(
        "from t10.core import guard\n"
        "guard._PARSING_SECONDS = 0.1\n"
        "with guard.ended_clearly('t10'), guard.reading('m.mlirbc'):\n"
        "  with guard.parsing(b''): pass\n"
        "  sum(range(10**7))\n"
        "  with guard.parsing(b''):\n"
        "    while True: pass"
    )
    assert ended.returncode == InputError.exit_code
    assert ended.stderr.startswith("t10: error: m.mlirbc: ")
    assert "(out of time: " in ended.stderr


def test_a_signal_elsewhere_is_a_defect() -> None:
    ended = _run(
        "import os; from t10.core.guard import ended_clearly, reading\n"
        "with ended_clearly('t10'):\n"
        "  with reading('m.mlir'): pass\n"
        f"  os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    )
    assert ended.returncode == 70
    assert "internal error: SIGSEGV" in ended.stderr


def test_recursion_without_end_in_native_code_is_told_too(tmp_path: Path) -> None:
    path = tmp_path / "deep.mlir"
    path.write_text("func.func @f(%a: " + "tuple<" * 200_000 + "i32" + ">" * 200_000 + ") { return }")
    ended = _run(f"import sys; from t10.opt.main import main; sys.exit(main([{str(path)!r}]))")
    assert ended.returncode == InputError.exit_code
    assert ended.stderr.startswith("t10-opt: error: ")


def test_behind_a_command_and_without_one_nothing_is_changed() -> None:
    kill = f"os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    start = "import os; from t10.core.guard import ended_clearly, reading\n"
    for code in (f"with ended_clearly('t10'): pass\n{kill}", f"with reading('m.mlir'): {kill}"):
        ended = _run(start + code)
        assert (ended.returncode, ended.stderr) == (-signal.SIGSEGV, "")


def test_a_command_inside_a_command_leaves_the_outer_one_armed() -> None:
    ended = _run(
        "import os; from t10.core.guard import ended_clearly\n"
        "with ended_clearly('t10'):\n"
        "  with ended_clearly('t10-opt'): pass\n"
        f"  os.kill(os.getpid(), {int(signal.SIGSEGV)})"
    )
    assert ended.returncode == 70
    assert ended.stderr.startswith("t10: internal error: ")


def test_no_memory_is_an_error_of_the_file() -> None:
    with pytest.raises(InputError, match=r"m\.mlir: .*memory"), reading("m.mlir"):
        raise MemoryError
    with ended_clearly("t10"), pytest.raises(InputError), reading("m.mlir"):
        raise MemoryError


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [BAD_PERMUTATION, BAD_ITERATORS])
@pytest.mark.parametrize(
    "command",
    ["t10.opt.main|--t10-fuse", "t10.cli.entry|inspect", "t10.cli.entry|compile --no-program -o out"],
)
def test_text_that_ends_mlirs_parser_is_refused(text: str, command: str, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(text, encoding="utf-8")
    module, _, words = command.partition("|")
    code = f"import sys; from {module} import main; sys.exit(main({[*words.split(), str(path)]!r}))"
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ended.returncode == InputError.exit_code
    assert "error: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out").exists()
