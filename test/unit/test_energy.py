"""Energy: counted from points, bytes that cores take from others, fetches and time."""

from __future__ import annotations

from html import escape
from math import prod
from pathlib import Path

import numpy as np
import pytest
from support import specs
from support.simulation import plan_of

from t10.chip import ChipSpec, load_chip
from t10.chip.energy import Energy
from t10.chip.groups import groups_of
from t10.chip.off_chip import OffChipMemory
from t10.cli import main
from t10.core import movement
from t10.core.plan import CostedPlan, Cycles
from t10.cost import IpuCostModel
from t10.driver import compile
from t10.errors import InputError
from t10.plan import PlanOptions, plan_module
from t10.plan.fronts.stored_fronts import front_key
from t10.plan.schedule import restore_module
from t10.report import build_report
from t10.report.analyser.data import page_data
from t10.report.analyser.page import page_text
from t10.report.compare import totals
from t10.report.stages import stages_table
from t10.report.table import energy_text, joules_text, report_text
from t10.staged import compile_stages
from t10.sweep import parse_varied

CHIP = load_chip("test-16")
MODEL = Path(__file__).resolve().parents[2] / "examples/models/conv.onnx"


def with_energy(chip: ChipSpec, **fields: float) -> ChipSpec:
    return chip.model_copy(update={"energy": Energy(**fields)})


def test_bytes_are_those_that_cores_take_from_others() -> None:
    """A product whose result its reader cuts otherwise; counted element by element."""
    product, adding = (
        specs.matmul(16, 12, 24, name="y", c="y"),
        specs.elementwise((16, 12), a="y", b="z", o="out"),
    )
    made, read = plan_of(product, (4, 2, 1)), plan_of(adding, (2, 4))
    chosen = tuple(CostedPlan(plan, Cycles(), 0, 0) for plan in (made, read))
    graph = specs.chain_graph("moved", (product, adding))
    chip = with_energy(CHIP, byte_pj=1e6)
    plan = restore_module(graph, chip, IpuCostModel(chip), chosen, (0, 0))
    layouts = {layout.value: layout for layout in (*plan.weight_layouts, *plan.input_layouts)}
    for spec, scheduled in zip(graph.operators, plan.operators, strict=True):
        taken = 0
        for arrival in scheduled.arrivals:
            operand = movement.operand_of(spec, arrival.operand)
            maker = {each.output.name: each for each in graph.operators}.get(operand.name, spec)
            home = movement.layout_map(maker, layouts[operand.name], prod(operand.shape)).elements
            wanted = movement.operand_elements(spec, scheduled.active.plan, arrival.operand)
            for core, elements in enumerate(wanted.reshape(len(wanted), -1)):
                here = home[core] if core < len(home) else np.zeros(0, np.int64)
                taken += len(np.setdiff1d(elements[elements >= 0], here)) * 2
        layouts[spec.output.name] = scheduled.output_layout
        reported = next(each for each in build_report(plan, chip).operators if each.name == spec.name)
        assert reported.energy is not None
        assert reported.energy.exchange == pytest.approx(taken * 1e-6)
        assert reported.energy.total == reported.energy.exchange
        assert taken or spec is product


def test_points_are_those_of_whole_parts_and_watts_go_by_time() -> None:
    """14 rows in 4 parts of 4; a sum of 3 parts is added up twice, and rounded once."""
    spec = specs.matmul(14, 12, 24)
    graph, chip = specs.one_operator_graph(spec), with_energy(CHIP, mac_pj=3, static_watts=2)
    chosen = (CostedPlan(plan_of(spec, (4, 1, 3)), Cycles(), 0, 0),)
    report = build_report(restore_module(graph, chip, IpuCostModel(chip), chosen, (0,)), chip)
    assert report.energy is not None
    assert report.energy.compute == pytest.approx(3e-12 * (16 * 12 * 24 + 16 * 12 * 3))
    assert report.energy.static == pytest.approx(2 * report.total_cycles / chip.clock_hz)
    assert "energy" in report_text(report)
    assert "(modelled): compute" in report_text(report)
    without = build_report(plan_module(graph, CHIP), CHIP)
    assert without.energy is None
    assert "energy" not in report_text(without)


def test_a_look_up_copies_what_it_finds_and_an_epilogue_computes_its_result() -> None:
    looking, rounding = specs.gather(8, 16, 5000, "f16"), specs.linear_relu(16, 12, 24)
    for spec, n_points in ((looking, 8 * 16), (rounding, 16 * 12 * 24 + 16 * 12)):
        plan = plan_of(spec, (1,) * len(spec.axes))
        chip = with_energy(CHIP, mac_pj=1e6)
        chosen = (CostedPlan(plan, Cycles(), 0, 0),)
        module = restore_module(specs.one_operator_graph(spec), chip, IpuCostModel(chip), chosen, (0,))
        energy = build_report(module, chip).energy
        assert energy is not None
        assert energy.compute == pytest.approx(n_points * 1e-6)


@pytest.mark.parametrize(
    ("joules", "text"),
    [(0, "0 J"), (1.5, "1.5 J"), (1500, "1,500 J"), (0.9996, "1 J"), (9.996e-4, "1 mJ"), (3.07e-9, "3.07 nJ"),
     (1e-15, "0.001 pJ"), (2.5e-5, "25 µJ")],
)  # fmt: skip
def test_joules_have_a_unit_that_suits(joules: float, text: str) -> None:
    assert joules_text(joules) == text


