"""Messages and help as a person meets them: one line for one mistake, and what would have been right."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from support import models

from t10.arrays import write_arrays
from t10.chip import load_chip
from t10.cli import main
from t10.cli.terminal import new_table
from t10.core.graph import TensorValue
from t10.driver import Executable
from t10.errors import InputError, UnsupportedOpError
from t10.frontend.unsupported import UnsupportedNode, refuse
from t10.reference import read_given
from t10.sweep import parse_varied


def help_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "command", ["compile", "run", "verify", "report", "pareto", "explain", "sweep", "demo"]
)
def test_every_default_that_help_speaks_of_is_one(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "(default: )" not in help_of(command, capsys)


def test_pareto_says_whose_chip_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(default: that of a folder, else ipu-mk2)" in help_of("pareto", capsys)


@pytest.mark.parametrize(
    "words",
    [("compile", "m.onnx", "-o", "out", "--partials", "f3"), ("run", "out", "--engine", "x"), ("nothing",)],
)
def test_a_wrong_value_is_one_line(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert re.search(r"error: .*\(see t10.* --help\)$", lines[0])


@pytest.mark.parametrize("tolerance", ["inf", "nan", "-1"])
def test_a_tolerance_is_finite(tolerance: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = models.mlp(tmp_path / "mlp.onnx")
    assert main(["verify", str(model), "--chip", "test-4", f"--tolerance={tolerance}"]) == 2
    assert "expected a finite number of at least 0" in capsys.readouterr().err


def test_inputs_have_their_names_with_or_without_a_prefix(tmp_path: Path) -> None:
    inputs = (TensorValue("x", (2,), "f32"),)
    for name in ("x", "in.x"):
        write_arrays(tmp_path / "given.npz", {name: np.zeros(2, np.float32)})
        assert list(read_given(tmp_path / "given.npz", inputs)[0]) == ["x"]


def test_unknown_inputs_are_listed_with_what_the_file_has(tmp_path: Path) -> None:
    write_arrays(tmp_path / "given.npz", {"in_x": np.zeros(2, np.float32), "z": np.zeros(1)})
    with pytest.raises(InputError, match=r"in_x, z \(the model takes x; the file has in_x, z\)"):
        read_given(tmp_path / "given.npz", (TensorValue("x", (2,), "f32"),))


def test_a_misspelt_field_of_a_sweep_gets_a_suggestion() -> None:
    with pytest.raises(InputError, match=r"did you mean n_cores\?$"):
        parse_varied("n_core=3,4", load_chip("test-4"))
    with pytest.raises(InputError, match="expected one of n_cores"):
        parse_varied("colour=3", load_chip("test-4"))


@pytest.mark.parametrize(
    ("n_nodes", "n_inputs", "text"),
    [
        (2, 0, "2 of 2 nodes"),
        (2, 1, "2 of 2 nodes and 1 input"),
        (0, 3, "3 inputs"),
    ],
)
def test_inputs_that_cannot_be_compiled_are_no_nodes(n_nodes: int, n_inputs: int, text: str) -> None:
    nodes = [UnsupportedNode(f"n{i}", "Det", "m", "is no good", "mend it") for i in range(n_nodes)]
    inputs = [UnsupportedNode(f"x{i}", "input", "m", "is no good", "mend it") for i in range(n_inputs)]
    with pytest.raises(UnsupportedOpError, match=rf"^m: {text} cannot be lowered"):
        refuse([*nodes, *inputs], 2, "m")


def test_a_narrow_table_breaks_headings_and_cuts_none(capsys: pytest.CaptureFixture[str]) -> None:
    from t10.cli.terminal import stdout

    console = stdout()
    console.width = 30
    table = new_table("contractions", "regression: median", "measurements")
    table.add_row("a", "1", "2")
    console.print(table)
    assert "…" not in capsys.readouterr().out


@pytest.mark.slow
def test_what_is_needed_is_said_to_be_of_smallest_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chip = "test-4:sram_bytes=4700,shift_buffer_bytes=128,reserved_bytes=4096"
    model = models.mlp(tmp_path / "mlp.onnx")
    assert main(["compile", str(model), "-o", str(tmp_path / "out"), "--chip", chip, "--no-program"]) == 4
    assert "may need a little less" in capsys.readouterr().err


def test_a_command_that_was_mistyped_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explian"])
    assert "invalid choice: 'explian' (did you mean 'explain'? choose from" in capsys.readouterr().err


def test_an_output_folder_is_not_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    assert main(["compile", str(model), "--chip", "test-4", "--no-program", "-o", str(out)]) == 0
    assert main(["inspect", str(out)]) == 2
    error = capsys.readouterr().err
    assert f"{out} is an output folder, expected a model (t10 report {out})" in error


def test_all_inputs_that_do_not_fit_are_named_with_their_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out, file = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out", tmp_path / "in.npz"
    assert main(["compile", str(model), "--chip", "test-4", "--no-program", "-o", str(out)]) == 0
    (taken,) = Executable.load(out).inputs
    x = np.zeros(taken.shape, np.float32)
    write_arrays(file, {"a": x, taken.name: x, "b": x})
    assert main(["run", str(out), "--inputs", str(file)]) == 2
    assert f"{file}: unknown inputs: a, b (the model takes {taken.name};" in capsys.readouterr().err
    write_arrays(file, {taken.name: x.astype(np.float64)})
    for command in (["run", str(out)], ["verify", str(model), "--chip", "test-4"]):
        assert main([*command, "--inputs", str(file)]) == 2
        assert f"{file}: input {taken.name} has type float64, expected float32" in capsys.readouterr().err
