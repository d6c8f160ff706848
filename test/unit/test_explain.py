"""Explanations: loops, rings and reasons of a plan, as text, pictures and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from support import models, specs
from support.paper_plans import three_against_two
from support.plans import RESIDENT, ROTATING, two_operator_plan

import t10
from t10.chip import load_chip
from t10.cli import main
from t10.core.plan import Cycles
from t10.core.schedule import Optimality
from t10.cost import IpuCostModel
from t10.driver import Executable
from t10.errors import InputError
from t10.explain import explain_operator, front_points
from t10.explain.choice import explain_choice
from t10.explain.expression import formula
from t10.explain.holdings import holdings
from t10.explain.nest import nest_text, phase_text
from t10.explain.picture import check_picture
from t10.explain.placement import Placed, placement_reasons, reasons_of_same_plans
from t10.explain.steps import steps_table
from t10.explain.table import explanation_parts
from t10.plan import plan_module
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.search.alternatives import evaluate_plans
from t10.report import build_report
from t10.report.build import step_peaks
from t10.report.console import PrintableConsole

PAPER_SPEC, PAPER_PLAN = three_against_two()


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> Executable:
    path = models.mlp(tmp_path_factory.mktemp("models") / "mlp.onnx")
    forced = ForcedPartition("first", (2, 3, 1), ((1, 1, 3), (1, 1, 2), (1, 1, 1)))
    return t10.compile(path, chip="test-16", options=PlanOptions(forced=(forced,)))


def run(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_formula_names_axes_indices_and_what_is_summed() -> None:
    assert formula(PAPER_SPEC) == "c[m, n] = sum over k of f(a[m, k], b[k, n])"
    odd = replace(PAPER_SPEC, output=replace(PAPER_SPEC.output, name="c\n\td"))
    assert formula(odd) == "c??d[m, n] = sum over k of f(a[m, k], b[k, n])"


def test_the_loops_of_the_paper_example_say_pace_steps_and_start() -> None:
    text = nest_text(PAPER_SPEC, PAPER_PLAN, IpuCostModel(load_chip("test-16")))
    lines = text.splitlines()
    assert lines[0] == "on 6 cores, m in 2 parts of 2, n in 3 parts of 2, k whole (6):"
    assert lines[1] == "  for k in 3 steps of 2, from 3 * m + 2 * n mod 6:"
    assert lines[2].strip().startswith("compute m 2, n 2, k 2")
    assert "shift a, b by 2 along k" in lines[3]
    assert all(line.endswith("cycles") for line in lines[2:4])
    assert phase_text(PAPER_SPEC, PAPER_PLAN, 0) == "0"


def test_the_rings_of_the_paper_example_hold_what_the_paper_draws() -> None:
    a, b, c = holdings(PAPER_SPEC, PAPER_PLAN)
    assert (a.ring, a.rings, a.replicas, a.partition) == (3, 2, 1, (2, 2))
    assert (b.ring, b.rings, b.replicas, b.partition) == (2, 3, 1, (3, 2))
    assert (c.ring, c.rings) == (1, 6)
    assert a.parts[:3] == ("m 0..1 k 0..1", "m 0..1 k 2..3", "m 0..1 k 4..5")
    # The second row starts three further: one of its windows wraps around the end.
    assert a.parts[3:] == ("m 2..3 k 3..4", "m 2..3 k 5..0", "m 2..3 k 1..2")
    assert sorted(a.first_ring) == [0, 1, 2]


def test_every_core_passes_to_the_next_of_its_first_ring() -> None:
    from t10.core import geometry

    ring = holdings(PAPER_SPEC, PAPER_PLAN)[0].first_ring
    sources = geometry.shift_sources(PAPER_SPEC, PAPER_PLAN, 0, 2, 1)
    for before, after in zip(ring, (*ring[1:], ring[0]), strict=True):
        assert sources[after] == before


def test_an_explanation_holds_what_moves_in_and_out(executable: Executable) -> None:
    explained = explain_operator(executable.plan, "first", executable.costs(), "ipu")
    assert explained.cycles["total"] == executable.plan.operators[0].active.cycles.total
    assert [each.operand for each in explained.choice.moved_in] == ["x", "w0", "b0"]
    assert [each.reader for each in explained.choice.moved_out] == ["second"]
    assert explained.choice.number == 1
    assert sum(explained.choice.shares.values()) == pytest.approx(1)
    assert explained.choice.free_bytes >= executable.plan.capacity_bytes - executable.plan.peak_bytes


def test_code_and_stacks_are_not_free(executable: Executable) -> None:
    plan = executable.plan
    choices = [explain_choice(plan, step) for step in range(len(plan.operators))]
    used = [plan.capacity_bytes - choice.free_bytes for choice in choices]
    assert used == list(step_peaks(plan))
    assert max(used) == plan.peak_bytes
    assert choices[0].reserved_bytes == plan.reserved_bytes > 0
    console = PrintableConsole(width=200)
    with console.capture() as captured:
        console.print(*explanation_parts(explain_operator(plan, "first", executable.costs(), "ipu")))
    assert "code and stacks" in captured.get()


def test_a_front_has_one_basis(executable: Executable) -> None:
    """What a sentence says of the front follows from its table, in which a plan that is beaten has no number."""
    first = executable.plan.operators[0]
    own = replace(first.active, cycles=Cycles(compute=100, setup=20))
    faster = replace(
        own, cycles=Cycles(compute=80, setup=20), plan=replace(own.plan, rp=(9,) * len(own.plan.rp))
    )
    operators = (replace(first, active=own, pareto=(faster, own)), *executable.plan.operators[1:])
    plan = replace(executable.plan, operators=operators)
    choice = explain_choice(plan, 0)
    assert (choice.number, choice.n_front) == (0, 1)
    assert choice.reasons[0].startswith(
        "alone, 20.0% slower than the fastest of 1 plan on its front, which would fit"
    )
    points = front_points(plan.graph.operators[0], plan.operators[0].pareto, own.plan)
    assert [(point.number, point.is_chosen) for point in points] == [(1, False), (0, True)]
    assert build_report(plan, executable.chip).operators[0].n_plans == 1


def test_a_plan_that_fits_no_better_one_says_how_many_bytes_are_missing(executable: Executable) -> None:
    first = executable.plan.operators[0]
    faster = replace(first.active, cycles=Cycles(compute=1), active_bytes=1 << 20)
    plan = replace(
        executable.plan,
        operators=(replace(first, pareto=(first.active, faster)), *executable.plan.operators[1:]),
    )
    reasons = explain_choice(plan, 0).reasons
    assert "KiB more of every core" in reasons[0]
    smaller = replace(faster, active_bytes=first.active.active_bytes)
    plan = replace(plan, operators=(replace(first, pareto=(first.active, smaller)), *plan.operators[1:]))
    assert "would fit" in explain_choice(plan, 0).reasons[0]


def test_reasons_name_how_the_model_was_chosen(executable: Executable) -> None:
    for known, text in (
        (Optimality("greedy", 100), "Algorithm 1"),
        (Optimality("pinned", 100, 100, n_states=2), "as pinned"),
        (Optimality("exact", 1000, 999, n_states=12), "at most 0.100% from the optimum of 12 states"),
        (Optimality("exact", 1000, 1000, n_states=1234), "no choice of 1,234 states is faster"),
        (Optimality("exact", 1000), "chosen together"),
    ):
        assert text in explain_choice(replace(executable.plan, optimality=known), 0).reasons[-1]


def test_points_of_a_front_are_numbered_and_the_chosen_one_marked(executable: Executable) -> None:
    spec, second = executable.plan.graph.operators[1], executable.plan.operators[1]
    points = front_points(spec, second.pareto, second.active.plan)
    numbers = [point.number for point in points if point.number]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(point.number or point.is_chosen for point in points)
    assert sum(point.is_chosen for point in points) == 1
    assert [point.active_bytes for point in points] == sorted(point.active_bytes for point in points)


def test_all_plans_of_a_front_have_prices_of_one_kind(executable: Executable) -> None:
    """Those of the search; the plan that runs takes something else where its buffers lie and operands come from."""
    plan, cost = executable.plan, executable.costs()
    n_other = 0
    for spec, scheduled in zip(plan.graph.operators, plan.operators, strict=True):
        expected = evaluate_plans(spec, cost, [priced.plan for priced in scheduled.pareto]).cycles.tolist()
        assert [priced.cycles.total for priced in scheduled.pareto] == expected
        own = next(each for each in scheduled.pareto if each.plan == scheduled.active.plan)
        n_other += own.cycles != scheduled.active.cycles
        points = front_points(spec, scheduled.pareto, scheduled.active.plan)
        assert [point.cycles for point in points] == expected
    assert n_other


def test_explain_prints_everything_and_draws(
    executable: Executable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executable.save(tmp_path / "out")
    for name in ("a.png", "a.svg"):
        code, text, _ = run(capsys, "explain", tmp_path / "out", "--op", "first", "--plot", tmp_path / name)
        assert code == 0
        assert (tmp_path / name).stat().st_size > 1000
        for part in (
            "for k in 3 steps of",
            "Why this plan",
            "Its front: costs of the operator alone",
            "free",
        ):
            assert part in text
    again = tmp_path / "b.svg"
    run(capsys, "explain", tmp_path / "out", "--op", "first", "--plot", again)
    assert again.read_bytes() == (tmp_path / "a.svg").read_bytes()


def test_explain_as_json_is_json_and_nothing_else(
    executable: Executable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executable.save(tmp_path / "out")
    code, text, _ = run(capsys, "explain", tmp_path / "out", "--op", "first", "--json")
    assert code == 0
    loaded = json.loads(text)
    assert loaded["operator"] == "first"
    assert loaded["cost_model"] == "ipu"
    assert loaded["holdings"][0]["ring"] == 3
    code, text, _ = run(capsys, "explain", tmp_path / "out", "--json")
    assert json.loads(text) == ["first", "second"]


def test_names_are_listed_or_suggested(
    executable: Executable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executable.save(tmp_path / "out")
    code, text, _ = run(capsys, "explain", tmp_path / "out")
    assert code == 0
    assert "first" in text
    assert "second" in text
    code, _, error = run(capsys, "explain", tmp_path / "out", "--op", "fist")
    assert (code, error.count("\n")) == (2, 1)
    assert "did you mean first" in error


def test_a_picture_with_boxes_for_letters_says_what_keeps_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    path = models.save(
        tmp_path / "m.onnx",
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="\u884c\u5217\u7a4d")],
        {"x": (TensorProto.FLOAT, [8, 8])},
        {"y": (TensorProto.FLOAT, [8, 8])},
        w=np.ones((8, 8), np.float32),
    )
    for name in ("front.png", "front.svg"):
        plot = tmp_path / name
        code, text, error = run(
            capsys, "pareto", path, "--chip", "test-4", "--op", "\u884c\u5217\u7a4d", "--plot", plot
        )
        assert (code, error) == (0, "")
        assert ("an .svg keeps them" in " ".join(text.split())) == (name == "front.png")
    assert not [warning for warning in recwarn if "Glyph" in str(warning.message)]


def test_pareto_searches_one_operator_of_a_model_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    code, text, _ = run(
        capsys, "pareto", path, "--op", "second", "--chip", "test-16", "--plot", tmp_path / "front.png"
    )
    assert code == 0
    assert "second on test-16: time against memory (modelled, ipu)" in text
    assert "complete: " in text
    assert (tmp_path / "front.png").stat().st_size > 1000
    code, text, _ = run(capsys, "pareto", path, "--op", "second", "--chip", "test-16", "--json")
    found = json.loads(text)
    front, search = found["front"], found["search"]
    assert search["n_priced"] <= search["n_plans"]
    cycles, held = [p["cycles"] for p in front], [p["active_bytes"] for p in front]
    assert cycles == sorted(cycles, reverse=True)
    assert held == sorted(held)
    code, text, _ = run(capsys, "pareto", path, "--chip", "test-16")
    assert code == 0
    assert "second" in text


def test_pareto_of_a_folder_marks_the_plan_that_runs(
    executable: Executable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    executable.save(tmp_path / "out")
    code, text, _ = run(capsys, "pareto", tmp_path / "out", "--op", "second")
    assert code == 0
    assert "runs in the compiled model" in text or "runs another plan" in text
    code, text, _ = run(capsys, "pareto", tmp_path / "out", "--op", "second", "--cost-model", "t10-paper")
    assert "(modelled, t10-paper)" in text


def test_a_picture_needs_a_known_form() -> None:
    with pytest.raises(InputError, match=r"expected \.png or \.svg"):
        check_picture(Path("a.pdf"))


def test_a_rotation_is_stepped_through_core_by_core() -> None:
    """The paper's example: thirds of k travel among three cores, each handing its third to the next."""
    spec = two_operator_plan().graph.operators[0]
    rows = [row for row, _ in steps_table(spec, ROTATING, 0).rows]
    assert rows == [
        ("core 0", "0..1", "2..3", "4..5"),
        ("core 2", "4..5", "0..1", "2..3"),
        ("core 1", "2..3", "4..5", "0..1"),
    ]
    with pytest.raises(ValueError, match="does not rotate"):
        steps_table(spec, RESIDENT, 0)


