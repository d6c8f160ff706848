"""`t10 compare`, and tables that fit the terminal."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support import models
from support.plans import RESIDENT, two_operator_plan

import t10
from t10.chip import load_chip
from t10.cli import main
from t10.report import build_report
from t10.report.columns import Column, FittedTable
from t10.report.compare import changes, totals
from t10.report.console import PrintableConsole
from t10.report.rates import MEAN_RATE
from t10.report.table import operator_table

CHIP = load_chip("test-16")
MODELS = Path(__file__).resolve().parents[2] / "examples/models"


def test_a_comparison_says_what_changed_by_operator() -> None:
    plan = two_operator_plan()
    before = build_report(plan, CHIP)
    faster = replace(plan.operators[0], active=plan.operators[0].pareto[1])
    after = build_report(replace(plan, operators=(faster, plan.operators[1])), CHIP)
    first, second = changes(before, after)
    assert plan.operators[0].pareto[1].plan == RESIDENT
    assert (first.name, first.change) == ("matmul", 240 - 360)
    assert first.what == "steps 3 -> 1, compute -40, shift -90, setup +10"
    assert (second.change, second.what) == (0, "")
    assert dict(totals(before, after))["cycles"] == "410 -> 290 (-29.27%)"


def test_an_operator_of_one_run_only_is_said_to_be_missing() -> None:
    before = build_report(two_operator_plan(), CHIP)
    after = before.model_copy(update={"operators": before.operators[1:]})
    assert [(row.name, row.change, row.what) for row in changes(before, after)] == [
        ("matmul", -360, "only in A"),
        ("relu", 0, ""),
    ]
    assert [(row.name, row.change, row.what) for row in changes(after, before)] == [
        ("relu", 0, ""),
        ("matmul", 360, "only in B"),
    ]


def test_compare_prints_and_writes_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = models.mlp(tmp_path / "mlp.onnx")
    for name, chip in (("a", "test-4"), ("b", "test-4:exchange_bytes_per_cycle=1")):
        assert main(["compile", str(model), "-o", str(tmp_path / name), "--chip", chip, "--no-program"]) == 0
    both = (str(tmp_path / "a"), str(tmp_path / "b"))
    capsys.readouterr()
    assert main(["compare", *both, "-o", str(tmp_path / "compare.html")]) == 0
    assert "cycles" in capsys.readouterr().out
    page = (tmp_path / "compare.html").read_text()
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    for folder, run in zip("ab", json.loads(data)["runs"], strict=True):
        report = json.loads((tmp_path / folder / "report.json").read_text())
        assert sum(sum(each["cycles"]) for each in run["operators"]) == report["total_cycles"]
        assert [each["name"] for each in run["operators"]] == [each["name"] for each in report["operators"]]
    assert main(["compare", *both, "-o", str(tmp_path / "compare.csv")]) == 0
    with (tmp_path / "compare.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert all(int(line["cycles_b"]) - int(line["cycles_a"]) == int(line["change"]) for line in lines)
    assert main(["compare", *both, "-o", str(tmp_path / "compare.txt")]) == 2
    capsys.readouterr()
    assert main(["compare", *both, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"] == json.loads(data)["rows"]
    assert main(["compare", both[0], both[0]]) == 0
    assert "operators are the same" in capsys.readouterr().out


def test_two_different_models_are_compared_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("mlp", "conv"):
        words = ("compile", str(MODELS / f"{name}.onnx"), "-o", str(tmp_path / name))
        assert main([*words, "--chip", "test-4", "--no-program"]) == 0
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "mlp"), str(tmp_path / "conv")]) == 0
    error = capsys.readouterr().err
    assert "warning: two different models are compared: A is of model" in error
    assert "0 operators have the same name" in error
    assert main(["compare", str(tmp_path / "mlp"), str(tmp_path / "conv"), "--rows", "1"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"([0-9]+) of \1 operators changed, 1 shown, largest change first", shown)
    assert main(["compare", str(tmp_path / "mlp"), str(tmp_path / "conv"), "--rows", "0"]) == 0
    shown = capsys.readouterr().out
    assert "operators changed (--rows 0: none is shown)" in shown
    assert "what changed" not in shown


def shown(table: FittedTable, width: int) -> str:
    console = PrintableConsole(width=width, color_system=None, force_terminal=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


@pytest.mark.parametrize("width", [50, 80, 120])
def test_a_table_cuts_nothing_off_and_says_what_it_leaves_out(width: int) -> None:
    report = build_report(two_operator_plan(), CHIP)
    named = report.operators[0].model_copy(update={"name": "/encoder/layer.11/attention/self/query/MatMul"})
    text = shown(operator_table((named, report.operators[1])), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    folded = "".join(line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│"))
    assert named.name in folded
    assert ("left out, for a width of" in text) == (width < 120)


def test_what_waits_for_off_chip_memory_is_told_apart_from_what_moves() -> None:
    report = build_report(two_operator_plan(), CHIP)
    assert "wait" not in shown(operator_table(report.operators), 120)
    cycles = report.operators[0].cycles
    waiting = cycles.model_copy(update={"wait": 7000, "total": cycles.total + 7000})
    first = report.operators[0].model_copy(update={"cycles": waiting})
    lines = shown(operator_table((first, *report.operators[1:])), 120).splitlines()
    heads, rows = (
        [[cell.strip() for cell in line.split(bar)[1:-1]] for line in lines if line.startswith(bar)]
        for bar in "┃│"
    )
    title = [" ".join(filter(None, column)) for column in zip(*heads, strict=True)]
    assert MEAN_RATE in title
    by_title = [dict(zip(title, row, strict=True)) for row in rows]
    assert [row["wait"] for row in by_title] == ["7,000", "0"]
    for row in by_title:
        parts = (int(row[kind].replace(",", "")) for kind in ("compute", "move", "wait"))
        assert sum(parts) == int(row["cycles"].replace(",", ""))


def test_titles_take_several_lines_before_columns_are_left_out() -> None:
    table = FittedTable((Column("a"), Column("part of the whole", rank=1)))
    table.add_row("1", "25%")
    assert "part of the whole" in shown(table, 26)
    assert "left out" not in shown(table, 13)
    assert [line.split("┃")[2].strip() for line in shown(table, 13).splitlines() if line[0] == "┃"] == [
        "part",
        "of",
        "the",
        "whole",
    ]
    assert "left out" in shown(table, 12)


def test_a_narrow_table_fits_and_has_its_first_columns() -> None:
    report = build_report(two_operator_plan(), CHIP)
    for name in ("matmul", "/up/MatMul", "/encoder/layer.11/attention/self/query/MatMul"):
        table = operator_table((report.operators[0].model_copy(update={"name": name}), report.operators[1]))
        for width in range(17, 60):
            text = shown(table, width)
            assert max(map(len, text.splitlines())) <= width
            rows = [line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│")]
            assert name in "".join(rows)
            assert "cycles" in text.partition("left out")[0]


def test_columns_are_left_out_by_rank() -> None:
    table = FittedTable(
        (Column("name", is_folded=True), Column("kept"), Column("first", 2), Column("then", 1))
    )
    table.add_row("a", "1", "2", "3")
    assert [table.shown(width) for width in (40, 24, 16)] == [(0, 1, 2, 3), (0, 1, 3), (0, 1)]


@pytest.mark.parametrize("width", [10, 20, 30, 60])
def test_no_number_is_cut_however_narrow_the_terminal(width: int) -> None:
    table = FittedTable((Column("tensor", is_folded=True, is_number=False), Column("B/core"), Column("x", 1)))
    table.add_row("a.very.long.name.of.a.tensor", "1,234,567,890", "24,576")
    text = shown(table, width)
    assert "1,234,567,890" in text
    assert "24,576" in text or "left out, for a width of" in " ".join(text.split())
    assert (max(map(len, text.splitlines())) <= width) == (width >= 24)


def test_every_table_is_made_by_one_maker() -> None:
    """A table of rich itself cuts off what does not fit; the grid of a summary has words to break at."""
    python = Path(t10.__file__).parent
    makers = {p.relative_to(python).as_posix() for p in python.rglob("*.py") if "rich.table" in p.read_text()}
    assert makers == {"report/columns.py", "report/table.py", "report/stages.py"}


@pytest.mark.parametrize("command", ["chips", "compare", "verify", "inspect"])
def test_commands_cut_no_number_at_sixty_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(MODELS / "mlp.onnx")
    words = {
        "chips": [],
        "compare": [model, "--chip", "test-4", "--only", "T10 as published"],
        "verify": [model, "--chip", "test-4", "--engine", "all"],
        "inspect": [model],
    }[command]

    def cells(width: int) -> set[str]:
        monkeypatch.setenv("COLUMNS", str(width))
        assert main([command, *words]) == 0
        lines = capsys.readouterr().out.splitlines()
        rows = [line.strip("|").split("|") for line in lines if line.startswith("|") and "-+-" not in line]
        return {cell.strip() for row in rows for cell in row if any(map(str.isdigit, cell))}

    narrow, wide = cells(60), cells(300)
    assert all("…" not in cell and "..." not in cell for cell in narrow)
    if command != "chips":  # descriptions are folded
        assert narrow <= wide


def test_tables_in_pipes_are_ascii(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    assert main(["chips"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line.encode()) for line in lines) <= 90