def test_a_stage_has_its_share_of_the_watts() -> None:
    chip = with_energy(load_chip("test-4x16"), static_watts=80, mac_pj=1)
    energy = groups_of(chip, "").chip.energy
    assert energy == Energy(static_watts=20, mac_pj=1)


def test_energy_does_not_decide_plans() -> None:
    spec = specs.matmul(16, 12, 24)
    keys = {
        front_key(spec, chip, IpuCostModel(chip), PlanOptions())
        for chip in (CHIP, with_energy(CHIP, mac_pj=1), with_energy(CHIP, mac_pj=2))
    }
    assert len(keys) == 1


def test_weights_that_are_fetched_take_energy_and_those_that_stay_do_not() -> None:
    graph = specs.mlp_graph(64, (1024,) * 3)
    memory = OffChipMemory(bytes_per_second=1e11)
    for sram, n_bytes in ((1024 * 1024, 0), (256 * 1024, 2 * (1024 + 1) * 1024 * 2)):
        chip = with_energy(CHIP, off_chip_byte_pj=5).model_copy(update={"memory": memory, "sram_bytes": sram})
        plan = plan_module(graph, chip)
        energy = build_report(plan, chip).energy
        assert energy is not None
        assert energy.off_chip == pytest.approx(5e-12 * n_bytes), plan.fetches


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{mac_pj: 0}", "found no number above 0"),
        ("5", r"line 3: field energy: expected energies by name, such as {mac_pj: 0.5}, found 5"),
        ("[1, 2]", "expected energies by name"),
        ("{mac: 1}", "did you mean 'mac_pj'"),
    ],
)
def test_energy_of_nothing_is_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text(f"based_on: test-4\nname: none\nenergy: {text}\n")
    with pytest.raises(InputError, match=message):
        load_chip(path)


def test_energies_are_varied_one_by_one() -> None:
    chip = with_energy(CHIP, mac_pj=1, byte_pj=2)
    assert parse_varied("energy.byte_pj=1,4", chip).values == ("1", "4")
    with pytest.raises(InputError, match=r"did you mean energy\.mac_pj"):
        parse_varied("energy.mac=1,4", chip)


@pytest.mark.slow
def test_page_comparison_and_sweep_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chip.yaml"
    path.write_text("based_on: test-4\nname: warm\nenergy: {mac_pj: 1, byte_pj: 2}\n")
    made = [compile(MODEL, chip=chip) for chip in (path, "test-4")]
    reports = [each.report() for each in made]
    assert reports[0].energy is not None
    total = joules_text(reports[0].energy.total)
    data = page_data(made[0].plan, made[0].chip, reports[0])
    assert f"modelled energy<b>{escape(energy_text(reports[0].energy))}" in page_text(reports[0], data)
    shown = [each["energy"] for each in data["operators"]]
    assert shown == [joules_text(each.energy.total) for each in reports[0].operators if each.energy]
    assert dict(totals(*reports))["energy"] == f"{total} -> none"
    assert "energy" not in dict(totals(reports[1], reports[1]))
    asked = ["sweep", str(MODEL), "--chip", str(path), "--vary", "energy.mac_pj=1,2"]
    assert main([*asked, "-o", str(tmp_path / "out")]) == 0
    assert total in capsys.readouterr().out
    header, *rows = (tmp_path / "out" / "sweep.csv").read_text().splitlines()
    joules = [float(row.split(",")[header.split(",").index("joules")]) for row in rows]
    assert joules[0] == reports[0].energy.total
    assert joules[1] == pytest.approx(joules[0] + reports[0].energy.compute)


def test_stages_have_energy_each_and_in_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chip = tmp_path / "chip.yaml"
    chip.write_text(
        "based_on: test-2x4\nname: x\nenergy: {mac_pj: 0.5, byte_pj: 1.2, off_chip_byte_pj: 60, static_watts: 8}\n"
    )
    model, folder = MODEL.with_name("mlp.onnx"), tmp_path / "out"
    staged = compile_stages(model, chip, stages=2)
    report = staged.report()
    first, second = (stage.energy for stage in report.stages)
    assert first is not None
    assert second is not None
    assert report.energy is not None
    assert report.energy.total == pytest.approx(first.total + second.total)
    # Each has half of the watts for as long as the slowest takes.
    assert first.static == second.static == pytest.approx(4 * report.interval_cycles / report.clock_hz)
    alone = [energy for each in staged.executables if (energy := each.report().energy) is not None]
    handed = sum(each.n_bytes for each in report.stages[0].sends)
    assert first.exchange == alone[report.stages[0].plan].exchange
    assert second.exchange == pytest.approx(alone[report.stages[1].plan].exchange + handed * 1.2e-12)
    arguments = ["--chip", str(chip), "--stages", "2", "--no-cache"]
    assert main(["compile", str(model), "-o", str(folder), *arguments, "--no-program"]) == 0
    shown = capsys.readouterr().out
    assert "(modelled): compute" in shown
    assert main(["report", str(folder)]) == 0
    assert "(modelled): compute" in capsys.readouterr().out
    assert "modelled energy of a result" in (folder / "report.html").read_text(encoding="utf-8")
    varied = ["--vary", "sync_cycles=90", "-o", str(tmp_path / "sweep")]
    assert main(["sweep", str(model), *arguments, *varied]) == 0
    assert "energy" in capsys.readouterr().out


def test_stages_of_a_chip_without_energies_have_none() -> None:
    report = compile_stages(MODEL.with_name("mlp.onnx"), "test-2x4", stages=2).report()
    assert report.energy is None
    assert "energy" not in [column.title for column in stages_table(report).columns]