def test_a_plan_that_takes_longer_where_it_was_placed_says_why() -> None:
    """Operands in memory elements apart, in the interleaved region, against all of them in one element below it."""
    chip = load_chip("test-16")
    plan = plan_module(specs.mlp_graph(1, (32, 24, 16), "f32"), chip)
    memory = chip.tile_memory
    first = memory.interleaved_base - memory.base
    apart = tuple(
        replace(buffer, address_bytes=first + n * memory.interleaved_bytes)
        for n, buffer in enumerate(plan.buffers)
    )
    near = tuple(replace(buffer, address_bytes=0) for buffer in plan.buffers)
    cycles = plan.operators[0].active.cycles
    slow = replace(plan.operators[0].active, cycles=replace(cycles, compute=cycles.compute + 50))
    slower = (replace(plan.operators[0], active=slow), *plan.operators[1:])
    good = Placed(replace(plan, buffers=apart), memory, is_wide=True)
    bad = Placed(replace(plan, buffers=near, operators=slower), memory, is_wide=True)

    a, b = (operand.name for operand in plan.graph.operators[0].inputs)
    found = reasons_of_same_plans(good, bad)
    assert list(found) == [plan.operators[0].name]
    (conflict, narrow) = found[plan.operators[0].name]
    pairs = f"{b} and {a}, {a} and the accumulators, {b} and the accumulators, and 4 more"
    assert conflict == f"in B 7 pairs of operands share memory elements (bank conflicts): {pairs}"
    assert narrow == "in B all operands outside the interleaved region (code without 16-byte loads)"
    assert reasons_of_same_plans(bad, good)[plan.operators[0].name][0] == f"in A {conflict[5:]}"

    assert placement_reasons(good, 0, cycles) == ()
    (reason,) = placement_reasons(bad, 0, cycles)
    assert reason.startswith("where it was placed, 50 cycles more than alone: 7 pairs of operands share")
    assert "interleaved" in reason
    (reason,) = placement_reasons(replace(bad, is_wide=False), 0, cycles)
    assert "interleaved" not in reason


