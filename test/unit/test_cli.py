"""`t10` as a user meets it: exit codes, one-line errors, files that are whole or absent."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import models

import t10
from t10.arrays import read_arrays, write_arrays
from t10.cache_folder import default_cache_folder
from t10.cli import entry, main
from t10.cli.arguments import parse
from t10.cli.help_page import command_tables
from t10.codelets.user import unused_codelets
from t10.driver import Executable
from t10.plan.fronts.front_cache import forget
from t10.random_inputs import random_inputs
from t10.reference import run_onnx_runtime
from t10.report import read_report

ROOT = Path(__file__).resolve().parents[2]


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_compile_then_run_gives_the_numbers_of_onnx_runtime(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    assert run(capsys, "compile", path, "-o", out, "--chip", "test-4")[0] == 0
    x = {"x": models.weights(9, 4, 24)}
    write_arrays(tmp_path / "in.npz", x)
    code, text, _ = run(capsys, "run", out, "--inputs", tmp_path / "in.npz", "--outputs", tmp_path / "y.npz")
    assert code == 0
    assert "(modelled, ipu)" in text
    found, expected = read_arrays(tmp_path / "y.npz")["y"], run_onnx_runtime(path, x)["y"]
    assert np.abs(found - expected).max() <= 1e-4 * np.abs(expected).max()


def test_declared_codelets_that_no_task_takes_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, declared = models.mlp(tmp_path / "mlp.onnx"), ROOT / "examples" / "codelets" / "codelets.yaml"
    words = ("compile", path, "-o", tmp_path / "out", "--chip", "test-4", "--codelets", declared)
    code, text, _ = run(capsys, *words)
    assert code == 0
    assert "VectorAddFloat, ReduceAddFloat or LeakyReluFloat declares" in " ".join(text.split())
    used = ["User_VectorAddFloat_0123456789", "Reduce_rows_f16_f32_sum_0123456789"]
    assert unused_codelets([declared], used) == ("ReduceAddFloat", "LeakyReluFloat")


def test_references_of_a_file_are_taken_instead_of_onnx_runtime(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, x = models.mlp(tmp_path / "mlp.onnx"), models.weights(9, 4, 24)
    y = run_onnx_runtime(path, {"x": x})["y"]
    write_arrays(tmp_path / "good.npz", {"in.x": x, "ref.y": y})
    write_arrays(tmp_path / "bad.npz", {"in.x": x, "ref.y": y + 1})
    command = ("verify", path, "--chip", "test-4", "--inputs")
    assert run(capsys, *command, tmp_path / "good.npz")[0] == 0
    code, text, _ = run(capsys, *command, tmp_path / "bad.npz")
    assert code == 1
    assert "FAILED" in text


def test_symbolic_dims_are_given_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx", rows="batch")
    code, _, error = run(capsys, "verify", path, "--chip", "test-4")
    assert (code, error.count("\n")) == (2, 1)
    assert "--shape" in error
    assert run(capsys, "verify", path, "--chip", "test-4", "--shape", "batch=3")[0] == 0
    assert run(capsys, "verify", path, "--chip", "test-4", "--shape", "x=3x24")[0] == 0


def test_what_is_not_supported_ends_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, "compile", models.unsupported(tmp_path / "m.onnx"), "-o", tmp_path / "out")
    assert (code, error.count("\n")) == (3, 1)
    assert not (tmp_path / "out").exists()


def test_what_does_not_fit_ends_with_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(
        capsys, "compile", models.too_large(tmp_path / "m.onnx"), "-o", tmp_path / "out", "--chip", "test-4"
    )
    assert code == 4
    message, *details = error.splitlines()
    assert re.match(
        r"t10: error: .*operator 'huge': needs about [\d,]+ bytes per core .* \(it fits with .*\)$", message
    )
    assert details[0].startswith("every core then holds")
    assert "tried:" in details
    assert not (tmp_path / "out").exists()


def test_a_model_without_weights_is_compiled_with_a_note_and_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.without_data(tmp_path / "m.onnx")
    code, text, _ = run(capsys, "compile", path, "-o", tmp_path / "out", "--chip", "test-4")
    assert code == 0
    assert "cannot be run" in text
    code, _, error = run(capsys, "run", tmp_path / "out")
    assert (code, error.count("\n")) == (2, 1)
    assert "3 weights have no values" in error


def test_a_defect_is_one_line_with_where_to_report_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(arguments: object) -> int:
        raise KeyError("surprise")

    monkeypatch.setattr(entry, "_dispatch", broken)
    code, _, error = run(capsys, "chips")
    assert code == 70
    assert "internal error: KeyError" in error
    assert "report it" in error
    assert "Traceback" not in error
    with pytest.raises(KeyError):
        main(["chips", "--debug"])


def test_a_wrong_plan_is_not_proved_and_ends_with_5(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    executable = t10.compile(models.mlp(tmp_path / "mlp.onnx"), chip="test-4")
    stacked = tuple(replace(buffer, address_bytes=0) for buffer in executable.plan.buffers)
    wrong = replace(executable, plan=replace(executable.plan, buffers=stacked))

    def compile_wrongly(*words: object, **options: object) -> Executable:
        return wrong

    monkeypatch.setattr("t10.cli.verify.compile", compile_wrongly)
    code, _, error = run(capsys, "verify", tmp_path / "mlp.onnx", "--chip", "test-4", "--prove")
    assert (code, error.count("\n")) == (5, 1)
    assert "the plan breaks" in error


def test_quiet_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    assert run(capsys, "verify", path, "--chip", "test-4", "--quiet") == (0, "", "")


def test_progress_is_not_shown_where_nobody_looks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, error = run(capsys, "verify", models.mlp(tmp_path / "mlp.onnx"), "--chip", "test-4")
    assert error == ""


def test_a_report_of_the_demo_keeps_what_was_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = str(models.mlp(tmp_path / "mlp.onnx")), tmp_path / "out"
    assert run(capsys, "demo", "--model", path, "--chip", "test-4", "-o", str(out))[0] == 0
    page = (out / "report.html").read_bytes()
    assert b"Equal to ONNX Runtime within a tolerance of" in page
    assert run(capsys, "report", str(out))[0] == 0
    assert (out / "report.html").read_bytes() == page
    assert "check.json" in json.loads((out / "manifest.json").read_text())["files"]

    # It says nothing of files that were not run.
    (out / "module.mlir").write_text((out / "module.mlir").read_text() + "\n")
    assert run(capsys, "manifest", str(out))[0] == 0
    assert run(capsys, "report", str(out))[0] == 0
    assert b"Equal to ONNX Runtime" not in (out / "report.html").read_bytes()

    (out / "check.json").write_text('{"format": "t10-check", "version": 1}')
    assert run(capsys, "manifest", str(out))[0] == 0
    code, _, error = run(capsys, "report", str(out))
    assert code == 2
    assert "check.json" in error


def test_the_demo_says_where_the_report_lies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    code, text, _ = run(capsys, "demo", "--model", path, "--chip", "test-4", "-o", out)
    assert code == 0
    assert "report.html" in text
    assert {"report.html", "plan.json", "module.mlir", "run.trace.json", "program"} <= {
        f.name for f in out.iterdir()
    }
    assert "No tensor rotates" in text
    assert "stepped through" not in text
    assert "Equal to ONNX Runtime" in (out / "report.html").read_text(encoding="utf-8")


def test_names_with_brackets_are_printed_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    code, text, _ = run(capsys, "compile", path, "-o", tmp_path / "out[red]", "--chip", "test-4")
    assert code == 0
    assert "out[red]/" in text


def test_every_row_of_the_tables_of_commands_has_two_cells() -> None:
    """GitHub takes a bar inside a code span for the end of a cell, too."""
    rows = [row for table in command_tables().values() for row in table.splitlines() if row[0] == "|"]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


def test_no_help_text_names_a_page_that_an_installed_package_lacks() -> None:
    assert "docs/" not in "".join(command_tables().values())


def test_defaults_are_those_of_the_page() -> None:
    arguments = parse(["verify", "m.onnx"])
    assert (arguments.chip, arguments.seed, arguments.tolerance, arguments.shapes) == ("ipu-mk2", 0, None, ())


def test_interrupting_leaves_no_half_written_folder(tmp_path: Path) -> None:
    script = (
        "import sys, time, t10.driver as d\n"
        "def slow(*a, **k):\n"
        "    print('started', flush=True)\n"
        "    time.sleep(60)\n"
        "d.write_report = slow\n"
        "from t10.start import t10\n"
        "sys.exit(t10())\n"
    )
    model, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "compile", str(model), "-o", str(out), "--chip", "test-4"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error.strip() == "t10: interrupted"
    assert [file.name for file in tmp_path.iterdir()] == ["mlp.onnx"]


def test_a_reader_that_leaves_early_is_no_defect() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "t10.cli", "chips"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    assert process.wait(timeout=30) == 141
    assert error == b""


def test_random_inputs_of_run_and_verify_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    run(capsys, "compile", path, "-o", tmp_path / "out", "--chip", "test-4")
    run(capsys, "run", tmp_path / "out", "--seed", "4", "--outputs", tmp_path / "a.npz")
    run(capsys, "verify", path, "--chip", "test-4", "--seed", "4", "--outputs", tmp_path / "b.npz")
    assert np.array_equal(read_arrays(tmp_path / "a.npz")["y"], read_arrays(tmp_path / "b.npz")["y"])
    graph = t10.compile(path, chip="test-4").plan.graph
    assert set(random_inputs(graph, 4)) == {"x"}


def test_plans_are_kept_between_runs_without_changing_what_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, cache = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "cache"
    outs = [tmp_path / name for name in ("none", "cold", "warm")]
    for out, options in zip(outs, (("--no-cache",), ("--cache", cache), ("--cache", cache)), strict=True):
        forget()
        assert run(capsys, "compile", path, "-o", out, "--chip", "test-4", *options)[0] == 0
    plans = {(out / "plan.json").read_bytes() for out in outs}
    modules = {(out / "module.mlir").read_bytes() for out in outs}
    assert len(plans) == len(modules) == 1
    code, text, _ = run(capsys, "cache", "info", "--cache", cache)
    assert code == 0
    assert str(cache) in text
    assert "front" in text
    assert "deleted" in run(capsys, "cache", "clear", "--cache", cache)[1]
    assert "0 entries" in run(capsys, "cache", "info", "--cache", cache)[1]


def test_a_cache_that_cannot_be_used_is_one_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    forget()
    code, _, errors = run(
        capsys, "compile", path, "-o", tmp_path / "out", "--chip", "test-4", "--cache", path
    )
    assert code == 0
    assert errors.count("t10: warning: plan cache") == len(errors.splitlines()) == 1


def test_the_default_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_folder() == tmp_path / "t10"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache_folder() == tmp_path / ".cache" / "t10"


def test_a_folder_uses_the_cost_model_it_was_compiled_under(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out, prices = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out", tmp_path / "mine.py"
    prices.write_text(
        "from t10.cost import IpuCostModel\n\n\ndef cost_model(chip):\n    return IpuCostModel(chip)\n"
    )
    code, text, _ = run(capsys, "compile", path, "-o", out, "--chip", "test-4", "--cost-model", prices)
    assert code == 0
    assert "mine.py)" in text
    assert read_report(out / "report.json").cost_model == str(prices)
    assert Executable.load(out, cost_model=str(prices)).cost_model == str(prices)
    for command in (("run",), ("report", "--no-plots"), ("explain",), ("pareto",)):
        code, _, error = run(capsys, *command, out)
        assert (code, error.count("\n")) == (2, 1)
        assert f"add --cost-model {prices}" in error
        assert run(capsys, *command, out, "--cost-model", prices)[0] == 0
    moved = prices.rename(tmp_path / "moved.py")
    assert run(capsys, "run", out, "--cost-model", moved)[0] == 0
    code, _, error = run(capsys, "run", out, "--cost-model", prices)
    assert (code, error.count("\n")) == (2, 1)
    assert f"cannot read {prices}" in error


def test_how_good_the_plan_is_stands_in_summary_page_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    code, text, _ = run(capsys, "compile", path, "-o", out, "--chip", "test-4")
    assert code == 0
    report = read_report(out / "report.json")
    assert report.optimality is not None
    assert "no choice takes fewer" in text
    assert f"over {report.optimality.n_states} states of 2 operators" in " ".join(
        text.replace("|", " ").split()
    )
    # One figure everywhere, of which the proof speaks; beside it what the program takes on the device simulator.
    assert report.optimality.cycles == report.total_cycles
    assert report.total_cycles == sum(op.active.cycles.total for op in Executable.load(out).plan.operators)
    assert f"{report.total_cycles:,} cycles (modelled" in text
    assert f"{report.timed_cycles:,} cycles as emitted" in text
    code, ran, _ = run(capsys, "run", out, "--engine", "plan")
    assert (code, f"{report.total_cycles:,} cycles, " in ran) == (0, True)
    code, ran, _ = run(capsys, "run", out, "--engine", "iss")
    assert (code, f"{report.timed_cycles:,} cycles, " in ran) == (0, True)
    assert f"planned: {report.total_cycles:,} cycles" in ran
    code, ran, _ = run(capsys, "run", out, "--engine", "poplar-host")
    computing = f"{report.cycles.compute:,}"
    assert code == 0
    assert f"{computing} cycles of compute sets, as program.cpp estimates them" in ran
    assert f"planned: {computing})" in ran
    code, text, _ = run(capsys, "compile", path, "-o", out, "--chip", "test-4", "--no-program")
    assert code == 0
    assert "no choice takes fewer" in text
    alone = read_report(out / "report.json")
    assert (alone.total_cycles, alone.timed_cycles) == (report.total_cycles, None)
    known = alone.optimality
    assert known is not None
    assert (
        known.bound_cycles
        <= known.cycles
        == sum(op.active.cycles.total for op in Executable.load(out).plan.operators)
    )
    assert Executable.load(out).plan.optimality is not None
    _, text, _ = run(capsys, "report", out, "--rows", "1")
    assert f"The slowest 1 row of {len(report.operators)} operators" in " ".join(text.split())
    assert "no choice takes fewer" in (out / "report.html").read_text(encoding="utf-8")
    code, text, _ = run(capsys, "compile", path, "-o", out, "--chip", "test-4", "--reconcile", "greedy")
    assert "chosen by Algorithm 1" in text


def test_a_reading_without_algorithm_1_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    code, _, error = run(capsys, "compile", path, "-o", tmp_path / "out", "--reading", "literal")
    assert (code, error.count("\n")) == (2, 1)
    assert "--reconcile greedy" in error


def test_lines_of_text_fit_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    folder = str(tmp_path / "out")
    assert main(["compile", str(ROOT / "examples/models/mlp.onnx"), "--chip", "test-4", "-o", folder]) == 0
    assert main(["verify", str(ROOT / "examples/models/mlp.onnx"), "--chip", "test-4"]) == 0
    assert main(["explain", folder, "--exchange"]) == 0
    lines = capsys.readouterr().out.splitlines()
    begins = "program: ", "test-4: ", "reduce:", "A line: "
    found = [n for n, line in enumerate(lines) if line.startswith(begins)]
    assert len(found) >= 3
    assert [lines[n] for n in found if len(lines[n]) > 60] == []
    # The rest goes on below, indented.
    assert any(lines[n + 1].startswith("  ") for n in found)
