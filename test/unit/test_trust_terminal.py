"""What a model calls things reaches terminals, pages and pictures as text only."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from t10.cli import main
from t10.errors import InputError, printable
from t10.report.analyser.page import ANALYSER

CLEAR = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
HOSTILE = f"a{CLEAR}$\\frac$<script>alert(1)</script>--><b>|`[red]"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model all of whose names are hostile."""
    x, y, w = (f"{name}{HOSTILE}" for name in "xyw")
    graph = helper.make_graph(
        [helper.make_node("MatMul", [x, w], [y], name=f"n{HOSTILE}")],
        f"g{HOSTILE}",
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info(y, TensorProto.FLOAT, [4, 4])],
        [numpy_helper.from_array(np.ones((8, 4), np.float32), w)],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path_factory.mktemp("hostile") / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


@pytest.fixture(scope="module")
def folder(model: Path) -> Path:
    out = model.parent / "out"
    assert (
        main(["compile", str(model), "--chip", "test-4", "--no-program", "-o", str(out), "--no-cache"]) == 0
    )
    return out


def obeyed(text: str) -> str:
    """Return what a terminal would obey in a text."""
    return "".join(each for each in text if each in CLEAR and not each.isprintable())


def test_texts_are_made_printable() -> None:
    assert printable(f"a{CLEAR}b\n\tc é \u00a0") == "a?[2J?]0;owned??31m?b\n\tc é \u00a0"
    assert printable("\ud800") == "?"
    assert str(InputError("x\x1by", location="a\x9bb", operator="c\x07")) == "a?b: operator 'c?': x?y"


def test_names_reach_the_terminal_as_text(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    operator = f"n{HOSTILE}"
    picture = str(model.parent / "picture.svg")
    for command, *rest in (
        ("compile", str(model), "--chip", "test-4", "--no-program", "-o", str(model.parent / "again")),
        ("inspect", str(model)),
        ("inspect", str(model), "--json"),
        ("inspect", str(model), "--graph", picture),
        ("report", str(folder)),
        ("explain", str(folder)),
        ("explain", str(folder), "--op", operator, "--plot", picture),
        ("pareto", str(folder), "--op", operator, "--plot", picture),
        ("explain", str(folder), "--op", operator, "--json"),
        ("explain", str(folder), "--op", "none"),
        ("run", str(folder), "--outputs", str(model.parent / "out.npz")),
        ("run", str(folder), "--inputs", str(model.parent / "out.npz")),
        ("verify", str(model), "--chip", "test-4", "--seeds", "1", "--no-prove"),
    ):
        code = main([command, *rest])
        told = capsys.readouterr()
        assert code in (0, 2), told.err
        assert (obeyed(told.out), obeyed(told.err)) == ("", ""), command
        assert told.out or code


def test_names_reach_pages_and_pictures_as_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    capsys.readouterr()
    written = [path for path in folder.iterdir() if path.suffix in (".html", ".svg")]
    assert len(written) >= 4
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert obeyed(text) == ""
        # The page has its own code and data, and nothing from a name among them.
        n_own = len(ANALYSER) + 1 if path.suffix == ".html" else 0
        assert text.count("<script") == text.count("</script>") == n_own
        assert text.count("<!--") == text.count("-->")


def test_names_reach_the_text_of_a_program_as_text(model: Path) -> None:
    out = model.parent / "program"
    assert main(["compile", str(model), "--chip", "test-4", "-o", str(out), "--no-cache"]) == 0
    for path in sorted(out.rglob("*")):
        if path.suffix in (".md", ".txt", ".cpp", ".hpp", ".S"):
            assert obeyed(path.read_text(encoding="utf-8")) == "", path.name
    page = (out / "program" / "README.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line.replace("\\|", "") for line in page if line.startswith("| `x"))
    assert (row.count("|"), row.count("`")) == (5, 2)


@pytest.mark.parametrize("module", ["t10.cli chips", "t10.cli compile --help", "t10.opt.main --help"])
def test_a_full_disk_is_no_defect(module: str) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-m", *module.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, "No space left on device" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "module", ["t10.cli chips", "t10.cli --help", "t10.opt.main --help", "t10.translate --help"]
)
def test_a_closed_standard_output_is_no_defect(module: str) -> None:
    done = _closing(">&-", module)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(": error: cannot write standard output: Bad file descriptor\n")


def test_a_closed_standard_input_is_no_defect() -> None:
    done = _closing("<&-", "t10.opt.main")
    assert done.returncode == 2
    assert done.stderr == "t10-opt: error: cannot read standard input: Bad file descriptor\n"


def test_what_needs_no_standard_stream_runs_without_them(tmp_path: Path) -> None:
    file, written = tmp_path / "m.mlir", tmp_path / "out.mlir"
    file.write_text("func.func private @f()")
    done = _closing("<&- >&- 2>&-", f"t10.opt.main {file} -o {written}")
    assert (done.returncode, written.read_text()) == (0, "module {\n  func.func private @f()\n}\n")
    done = _closing("2>&-", f"t10.opt.main {tmp_path}/none.mlir")
    assert (done.returncode, done.stdout) == (2, "")


def _closing(streams: str, module: str) -> subprocess.CompletedProcess[str]:
    """Run a module with standard streams closed."""
    words = ["sh", "-c", f'exec "$@" {streams}', "sh", sys.executable, "-m", *module.split()]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", "99999999999999999999", "٣"])
def test_a_seed_is_an_integer_from_0(seed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", "out", "--seed", seed])
    assert caught.value.code == 2
    assert "expected an integer from 0 to" in capsys.readouterr().err
