"""`t10 sweep`: what is varied, points that are kept, and what they say."""

from __future__ import annotations

import csv
import os
import re
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from t10 import sweep as sweeping
from t10.chip import load_chip
from t10.cli import main
from t10.driver import compile
from t10.errors import InputError
from t10.report.rates import peak_macs
from t10.report.sweep import sweep_plot
from t10.staged import compile_stages
from t10.sweep import Point, chips_of, parse_varied, sweep, with_unit

MODEL = Path(__file__).resolve().parents[2] / "examples/models/conv.onnx"
BASE = load_chip("test-4")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n_cores=1,2, 4", ("1", "2", "4")),
        ("n_cores=1..8", ("1", "2", "4", "8")),
        ("n_cores=3..10", ("3", "6", "10")),
        ("sram_bytes=256KiB..1MiB", ("262144", "524288", "1048576")),
        ("sram_bytes=0.25 MiB..512KiB", ("262144", "524288")),
        ("sram_bytes=262144..524288", ("262144", "524288")),
        ("clock_hz=500MHz..1GHz", ("500000000", "1000000000")),
        ("sram_bytes=64 KiB,640 kB", ("64 KiB", "640 kB")),
        ("n_cores=2..4:3", ("2", "3", "4")),
        ("clock_hz=1GHz..2GHz:3", ("1000000000", "1500000000", "2000000000")),
        ("clock_hz=1GHz..1000000001 Hz:3", ("1000000000", "1000000000.5", "1000000001")),
        ("hbm_bandwidth=1GB/s..2GB/s", ("1000000000", "2000000000")),
        ("n_cores=1..5:9", ("1", "2", "3", "4", "5")),
        ("n_cores=2,4,2", ("2", "4")),
        ("n_cores=2,4.0,4", ("2", "4.0")),
        ("n_cores=4..4", ("4",)),
        ("exchange_bytes_per_cycle=3..4:3", ("3", "3.5", "4")),
    ],
)
def test_values_are_listed_doubled_or_evenly_apart(text: str, values: tuple[str, ...]) -> None:
    assert parse_varied(text, BASE).values == values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cores=1,2", r"found no field 'cores': did you mean n_cores\?$"),
        ("name=a,b", "found no field 'name': expected one of n_cores.* execution"),
        ("n_cores", "found no values, expected n_cores=A,B,C"),
        ("n_cores=", "found no values, expected n_cores=A,B,C"),
        (
            "execution=overlaped",
            r"execution: found 'overlaped', expected one of .*: did you mean overlapped\?",
        ),
        ("execution=1..2", "execution: found '1..2', expected one of bulk-synchronous, overlapped$"),
        ("executon=overlapped", r"did you mean execution\?$"),
        ("n_cores=-4", "--vary 'n_cores=-4': found -4, expected a number of at least 0"),
        ("n_cores=4,-4", "--vary 'n_cores=4,-4': found -4, expected"),
        ("n_cores=4,many", "field n_cores: expected a number"),
        ("sram_bytes=256..1MiB", "found 256..1MiB, expected a unit at both ends of the range, or at neither"),
        ("sram_bytes=256KiB..1024:2", "expected a unit at both ends"),
        ("n_cores=8..2", "expected 0 < LOW <= HIGH"),
        ("n_cores=0..2", "expected 0 < LOW <= HIGH"),
        ("n_cores=a..b", "expected a number"),
        ("n_cores=1..8:1", "expected 2 to"),
        ("n_cores=1..8:x", "expected 2 to"),
        ("sram_bytes=1kib..8KiB", "did you mean"),
        ("hbm_bandwith=1 TB/s,2 TB/s", "did you mean hbm_bandwidth?"),
        ("memory=1,2", "did you mean hbm_bandwidth?"),
        ("hbm_bandwidth=1 TB..2 TB/s", "did you mean TB/s"),
    ],
)
def test_what_cannot_be_varied_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_varied(text, BASE)


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("sram_bytes", "8192", "8 KiB"),
        ("sram_bytes", "1572864", "1.5 MiB"),
        ("sram_bytes", "8KiB", "8KiB"),
        ("sram_bytes", "1000", "1000"),
        ("clock_hz", "1000000000", "1 GHz"),
        ("clock_hz", "1328125000", "1.328125 GHz"),
        ("hbm_bandwidth", "2000000000000", "2 TB/s"),
        ("levels.chip.link_bytes_per_second", "1500000000", "1.5 GB/s"),
        ("n_cores", "1024", "1024"),
        ("exchange_bytes_per_cycle", "3.5", "3.5"),
        ("execution", "overlapped", "overlapped"),
    ],
)
def test_values_of_a_range_are_shown_with_units(field: str, value: str, shown: str) -> None:
    assert with_unit(field, value) == shown


