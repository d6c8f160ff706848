"""`t10 compare`: a model as several systems plan it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from t10.cli.entry import main

MODEL = Path(__file__).resolve().parents[2] / "examples" / "models" / "mlp.onnx"
PRICES = ("--chip", "test-16", "--cost-model", "t10-paper")


def test_every_system_is_a_line_beside_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "compared.csv"
    assert main(["compare", str(MODEL), *PRICES, "--only", "ours; Roller; PopART 0.6", "-o", str(table)]) == 0
    with table.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["system"] for line in lines] == ["ours", "Roller", "PopART 0.6"]
    assert lines[0]["of the first"] == "1.00x"
    cycles = [int(line["cycles"].replace(",", "")) for line in lines]
    assert cycles[0] == min(cycles)
    assert "modelled" in capsys.readouterr().out


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
    ],
)
def test_what_is_asked_for_wrongly_is_refused(
    wrong: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(MODEL), *PRICES, *wrong]) == 2
    assert message in capsys.readouterr().err