def test_of_a_plan_without_places_nothing_is_said() -> None:
    chip = load_chip("test-16")
    plan = two_operator_plan()
    for name in ("shift", "value:y"):
        buffers = tuple(buffer for buffer in plan.buffers if buffer.name != name)
        placed = Placed(replace(plan, buffers=buffers), chip.tile_memory, is_wide=True)
        assert len(placed.facts()) < len(plan.operators)


def test_a_plan_that_fetches_longer_says_what() -> None:
    plan = two_operator_plan()
    first = plan.operators[0]
    arrivals = (
        replace(first.arrivals[0], kind="in_place", cycles=0),
        *first.arrivals[1:],
    )
    cycles = replace(first.active.cycles, relayout=0, wait=7)
    other = replace(first, arrivals=arrivals, active=replace(first.active, cycles=cycles))
    memory = load_chip("test-16").tile_memory
    before = Placed(plan, memory, is_wide=True)
    after = Placed(replace(plan, operators=(other, plan.operators[1])), memory, is_wide=True)
    (moved, late) = reasons_of_same_plans(before, after)["matmul"]
    assert (
        moved == f"a: {first.arrivals[0].kind} ({first.arrivals[0].cycles:,} cycles) -> in place (0 cycles)"
    )
    assert late == "weights are not prefetched in time"


def test_no_line_is_wider_than_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    assert main(["compile", str(model), "--chip", "test-4", "--no-program", "-o", str(out)]) == 0
    name = Executable.load(out).plan.graph.operators[0].name
    whole: dict[int, list[str]] = {}
    for width in (60, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        capsys.readouterr()
        assert main(["explain", str(out), "--op", name]) == 0
        whole[width] = capsys.readouterr().out.splitlines()
        assert max(map(len, whole[width])) <= width
        assert main(["pareto", str(out), "--op", name]) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width
    (reason,) = (line for line in whole[200] if "plans of the model were chosen" in line)
    at = next(i for i, line in enumerate(whole[60]) if "plans of the model were chosen" in line)
    assert " ".join(line.strip() for line in whole[60][at : at + 2]).split() == reason.split()
    assert whole[60][at + 1].startswith("    ")
