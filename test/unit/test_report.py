"""report.json, tables, plots, page and timeline of a plan written by hand."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
from support import specs
from support.plans import ROTATING, two_operator_plan

from t10.chip import load_chip
from t10.core.operator_body import scheduled_operator
from t10.core.plan import CostedPlan, Cycles, OperatorPlan
from t10.core.schedule import Arrival, Optimality
from t10.errors import InputError
from t10.plan import plan_module
from t10.profile.notation import scalar_function
from t10.report import Report, build_report, read_report, report_schema, write_report
from t10.report.analyser.data import page_data
from t10.report.analyser.page import page_text
from t10.report.compare import totals
from t10.report.page import write_page
from t10.report.plots import missing_letters, new_figure, svg_text
from t10.report.rates import MEAN_RATE
from t10.report.table import (
    OPERATOR_COLUMNS,
    bytes_text,
    count_text,
    milliseconds_text,
    optimality_text,
    report_text,
    slowest,
    time_text,
)
from t10.report.trace import planned_trace, simulated_trace
from t10.report.traffic import operator_traffic, reduce_bytes, shift_bytes
from t10.sim.result import PhaseRecord

CHIP = load_chip("test-16")


def report() -> Report:
    return build_report(two_operator_plan(), CHIP, source="model.onnx", planner_seconds={"plan": 0.25})


def test_totals_are_sums_over_the_operators() -> None:
    built = report()
    assert built.total_cycles == 240 + 90 + 30 + 50 == sum(op.cycles.total for op in built.operators)
    assert (built.cycles.compute, built.cycles.shift, built.cycles.setup) == (290, 90, 30)
    assert built.total_milliseconds == pytest.approx(410 / CHIP.clock_hz * 1000, abs=1e-6)
    assert sum(op.share for op in built.operators) == pytest.approx(1, abs=1e-5)


def test_names_that_the_font_of_plots_lacks_are_drawn_without_a_warning(
    recwarn: pytest.WarningsRecorder,
) -> None:
    figure = new_figure(2, 2)
    figure.add_subplot().set_title("\u30bd\u30d5\u30c8")
    assert "\u30bd\u30d5\u30c8" in svg_text(figure)
    assert list(recwarn) == []


def test_letters_that_are_missing_are_told_and_other_warnings_kept() -> None:
    figure = new_figure(2, 2)
    figure.add_subplot().set_title("\u30bd\u30d5\u30c8 \u05e2\u05d1\u0e01")
    with warnings.catch_warnings(record=True) as caught, missing_letters() as missing:
        figure.savefig(io.BytesIO(), format="png")
        warnings.warn("of something else", stacklevel=1)
    assert [str(each.message) for each in caught] == ["of something else"]
    assert any("KATAKANA LETTER SO" in text for text in missing)


def test_a_time_is_rounded_once_when_it_is_shown() -> None:
    chip = CHIP.model_copy(update={"clock_hz": 1.33e9})
    built = build_report(two_operator_plan(), chip).model_copy(update={"total_cycles": 1264})
    rounded = built.model_copy(update={"total_milliseconds": 0.00095})
    assert time_text(rounded) == milliseconds_text(1264 / 1.33e9 * 1e3) == "1.0 µs"
    assert dict(totals(rounded, rounded))["time"] == "1.0 µs -> 1.0 µs"
    assert "1.0 µs, 1,264 cycles" in report_text(rounded)


def test_products_come_to_a_part_of_the_engines_fastest_rate() -> None:
    built = report()
    # Engines of 16 cores do 64 f16 multiply-accumulates each: a product of 144 points, and an operator that is none.
    matmul, other = built.operators
    assert matmul.utilisation == round(144 / (matmul.cycles.total * 16 * 64), 6)
    assert other.utilisation is None
    assert built.utilisation == round(144 / (built.total_cycles * 16 * 64), 6)
    assert f"utilisation   {built.utilisation:.1%}" in report_text(built)
    without = build_report(two_operator_plan(), CHIP.model_copy(update={"matrix_units": ()}))
    assert without.utilisation is None
    assert "engines" not in report_text(without)


def test_a_rate_has_one_name_and_is_over_all_of_the_time() -> None:
    built = report()
    received = 16 + 24 + 64
    assert built.operators[0].mean_rate == pytest.approx(received / (360 / CHIP.clock_hz) / 1e9, abs=1e-3)
    assert built.mean_rate == pytest.approx(received / (410 / CHIP.clock_hz) / 1e9, abs=1e-3)
    assert f"{MEAN_RATE}  {built.mean_rate:.2f}, into the busiest core" in report_text(built)
    assert [column.title for column in OPERATOR_COLUMNS if "GB/s" in column.title] == [MEAN_RATE]
    assert dict(totals(built, built))[MEAN_RATE] == f"{built.mean_rate:.2f} -> {built.mean_rate:.2f}"
    facts = page_text(built, page_data(two_operator_plan(), CHIP, built))
    assert f"<div>{MEAN_RATE}<b>{built.mean_rate:.2f}, busiest core" in facts


def test_reports_are_read_without_the_planner() -> None:
    code = "import sys, t10.report; print('t10.plan.assemble' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_memory_is_what_the_buffers_say() -> None:
    built = report()
    assert (built.peak_bytes, built.capacity_bytes) == (160, 1024)
    assert built.peak_operator == "matmul"
    assert [op.peak_bytes for op in built.operators] == [160, 120]
    assert [op.idle_bytes for op in built.operators] == [24, 0]
    assert built.weight_bytes == 6 * 6 * 4


def test_weights_that_rest_one_after_the_other_count_once() -> None:
    plan = two_operator_plan()
    (at_rest,) = (buffer for buffer in plan.buffers if buffer.name == "idle:b")
    others = tuple(buffer for buffer in plan.buffers if buffer != at_rest)
    first, second = (
        replace(at_rest, first=0, last=0),
        replace(at_rest, name="idle:w", first=1, last=1, size_bytes=40),
    )
    built = build_report(replace(plan, buffers=(*others, first, second)), CHIP)
    assert built.idle_bytes == 40
    assert report().idle_bytes == 24


def shifted(plan: OperatorPlan, *arrivals: Arrival) -> int:
    """Return the bytes that the first operator's shifts bring to a core under a plan."""
    spec, layout = two_operator_plan().graph.operators[0], two_operator_plan().operators[0].output_layout
    return shift_bytes(spec, scheduled_operator(spec, CostedPlan(plan, Cycles(), 0, 0), arrivals, layout))