def test_the_table_has_units_and_a_decimal_of_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(MODEL), "--chip", "test-4", "--no-cache", "-o", str(tmp_path)]
    assert main([*words, "--vary", "sram_bytes=312KiB..624KiB", "--vary", "clock_hz=1GHz"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"312 KiB +\| +1GHz .*\| +[0-9]+\.[0-9] \|", shown)
    rows = (tmp_path / "sweep.csv").read_text().splitlines()
    assert rows[1].startswith("319488,1GHz,")


def test_chips_are_made_for_every_combination() -> None:
    chips = chips_of("test-4", [parse_varied(text, BASE) for text in ("n_cores=1,2", "sync_cycles=50,60,70")])
    assert len(chips) == 6
    assert {(chip.n_cores, chip.sync_cycles) for chip in chips.values()} == {
        (n, cycles) for n in (1, 2) for cycles in (50, 60, 70)
    }
    of_changed = chips_of("test-4:sync_cycles=50", [parse_varied("n_cores=1,2", BASE)])
    assert {chip.sync_cycles for chip in of_changed.values()} == {50}
    with pytest.raises(InputError, match="expected at most"):
        chips_of("test-4", [sweeping.Varied(name, tuple("123456789")) for name in "abcde"])
    with pytest.raises(InputError, match="n_cores"):
        chips_of("test-4", [parse_varied("n_cores=many", BASE)])


def test_a_field_is_varied_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sweep", str(MODEL), "--chip", "test-4", "--vary", "n_cores=8", "--vary", "n_cores=4"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 2
    assert "n_cores is varied twice, expected once" in capsys.readouterr().err


def test_a_combination_that_is_no_chip_is_a_row_without_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(MODEL), "--chip", "test-4", "--no-cache", "-o", str(tmp_path)]
    assert main([*words, "--vary", "sram_bytes=8KiB,624KiB", "--vary", "sync_cycles=90,100"]) == 0
    shown = capsys.readouterr().out
    table, below = shown.split("sram_bytes=8KiB,sync_cycles=90 and 1 more: no such chip: ")
    assert table.count("no such chip") == 2
    assert below.startswith("sram_bytes = 8192 is too little")
    with (tmp_path / "sweep.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["sram_bytes"] for row in rows] == ["8KiB", "8KiB", "624KiB", "624KiB"]
    assert rows[0]["reason"].startswith("no such chip: ")
    assert {rows[0][name] for name in rows[0]} - {"8KiB", "90", rows[0]["reason"]} == {""}
    assert int(rows[2]["cycles"]) > 0
    assert main([*words, "--vary", "sram_bytes=8KiB"]) == 2


def test_every_reason_is_said_once_below_the_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["sweep", str(MODEL), "--chip", "test-2x4", "--no-cache", "-o", str(tmp_path)]
    assert main([*words, "--vary", "n_cores=8,9,7", "--vary", "sync_cycles=90,100"]) == 0
    below = [line for line in capsys.readouterr().out.splitlines() if line.startswith("n_cores=")]
    assert below == [
        f"n_cores={n},sync_cycles=90 and 1 more: no such chip: n_cores = {n}, but the counts of levels make 8: "
        "change levels.core.count"
        for n in (9, 7)
    ]


@pytest.mark.slow
def test_points_are_what_compiling_says_and_are_not_planned_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "points.jsonl"
    chips = chips_of("test-4", [parse_varied("n_cores=1,4", BASE)])
    points = sweep(MODEL, chips, kept, {}, executor=ThreadPoolExecutor(2))
    for point, chip in zip(points, chips.values(), strict=True):
        report = compile(MODEL, chip).report()
        assert (point.cycles, point.used_bytes) == (report.total_cycles, report.peak_bytes)
        assert point.microseconds == round(report.total_cycles / chip.clock_hz * 1e6, 6)
        assert point.moved_share == round(1 - report.cycles.compute / report.total_cycles, 4)
    planned: list[Any] = []

    def noted(*call: Any) -> Point:
        planned.append(call[-1])
        return points[0].model_copy(update={"setting": call[-1]})

    monkeypatch.setattr(sweeping, "plan_point", noted)
    assert sweep(MODEL, chips, kept, {}) == points
    assert planned == []
    more = chips_of("test-4", [parse_varied("n_cores=1,2,4", BASE)])
    assert [point.setting for point in sweep(MODEL, more, kept, {})] == list(more)
    assert planned == [(("n_cores", "2"),)]
    # The same words may stand for another chip, which is another point.
    slower = chips_of("test-4:sync_cycles=500", [parse_varied("n_cores=1,4", BASE)])
    planned.clear()
    sweep(MODEL, slower, kept, {})
    assert planned == list(slower)


def test_a_cost_model_that_was_changed_makes_other_points(tmp_path: Path) -> None:
    kept, own = tmp_path / "points.jsonl", tmp_path / "own.py"
    own.write_text("from t10.cost import IpuCostModel as cost_model\n")
    options = {"cost_model": str(own)}
    chips = chips_of("test-4", [])
    sweep(MODEL, chips, kept, options)
    own.write_text(own.read_text() + "# changed\n")
    with pytest.raises(InputError, match="another model, version or options"):
        sweep(MODEL, chips, kept, options)


def test_what_was_found_before_an_interruption_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "points.jsonl"
    chips = chips_of("test-4", [parse_varied("n_cores=1,2", BASE)])
    plan_point = sweeping.plan_point

    def interrupted(*call: Any) -> Point:
        if call[-1] == (("n_cores", "2"),):
            raise KeyboardInterrupt
        return plan_point(*call)

    monkeypatch.setattr(sweeping, "plan_point", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sweep(MODEL, chips, kept, {})
    assert len(kept.read_text().splitlines()) == 2


def test_points_of_other_chips_stay(tmp_path: Path) -> None:
    kept, path = tmp_path / "points.jsonl", MODEL
    few, more = (chips_of("test-4", [parse_varied(text, BASE)]) for text in ("n_cores=2,4", "n_cores=3"))
    sweeping.sweep(path, few, kept, {"program": False})
    sweeping.sweep(path, more, kept, {"program": False})
    lines = kept.read_text().splitlines()[1:]
    assert [Point.model_validate_json(line).setting[0][1] for line in lines] == ["2", "4", "3"]


def test_a_line_that_was_cut_off_is_planned_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "points.jsonl"
    chips = chips_of("test-4", [parse_varied("n_cores=1,2", BASE)])
    points = sweep(MODEL, chips, kept, {})
    text = kept.read_text()
    kept.write_text(text[:-40])
    planned: list[Any] = []
    plan_point = sweeping.plan_point

    def noted(*call: Any) -> Point:
        planned.append(call[-1])
        return plan_point(*call)

    monkeypatch.setattr(sweeping, "plan_point", noted)
    assert sweep(MODEL, chips, kept, {}) == points
    assert planned == [(("n_cores", "2"),)]
    assert kept.read_text() == text


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_made_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file").touch()
    command = ["sweep", str(MODEL), "--chip", "test-4", "--vary", "n_cores=4", "-o", str(tmp_path / name)]
    assert main(command) == 2
    assert "cannot write folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no file of a sweep"),
        ("{}", "no file of a sweep"),
        ('{"format": "t10-sweep", "key": "x"}\n[]\n', "no file of a sweep"),
        ('{"format": "t10-sweep", "key": "x"}', "another model, version or options"),
    ],
)
def test_a_file_that_is_no_sweep_of_this_model_is_refused(tmp_path: Path, text: str, message: str) -> None:
    kept = tmp_path / "points.jsonl"
    kept.write_text(text)
    with pytest.raises(InputError, match=message):
        sweep(MODEL, chips_of("test-4", []), kept, {})
    assert kept.read_text() == text


