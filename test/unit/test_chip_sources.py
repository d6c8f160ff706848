"""Where the numbers of a chip come from is printed with them."""

from __future__ import annotations

import json
from pathlib import Path
from re import findall

import pytest

from t10.chip import bundled_chips, load_chip, sources_of
from t10.chip.sources import CHANGED, DEFAULT, NOT_STATED, sources_in
from t10.cli import main
from t10.errors import InputError

REAL = tuple(name for name in bundled_chips() if not name.startswith("test-"))
UNUSED_ON_OTHERS = {
    *("memory_base", "interleaved_base", "element_bytes", "largest_transfer_words"),
    *("paired_bytes_per_cycle", "least_paired_words", "floor_plan"),
}
"""Fields of IPUs that other chips leave at their defaults."""

FILE = """\
# A note,
#   of two lines.

based_on: ipu-mk2
name: "x # no comment"
clock_hz: 1 GHz  # ours: a guess
# of a paper
sync_cycles: 9
setup_cycles: 8
levels:  # drawn
  - {name: core, count: 4}
  # measured
  - {name: chip, count: 2, topology: ring, link_bytes_per_cycle: 1}  # twice
hbm_bandwidth: 2 TB/s  # data sheet
"""


@pytest.mark.parametrize("name", REAL)
def test_every_number_of_a_real_chip_has_a_source(name: str) -> None:
    chip, sources = load_chip(name), sources_of(name)
    rows = [field for field in type(chip).model_fields if field not in ("name", "description", "levels")]
    rows = [field for field in rows if getattr(chip, field) not in (None, ())]
    rows += [f"levels[{number}]" for number in range(len(chip.levels))]
    unknown = {row for row in rows if sources.of(row) in (DEFAULT, NOT_STATED)}
    unknown -= {"levels[0]"}  # its cores are those of the chip
    assert unknown <= (UNUSED_ON_OTHERS if sources.of("memory_base") == DEFAULT else set())


def test_comments_are_sources_of_what_they_stand_beside_or_above(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(FILE)
    found = sources_of(path)
    assert found.notes[:2] == ("A note,", "of two lines.")
    expected = {
        "clock_hz": "ours: a guess",
        "sync_cycles": "of a paper",
        "setup_cycles": NOT_STATED,
        "levels[0]": "drawn",
        "levels[1]": "measured twice; drawn",
        "n_cores": "counts of levels",
        "memory": "data sheet",
        "n_workers": "data sheet",
        "energy": DEFAULT,
    }
    assert {field: found.of(field) for field in expected} == expected
    changed = sources_of(f"{path}:clock_hz=2GHz,hbm_bandwidth=1 TB/s")
    assert [changed.of(field) for field in ("clock_hz", "memory", "sync_cycles")] == [
        "changed here",
        "changed here",
        "of a paper",
    ]


def test_a_hash_in_text_is_no_comment() -> None:
    found = sources_in("a: 'x # y'\nb: |\n  # text\n  more\nc: 1 # said\n")
    assert found.by_field == (("c", "said"),)


def test_sources_are_printed_and_are_again_a_chip_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(FILE)
    assert main(["chips", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "ours: a guess" in shown
    assert "of two lines." in shown
    assert main(["chips", str(path), "--json"]) == 0
    text = capsys.readouterr().out
    sources = json.loads(text)["sources"]
    assert (sources["clock_hz"], sources["levels[1]"]) == ("ours: a guess", "measured twice; drawn")
    again = tmp_path / "again.json"
    again.write_text(text)
    assert load_chip(again) == load_chip(path)
    assert sources_of(again).of("clock_hz") == "ours: a guess"
    assert sources_of(again).notes == sources_of(path).notes


def test_every_reference_in_a_printed_source_is_among_the_printed_notes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["chips", "--json"]) == 0
    n_references = 0
    for chip in json.loads(capsys.readouterr().out):
        defined = {line.partition(" ")[0] for line in chip["notes"]}
        used = {each for source in chip["sources"].values() for each in findall(r"\[\d+\]", source)}
        assert used <= defined, chip["name"]
        n_references += len(used)
    assert n_references > 5


@pytest.mark.parametrize(("stated", "found"), [("x", "'x'"), ("[a, 3]", "['a', 3]")])
def test_notes_that_are_no_lines_are_refused(stated: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\nnotes: {stated}\n")
    with pytest.raises(InputError) as caught:
        load_chip(path)
    assert f"line 3: field notes: expected a list of texts, found {found}" in str(caught.value)


@pytest.mark.parametrize(
    ("stated", "found"),
    [("3", "3"), ("{n_cores: said, clok_hz: x}", "{'clok_hz': 'x'}"), ("{clock_hz: 3}", "{'clock_hz': 3}")],
)
def test_sources_that_are_none_are_refused(stated: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: x\nsources: {stated}\n")
    with pytest.raises(InputError) as caught:
        load_chip(path)
    message = f"line 3: field sources: expected texts under the names of fields, found {found}"
    assert message in str(caught.value)


def test_pairs_that_gain_nothing_any_more_have_no_source_of_the_base(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: ipu-mk2\nname: x\nexchange_bytes_per_cycle: 16\n")
    for chip in (path, "test-4:exchange_bytes_per_cycle=9"):
        assert load_chip(chip).paired_bytes_per_cycle == 0
        assert sources_of(chip).of("paired_bytes_per_cycle") == CHANGED
    assert sources_of("test-4:clock_hz=2GHz").of("paired_bytes_per_cycle").startswith("vendor library")


def test_the_source_of_a_key_that_is_short_for_a_field_is_that_of_the_field(tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(
        "based_on: test-4\nname: x\nhbm_bandwidth: 2 TB/s\nsources: {hbm_bandwidth: data sheet}\n"
    )
    assert load_chip(path).memory is not None
    assert sources_of(path).of("memory") == "data sheet"
