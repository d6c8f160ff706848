"""Models in stages: where they are cut, what is handed over, and that stages compute what the model does."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from support.specs import elementwise

from t10.artefact import remade
from t10.artefact.manifest import read_manifest
from t10.chip import load_chip
from t10.chip.groups import groups_of
from t10.cli.entry import main
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, GraphOutput, TensorValue
from t10.core.hand_over import End, hand_over_cycles
from t10.core.joined import joined
from t10.core.links import RATE_CYCLES
from t10.core.pieces import pieces_of, unnamed
from t10.core.schedule import ValueLayout
from t10.core.staged import HandOver, Stage, StagedPlan
from t10.cost import IpuCostModel
from t10.errors import InfeasiblePlanError, InputError, VerifyError
from t10.frontend.importer import import_model
from t10.passes.staged import compile_staged
from t10.plan.options import PlanOptions
from t10.plan.stages.places import narrow_places
from t10.plan.stages.search import NEVER, CutProblem, best_cut
from t10.random_inputs import random_inputs
from t10.reference import OnnxRuntime, compare, load_onnx
from t10.staged import StagedExecutable, compile_stages

MODELS = Path(__file__).parents[2] / "examples" / "models"
MLP = MODELS / "mlp.onnx"


def _drawn(seed: int) -> tuple[CutProblem, dict[tuple[int, int], int | None]]:
    """Return a problem whose stages take what is drawn: at least their fastest operators and any part of theirs."""
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    most = int(random.integers(2, n))
    fastest = np.concatenate([[0], np.cumsum(random.integers(1, 30, n))])
    weights = np.concatenate([[0], np.cumsum(random.integers(1, 30, n))])
    took: dict[tuple[int, int], int | None] = {}
    for length in range(1, n + 1):
        for first in range(n - length + 1):
            end = first + length
            parts = [took[first, end - 1], took[first + 1, end]] if length > 1 else []
            rest = [fastest[end] - fastest[end - 1], fastest[first + 1] - fastest[first]]
            least = [0 if part is None else part + more for part, more in zip(parts, rest, strict=False)]
            fits = weights[end] - weights[first] <= 60 and None not in parts
            own = int(fastest[end] - fastest[first])
            took[first, end] = int(max([own, *least]) + random.integers(0, 9)) if fits else None
    hand = random.integers(0, 8, (most - 1, n + 1))
    problem = CutProblem(
        fastest,
        np.arange(n + 1)[None, :] > np.arange(n + 1)[:, None],
        hand,
        random.integers(1, 99, n + 1),
        most,
    )
    problem.is_free = bool(seed % 2)
    return problem, took


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_is_the_best_of_all(seed: int) -> None:
    problem, took = _drawn(seed)
    n, hand = problem.n_places, problem.hand_cycles.copy()

    def slowest(cut: tuple[int, ...]) -> int:
        spans = list(pairwise(cut))
        found = 0
        for number, span in enumerate(spans):
            run = took[span]
            assert run is not None
            received = hand[number - 1, span[0]] if number else 0
            sent = hand[number, span[1]] if number + 1 < len(spans) else 0
            found = max(found, int(run + received + sent))
        return found

    counts = range(1, problem.most + 1) if problem.is_free else [problem.most]
    cuts = [(0, *inner, n) for count in counts for inner in combinations(range(1, n), count - 1)]
    possible = [slowest(cut) for cut in cuts if all(took[span] is not None for span in pairwise(cut))]
    found = best_cut(problem, lambda first, end: took[first, end], slowest, 0.0)
    if not possible:
        assert found is None
        return
    assert found is not None
    assert found.cycles == min(possible) == slowest(found.cut)
    assert found.bound_cycles == found.cycles


def test_a_stage_that_does_not_fit_rules_out_what_holds_it() -> None:
    problem, _ = _drawn(0)
    asked: list[tuple[int, int]] = []

    def plan(first: int, end: int) -> int | None:
        asked.append((first, end))
        return None

    assert best_cut(problem, plan, lambda _: 0, 0.0) is None
    assert len(set(asked)) == len(asked)
    assert (problem.run_cycles[0, -1:] == NEVER).all()


def test_places_are_narrow_where_least_passes() -> None:
    #   a stage may begin behind 10 bytes, not behind 30, and behind both of two equal places
    assert narrow_places([0, 10, 30, 10, 10, 20, 0]) == (0, 1, 3, 4, 6)
    assert narrow_places([0, 0]) == (0, 1)


def test_what_later_stages_need_passes_every_stage_between() -> None:
    def operator(name: str, a: str, b: str) -> OperatorSpec:
        return elementwise((4,), dtype="f32", name=name, a=a, b=b, o=f"{name}:0")

    x = TensorValue("x", (4,), "f32")
    operators = (
        operator("a", "x", "x"),
        operator("b", "a:0", "a:0"),
        operator("c", "b:0", "b:0"),
        operator("d", "a:0", "c:0"),
    )
    graph = Graph("g", (x,), (), operators, (), (GraphOutput("y", "d:0"),))
    pieces = pieces_of(graph)
    assert [[value.name for value in pieces.crossing(at)] for at in range(5)] == [
        [], ["a:0"], ["a:0", "b:0"], ["a:0", "c:0"], [],
    ]  # fmt: skip
    assert pieces.crossing_bytes() == [0, 16, 32, 32, 0]
    between = pieces.piece(1, 2)
    assert [value.name for value in between.inputs] == ["a:0"]
    assert [output.value for output in between.outputs] == ["a:0", "b:0"]


def test_groups_of_a_level() -> None:
    groups = groups_of(load_chip("pod16"))
    assert (groups.level, groups.chip.n_cores, groups.chip.links, len(groups.order)) == (
        "chip",
        1472,
        None,
        16,
    )
    pairs = groups_of(load_chip("pod16"), "pair")
    assert (pairs.chip.n_cores, len(pairs.order)) == (2944, 8)
    assert pairs.chip.links is not None
    with pytest.raises(InputError, match=r"no level 'rack' of groups \(expected chip, pair\)"):
        groups_of(load_chip("pod16"), "rack")
    with pytest.raises(InputError, match="has no groups of cores"):
        groups_of(load_chip("test-16"))


def test_neighbours_in_the_order_of_groups_are_neighbours_on_a_grid() -> None:
    mesh = {"name": "chip", "count": 6, "topology": "mesh", "columns": 3, "link_bytes_per_cycle": 1}
    levels = [{"name": "core", "count": 4}, mesh]
    base = load_chip("test-2x4").model_dump()
    chip = type(load_chip("test-4")).model_validate({**base, "levels": levels, "n_cores": 24})
    order = groups_of(chip).order
    assert sorted(order) == list(range(6))
    for first, second in pairwise(order):
        (r0, c0), (r1, c1) = divmod(first, 3), divmod(second, 3)
        assert abs(r0 - r1) + abs(c0 - c1) == 1


def test_a_hand_over_takes_what_the_link_passes() -> None:
    chip = load_chip("test-2x16")
    costs = IpuCostModel(chip)
    assert costs.move_rates.links is not None
    value = TensorValue("x", (16, 60), "f32")
    layout = ValueLayout("linear", "x", 16, "f32")
    cycles = hand_over_cycles(value, End(0, layout, None), End(16, layout, None), 32, costs)
    # 3,840 bytes at 1.5 bytes per cycle, one hop of 170; the ports of cores take 60 words each meanwhile.
    fixed = chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles + 170
    assert cycles == pytest.approx(fixed + 3840 / 1.5, abs=2 * chip.fragment_cycles)
    assert costs.move_rates.links.levels[1].rate == 1.5 * RATE_CYCLES


@pytest.fixture(scope="module")
def mlp() -> StagedExecutable:
    return compile_stages(MLP, "test-2x16", stages=2)


def test_stages_compute_what_the_model_does(mlp: StagedExecutable) -> None:
    inputs = random_inputs(mlp.graph, 1)
    result = mlp.execute(inputs)
    reference = OnnxRuntime(load_onnx(MLP), MLP, {}).outputs(inputs)
    assert all(each.is_within for each in compare(result.outputs, reference, 1e-5))
    assert result.cycles == mlp.staged.latency_cycles
    assert [each.cycles for each in result.stages] == [stage.run_cycles for stage in mlp.staged.stages]


def test_an_interval_is_the_slowest_stage_with_what_it_takes_and_gives(mlp: StagedExecutable) -> None:
    first, second = mlp.staged.stages
    handed = sum(each.cycles for each in first.sends)
    assert [each.value for each in first.sends] == ["/fc1/MatMul:0"]
    assert [each.n_bytes for each in first.sends] == [4 * 32 * 4]
    assert handed > 0
    assert mlp.staged.interval_cycles == max(first.run_cycles, second.run_cycles) + handed
    assert mlp.staged.latency_cycles == first.run_cycles + second.run_cycles + handed
    assert mlp.staged.bound_cycles <= mlp.staged.interval_cycles


def test_a_stage_in_between_receives_and_sends() -> None:
    def stage(group: int, run: int, *sends: int) -> Stage:
        handed = tuple(HandOver(f"v{n}", 4, cycles) for n, cycles in enumerate(sends))
        return Stage(0, group, (), (), (), (), run, 0, handed)

    stages = (stage(0, 100, 7, 5), stage(1, 90, 20), stage(2, 99))
    plan = StagedPlan("chip", "chip", 4, 1000.0, stages, 4, 3, 122)
    assert [plan.stage_cycles(number) for number in range(3)] == [112, 12 + 90 + 20, 20 + 99]
    assert (plan.interval_cycles, plan.latency_cycles, plan.gap) == (122, 100 + 12 + 90 + 20 + 99, 0)
    assert plan.results_per_second == 1000 / 122


def test_a_stage_sees_only_what_is_handed_over(mlp: StagedExecutable) -> None:
    second = mlp.executables[mlp.staged.stages[1].plan].plan.graph
    assert [value.name for value in second.inputs] == ["/fc1/MatMul:0"]
    assert not {weight.name for weight in second.weights} & set(mlp.staged.stages[0].weights)


def test_folders_of_stages_are_read_back(mlp: StagedExecutable, tmp_path: Path) -> None:
    mlp.save(tmp_path / "out")
    again = StagedExecutable.load(tmp_path / "out")
    assert again.staged == mlp.staged
    inputs = random_inputs(mlp.graph, 2)
    np.testing.assert_array_equal(again.run(inputs)["y"], mlp.run(inputs)["y"])
    mlp.save(tmp_path / "second")
    for path in (tmp_path / "out").rglob("*.json"):
        assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "out")).read_bytes()


def test_a_changed_stage_is_noticed(mlp: StagedExecutable, tmp_path: Path) -> None:
    mlp.save(tmp_path / "out")
    plan = tmp_path / "out" / "stages" / "1" / "module.mlir"
    plan.write_text(plan.read_text() + "\n")
    with pytest.raises(InputError, match="is not the file that was written"):
        StagedExecutable.load(tmp_path / "out")


@pytest.mark.parametrize("key", ["run_cycles", "peak_bytes"])
def test_numbers_that_contradict_the_plans_are_refused(
    mlp: StagedExecutable, tmp_path: Path, key: str
) -> None:
    mlp.save(tmp_path / "out")
    path = tmp_path / "out" / "stages.json"
    stated = json.loads(path.read_text())
    stated["stages"][1][key] += 1
    path.write_text(json.dumps(stated))
    with pytest.raises(VerifyError, match="stage 1 takes other cycles or bytes than its plan"):
        StagedExecutable.load(_with_manifest(tmp_path / "out"))


def test_hand_overs_that_nobody_takes_are_refused(mlp: StagedExecutable) -> None:
    first, second = mlp.staged.stages
    other = replace(first, sends=(replace(first.sends[0], value="y"),))
    with pytest.raises(VerifyError, match="stage 0 sends y, which is not what the next one takes"):
        joined((other, second), mlp.plans)
    with pytest.raises(VerifyError, match="stage 1 names other values than its plan has"):
        joined((first, replace(second, weights=())), mlp.plans)


def test_totals_that_contradict_the_stages_are_refused(mlp: StagedExecutable, tmp_path: Path) -> None:
    mlp.save(tmp_path / "out")
    path = tmp_path / "out" / "stages.json"
    stated = json.loads(path.read_text())
    stated["latency_cycles"] -= 1
    path.write_text(json.dumps(stated))
    with pytest.raises(VerifyError, match="totals are not those of its stages"):
        StagedExecutable.load(_with_manifest(tmp_path / "out"))


def _with_manifest(folder: Path) -> Path:
    """Return a folder with a manifest of the files that lie there now."""
    remade(folder, read_manifest(folder).about)
    return folder


def test_more_stages_than_groups_are_refused() -> None:
    with pytest.raises(
        InputError, match="3 stages are asked for, expected at most 2: test-2x16 has 2 x chip"
    ):
        compile_stages(MLP, "test-2x16", stages=3)


@pytest.mark.slow
def test_a_model_that_fits_no_cut_says_so() -> None:
    chip = load_chip("test-2x16").model_copy(update={"sram_bytes": 29_000})
    with pytest.raises(InfeasiblePlanError, match="does not fit in 1 stage, each on a chip of test-2x16"):
        compile_stages(MLP, chip, stages=1)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stages = ["--chip", "test-2x16", "--stages", "2"]
    assert main(["verify", str(MLP), *stages, "--seeds", "1"]) == 0
    assert "verified" in capsys.readouterr().out
    out = str(tmp_path / "out")
    assert main(["compile", str(MLP), *stages, "--no-program", "--prove", "-o", out]) == 0
    compiled = capsys.readouterr().out
    assert "results per second" in compiled
    assert "2, with 2 different plans" in compiled
    assert main(["run", out]) == 0
    assert "in 2 stages (modelled, ipu)" in capsys.readouterr().out
    assert main(["report", out]) == 0
    shown = capsys.readouterr().out
    assert "/fc2/MatMul" in shown
    assert "utilisation" in shown
    assert "of peak" in shown
    assert "mean GB/s in" in shown
    assert f"wrote {out}/: report.html, stage-0.html, stage-1.html" in shown
    assert main(["run", out]) == 0  # The manifest lists the pages.
    assert main(["report", "--no-plots", f"{out}/stages/0"]) == 0


def test_a_report_of_stages_needs_no_cost_model_of_the_users(tmp_path: Path) -> None:
    own, out = tmp_path / "own.py", tmp_path / "out"
    own.write_text("from t10.cost import IpuCostModel as cost_model\n")
    stages = ["--chip", "test-2x16", "--stages", "2", "--no-program", "--cost-model", str(own)]
    assert main(["compile", str(MLP), *stages, "-o", str(out)]) == 0
    assert main(["report", str(out)]) == 0
    assert '"programs":[]' in (out / "stage-0.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stages", "2"], "no program is emitted for several stages"),
        (["--stages", "0"], "found '0' stages, expected a number from 1 on, or auto"),
        (["--stages", "0", "--no-program"], "found '0' stages, expected a number from 1 on, or auto"),
        (["--stage-level", "chip", "--no-program"], "--stage-level is for --stages"),
        (["--stages", "2", "--no-program", "--plan", "p.json"], "--stages does not go with --plan"),
        (
            ["--stages", "2", "--no-program", "--hbm-bandwidth", "1 TB/s"],
            "off-chip memory, which stages cannot share",
        ),
    ],
)
def test_what_stages_do_not_go_with(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["compile", str(MLP), "--chip", "test-2x16", *arguments, "-o", str(tmp_path / "out")]
    assert main(command) == 2
    assert message in capsys.readouterr().err


def test_equal_pieces_are_equal_up_to_names_and_others_are_not() -> None:
    imported = import_model(MLP)
    graph = compile_staged(
        imported.module, groups_of(load_chip("test-2x16")), 1, PlanOptions()
    ).compiled[0].plan.graph  # fmt: skip
    pieces = pieces_of(graph)
    assert unnamed(pieces.piece(0, 1)) == unnamed(pieces.piece(0, 1))
    assert unnamed(pieces.piece(0, 1)) != unnamed(pieces.piece(1, 2))
    assert [value.name for value in pieces.crossing(1)] == ["/fc1/MatMul:0"]
    assert pieces.crossing_bytes() == [0, 512, 0]