@pytest.mark.slow
@pytest.mark.parametrize("model", ["/dev/zero", "-", "pipe"])
def test_a_model_that_can_be_read_once_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=f"{model} can be read once, expected a file"):
        sweep(model, {}, tmp_path / "points.jsonl", {})


def test_a_reason_may_hold_what_ends_a_line_of_unicode(tmp_path: Path) -> None:
    kept, chips = tmp_path / "points.jsonl", chips_of("test-4", [parse_varied("n_cores=2", BASE)])
    sweep(MODEL, chips, kept, {})
    text = kept.read_text().replace('"reason":"', '"reason":"\u2028\x85')
    kept.write_text(text, "utf-8")
    assert [point.reason for point in sweep(MODEL, chips, kept, {})] == ["\u2028\x85"]


def test_the_command_writes_points_a_table_and_a_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = MODEL.with_name("bert_fp16.onnx")
    arguments = ["sweep", str(model), "--chip", "test-4", "--vary", "sram_bytes=30KiB,64KiB"]
    assert main([*arguments, "--no-cache", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "does not fit" in shown
    assert "modelled" in shown
    head, *lines = (tmp_path / "sweep.csv").read_text().splitlines()
    assert head.startswith("sram_bytes,reason,cycles,microseconds")
    assert [line.split(",")[0] for line in lines] == ["30KiB", "64KiB"]
    assert ElementTree.fromstring((tmp_path / "sweep.svg").read_text()).tag.endswith("svg")


@pytest.mark.parametrize(
    ("base", "text"),
    [
        ("test-4", "clock_hz=1GHz,2GHz"),
        ("test-4", "sram_bytes=256 KiB,512 KiB"),
        ("ipu-mk2+hbm", "hbm_bandwidth=1TB/s,2TB/s"),
        ("ipu-mk2+hbm", "memory.bytes_per_second=500 GB/s,1TB/s"),
    ],
)
def test_a_plot_reads_values_in_the_unit_of_their_field(base: str, text: str) -> None:
    chips = chips_of(base, [parse_varied(text, load_chip(base))])
    points = [Point(setting=setting, chip="x", cycles=9, microseconds=1.0) for setting in chips]
    assert ElementTree.fromstring(sweep_plot(points)).tag.endswith("svg")


def test_off_chip_memory_is_varied_like_any_other_number() -> None:
    varied = parse_varied("hbm_bandwidth=1 TB/s..4 TB/s", BASE)
    rates = [chip.memory and chip.memory.bytes_per_second for chip in chips_of("test-4", [varied]).values()]
    assert rates == [1e12, 2e12, 4e12]
    base = load_chip("ipu-mk2+hbm")
    varied = parse_varied("memory.latency_cycles=1..1024:2", base)
    latencies = [c.memory and c.memory.latency_cycles for c in chips_of("ipu-mk2+hbm", [varied]).values()]
    assert latencies == [1, 1024]
    with pytest.raises(InputError, match=r"expected one of .*memory\.channels.*hbm_bandwidth"):
        parse_varied("nothing=1", base)


def test_links_and_engines_are_varied_like_any_other_number() -> None:
    base = load_chip("test-4x16")
    links = parse_varied("levels.chip.link_bytes_per_cycle=0.5..2", base)
    counts = parse_varied("levels.chip.count=2,4", base)
    chips = chips_of("test-4x16", [links, counts]).values()
    assert [(c.levels[1].link_bytes_per_cycle, c.n_cores) for c in chips] == [
        (rate, n) for rate in (0.5, 1, 2) for n in (32, 64)
    ]
    units = chips_of("test-4", [parse_varied("matrix_units.f16-f32.row_cycles=4..16", BASE)]).values()
    assert [[u.row_cycles for u in c.matrix_units if u.acc_dtype != u.in_dtype] for c in units] == [
        [4],
        [8],
        [16],
    ]


def test_words_are_varied_like_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = load_chip("test-ring")
    fields = "execution=bulk-synchronous,overlapped", "levels.core.topology=ring,line"
    varied = [parse_varied(text, base) for text in (*fields, "levels.core.multicast=true, false")]
    chips = chips_of("test-ring", varied).values()
    assert [(c.execution, c.levels[0].topology, c.levels[0].multicast) for c in chips] == [
        (execution, topology, multicast)
        for execution in ("bulk-synchronous", "overlapped")
        for topology in ("ring", "line")
        for multicast in (True, False)
    ]
    with pytest.raises(
        InputError, match=r"found no field 'topology': did you mean levels\.core\.topology\?$"
    ):
        parse_varied("topology=ring,line", base)
    words = ["sweep", str(MODEL), "--chip", "test-ring", "--no-cache", "-o", str(tmp_path)]
    assert main([*words, *(word for text in fields for word in ("--vary", text))]) == 0
    shown = capsys.readouterr().out
    assert "bulk-synchronous" in shown
    with (tmp_path / "sweep.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["execution"] for row in rows] == ["bulk-synchronous"] * 2 + ["overlapped"] * 2
    assert int(rows[1]["cycles"]) >= int(rows[0]["cycles"]) > 0


def test_a_plot_has_words_side_by_side_and_prefers_numbers() -> None:
    def drawn(*fields: str) -> str:
        settings = chips_of("test-ring", [parse_varied(text, load_chip("test-ring")) for text in fields])
        points = [Point(setting=setting, chip="x", cycles=9, microseconds=1.0) for setting in settings]
        return sweep_plot(points)

    words = "levels.core.topology=ring,line"
    alone, both = drawn(words), drawn(words, "sync_cycles=10,20")
    assert ">ring</text>" in alone
    assert ">line</text>" in alone
    assert ">levels.core.topology ring</text>" in both
    assert ">sync_cycles</text>" in both


def test_formulas_and_counted_steps_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for values, is_mixed in (("4,8", True), ("4,9", False)):
        varied = f"matrix_units.f32-f32.row_cycles={values}"
        words = ["--chip", "test-4", "--vary", varied, "--no-cache", "-o", str(tmp_path / values)]
        assert main(["sweep", str(MODEL), *words]) == 0
        assert ("priced by formulas" in capsys.readouterr().out) == is_mixed


@pytest.mark.slow
def test_a_model_in_stages_is_planned_for_every_chip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A point says what `t10.compile_stages` says of the same chip; stages come with options of their own."""
    model = MODEL.with_name("mlp.onnx")
    command = [
        "sweep",
        str(model),
        "--chip",
        "test-2x4",
        "--vary",
        "sync_cycles=90,900",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main([*command, "--stages", "2"]) == 0
    assert "results/s" in capsys.readouterr().out
    header, *lines = (tmp_path / "out/sweep.csv").read_text().splitlines()
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    for row in rows:
        chip = load_chip(f"test-2x4:sync_cycles={row['sync_cycles']}")
        staged = compile_stages(model, chip, stages=2)
        assert int(row["cycles"]) == staged.staged.latency_cycles
        assert float(row["results_per_second"]) == pytest.approx(staged.staged.results_per_second, rel=1e-3)
        computing = sum(each.active.cycles.compute for plan in staged.plans for each in plan.operators)
        assert float(row["moved_share"]) == pytest.approx(
            1 - computing / staged.staged.latency_cycles, abs=1e-4
        )
        assert (row["n_stages"], len(staged.plans)) == ("2", 2)
        report, interval = staged.report(), staged.staged.interval_cycles
        macs = sum(spec.n_points for spec in staged.graph.operators if spec.kind == "contraction")
        assert report.utilisation == round(macs / (interval * 2 * peak_macs(staged.executables[0].chip)), 6)
        assert float(row["utilisation"]) == report.utilisation
        rates = [each.mean_gbytes_per_second_in for each in report.stages]
        assert float(row["mean_gbytes_per_second_in"]) == pytest.approx(max(rates), abs=1e-3)
    assert float(rows[0]["results_per_second"]) > float(rows[1]["results_per_second"])
    assert main([*command, "--stages", "2", "--program"]) == 2
    assert main([*command[:-1], str(tmp_path / "other"), "--stage-level", "chip"]) == 2
