"""`t10 compare`: a model as several systems plan it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from t10.baselines.ansor import EVALUATIONS
from t10.cli.compare_arguments import DEFAULT_EVALUATIONS
from t10.cli.entry import main
from t10.compare import MAIN

MODEL = Path(__file__).resolve().parents[2] / "examples" / "models" / "mlp.onnx"
PRICES = ("--chip", "test-16", "--cost-model", "t10-paper")


def test_every_system_is_a_line_beside_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "compared.csv"
    assert main(["compare", str(MODEL), *PRICES, "--only", "ours; Roller; PopART 0.6", "-o", str(table)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["system"] for line in lines] == ["ours", "Roller", "PopART 0.6"]
    assert float(lines[0]["of_the_first"]) == 1
    cycles = [int(line["cycles"]) for line in lines]
    assert [float(line["of_the_first"]) for line in lines] == [round(n / cycles[0], 4) for n in cycles]
    assert all(0 <= float(line["moved_share"]) <= 1 for line in lines)
    assert cycles[0] == min(cycles)
    assert "modelled" in capsys.readouterr().out


def test_the_search_stands_beside_roller_and_finds_the_same_twice(tmp_path: Path) -> None:
    tables = [tmp_path / f"{run}.csv" for run in range(3)]
    for table, evaluations in zip(tables, ("8", "8", "200"), strict=True):
        wanted = ("--only", "Roller, split sums; Ansor", "--evaluations", evaluations, "-o", str(table))
        assert main(["compare", str(MODEL), *PRICES, *wanted]) == 0
    assert tables[0].read_bytes() == tables[1].read_bytes()
    roller, short, long = (_cycles(tables[i])[j] for i, j in ((0, 0), (0, 1), (2, 1)))
    assert long == roller
    assert short > long


def test_the_default_is_every_main_system_in_order() -> None:
    assert MAIN.index("Ansor") == MAIN.index("Roller, split sums") + 1
    assert DEFAULT_EVALUATIONS == EVALUATIONS


def _cycles(table: Path) -> list[int]:
    with table.open(newline="", encoding="utf-8") as file:
        return [int(line["cycles"]) for line in csv.DictReader(file)]


def test_types_of_sums_and_chips_are_cases_of_their_own(tmp_path: Path) -> None:
    table = tmp_path / "compared.csv"
    wanted = ("--partials", "f16,f32", "--chip", "test-64", "--only", "Roller")
    assert main(["compare", str(MODEL), *PRICES, *wanted, "-o", str(table)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        found = [(line["chip"], line["partials"]) for line in csv.DictReader(file)]
    assert found == [("test-16", "f16"), ("test-16", "f32"), ("test-64", "f16"), ("test-64", "f32")]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--only", "Rolller"), "there is no system 'Rolller'"),
        (("--batch", "4"), "--batch is malformed"),
        (("--partials", "f8"), "partials is 'f8'"),
        (("--only", "ours", "--evaluations", "9"), "--evaluations is for Ansor, which is not compared"),
        (("-o", "x.html"), "-o x.html: found the ending '.html', expected .csv"),
    ],
)
def test_what_is_asked_for_wrongly_is_refused(
    wrong: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(MODEL), *PRICES, *wrong]) == 2
    assert message in capsys.readouterr().err