def test_every_rotating_operand_moves_its_slab_at_every_shift() -> None:
    # Three steps are two shifts by rp = 2: a slab of a is 2 rows x 2 columns, one of b 2 rows x 2 columns, f32.
    assert shifted(ROTATING) == 2 * (2 * 2 + 2 * 2) * 4
    # A weight that rotates in its idle buffer is shifted home.
    assert shifted(ROTATING, Arrival(1, "in_place", "idle:b")) == shifted(ROTATING) + 2 * 2 * 4


def test_an_inner_axis_is_shifted_along_in_every_sweep() -> None:
    nested = replace(ROTATING, steps=(2, 1, 3), loop_order=(0, 2))
    assert shifted(nested) == 2 * shifted(ROTATING)


def test_a_split_reduction_moves_a_chunk_of_every_other_member() -> None:
    spec = two_operator_plan().graph.operators[0]
    split = replace(
        ROTATING, f_op=(2, 1, 3), lengths=(2, 6, 2), ft=((1, 1, 1),) * 3, rp=(0, 0, 0), steps=(1, 1, 1),
        loop_order=(), phases=((), (), ()), reduce="scatter",
    )  # fmt: skip
    assert reduce_bytes(spec, split) == 2 * (2 * 6 // 3) * 4
    assert reduce_bytes(spec, ROTATING) == 0


def test_traffic_is_told_apart_by_reason() -> None:
    plan = two_operator_plan()
    traffic = operator_traffic(plan.graph.operators[0], plan.operators[0])
    assert (traffic.relayout, traffic.setup, traffic.shift, traffic.reduce) == (16, 24, 64, 0)


def test_a_written_report_follows_the_schema_and_reads_back(tmp_path: Path) -> None:
    write_report(tmp_path / "report.json", report())
    schema = report_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads((tmp_path / "report.json").read_text()), schema)
    assert read_report(tmp_path / "report.json") == report()


def test_a_wrong_report_is_refused_with_the_place(tmp_path: Path) -> None:
    values = report().model_dump(mode="json")
    values["operators"][1]["cycles"]["compute"] = "many"
    (tmp_path / "report.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=r"operators\[1\].cycles.compute: .*'many'"):
        read_report(tmp_path / "report.json")


def test_the_text_says_that_cycles_are_modelled() -> None:
    text = str(report())
    assert "410 cycles (modelled, ipu)" in text
    assert "matmul" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(("dtype", "n_made_up"), [("f32", 1), ("f16", 0)])
def test_the_text_says_where_code_branches_on_data_that_is_made_up(dtype: str, n_made_up: int) -> None:
    """Sines of f32 do, of f16 not. Without a program nothing is timed."""
    body, _ = scalar_function("0 1 addf sin", [dtype, dtype])
    spec = replace(specs.elementwise((4, 6), dtype=dtype), body=body)
    chip = load_chip("test-4")
    plan = plan_module(specs.one_operator_graph(spec), chip)
    assert build_report(plan, chip).n_timed_on_data == 0
    report = build_report(plan, chip, timed_cycles=100)
    assert report.n_timed_on_data == n_made_up
    told = "made-up data in 1 operator whose code branches on it"
    assert (told in " ".join(report_text(report).split())) == bool(n_made_up)


def test_algorithm_1_is_compared_at_prices_of_the_same_kind() -> None:
    """What the plan takes where it lies is not what Algorithm 1's plan is priced at."""
    known = Optimality("exact", 410, 200, literal_cycles=220, aware_cycles=210, priced_cycles=200)
    text = optimality_text(build_report(replace(two_operator_plan(), optimality=known), CHIP))
    assert (
        "Algorithm 1, before placement in memory: +10.00% (fastest execution), +5.00% (fastest with set-up)"
        in text
    )


def test_operators_of_one_kind_share_a_row() -> None:
    plan = two_operator_plan()
    graph = plan.graph
    second = replace(graph.operators[1], name="again", output=replace(graph.operators[1].output, name="z"))
    scheduled = replace(plan.operators[1], name="again", arrivals=(Arrival(0, "in_place", "value:c"),))
    plan = replace(
        plan,
        graph=replace(graph, operators=(*graph.operators, second)),
        operators=(*plan.operators, scheduled),
    )
    rows = slowest(build_report(plan, CHIP))
    assert [row.name for row in rows] == ["matmul", "relu (×2)"]
    assert rows[1].cycles.total == 100


def test_the_page_needs_nothing_else_and_is_the_same_every_time(tmp_path: Path) -> None:
    contents: list[dict[str, bytes]] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files = write_page(tmp_path / name, two_operator_plan(), CHIP, report())
        contents.append({file: (tmp_path / name / file).read_bytes() for file in files})
    assert contents[0] == contents[1]
    page = contents[0]["report.html"].decode()
    assert page.count('<script type="application/json" id="data">') == 1
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "modelled" in page
    for file, content in contents[0].items():
        if file.endswith(".svg"):
            ElementTree.fromstring(content)


def test_the_planned_timeline_is_gapless_and_as_long_as_the_plan() -> None:
    plan = two_operator_plan()
    events = [event for event in planned_trace(plan, CHIP) if event["ph"] == "X"]
    phases = [event for event in events if event["tid"] == 2]
    end = 0.0
    for event in phases:
        assert event["ts"] == pytest.approx(end, abs=1e-5)
        end = event["ts"] + event["dur"]
    assert end == pytest.approx(410 / CHIP.clock_hz * 1e6, abs=1e-5)
    assert [event["name"] for event in events if event["tid"] == 1] == ["matmul", "relu"]


def test_the_simulated_timeline_holds_every_phase(tmp_path: Path) -> None:
    timeline = (
        PhaseRecord("matmul", "compute", 0, 10),
        PhaseRecord("matmul", "shift", 10, 5, n_bytes=64),
        PhaseRecord("relu", "compute", 15, 7),
    )
    events = simulated_trace(two_operator_plan(), CHIP, timeline)
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["name"] for event in slices] == ["compute", "shift", "compute", "matmul", "relu"]
    assert slices[1]["args"]["bytes"] == 64
    rates = [event["args"]["busiest core"] for event in events if event["name"] == MEAN_RATE]
    assert rates == [pytest.approx((16 + 24 + 64) / (15 / CHIP.clock_hz) / 1e9, abs=1e-3), 0]


def test_one_thing_is_in_the_singular() -> None:
    assert [count_text(n, "exchange") for n in (0, 1, 2000)] == [
        "0 exchanges",
        "1 exchange",
        "2,000 exchanges",
    ]


def test_numbers_have_readable_units() -> None:
    assert [bytes_text(n) for n in (12, 2048, 3 << 20, 5 << 30)] == ["12 B", "2.0 KiB", "3.0 MiB", "5.0 GiB"]
    nearly = [(1 << 10) - 1, (1 << 20) - 1, (1 << 20) - 60, (1 << 30) - 1]
    assert [bytes_text(n) for n in nearly] == ["1023 B", "1.0 MiB", "1023.9 KiB", "1.0 GiB"]
    assert [milliseconds_text(t) for t in (0.0125, 2.5, 1500)] == ["12.5 µs", "2.500 ms", "1.500 s"]
    assert [milliseconds_text(t) for t in (0.99996, 999.9996)] == ["1.000 ms", "1.000 s"]
