"""`t10 profile`: random sub-tasks of operators made in code or of models, and steps measured as they are lowered."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from itertools import islice
from math import prod
from pathlib import Path
from random import Random

import pytest
from support import specs
from support.random_fits import random_case

import t10.cli.profile
from t10.backend import lowered
from t10.chip import ChipSpec, load_chip
from t10.cli import main
from t10.codelets.count import counted_cycles, cycles_of
from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, TensorValue
from t10.core.scalar import ScalarFunction, ScalarOp
from t10.core.task import Task
from t10.cost.bound.step import sub_task_bound
from t10.cost.code_digest import code_digest
from t10.cost.ipu import IpuCostModel
from t10.cost.work import sub_task
from t10.driver import Executable, compile
from t10.errors import VerifyError
from t10.profile.boxes import random_boxes
from t10.profile.compute_step import ComputeStep, steps_of
from t10.profile.notation import operator, scalar_function
from t10.profile.operators import made_steps
from t10.profile.regression import TEST_EVERY, regressed
from t10.profile.sample import Sample, samples
from t10.random_inputs import random_inputs
from t10.sim.device import run_device

MODELS = Path(__file__).parents[2] / "examples" / "models"
EXTENTS = {"m": 64, "n": 48, "k": 80, "x": 1, "f": 32, "h": 14, "w": 14, "c": 16, "i": 3, "j": 3}


def made(kind: str, text: str) -> ComputeStep:
    """Return a step that is made in code: the first of a kind whose title holds a text."""
    return next(one for one in made_steps() if one.kind == kind and text in one.title)


def test_operators_are_what_their_texts_say() -> None:
    wide = "0 extf>f32 1 extf>f32 mulf"
    found = operator(
        "contraction", "m k, k n -> m n", "f16 f16", wide, "sum", EXTENTS, epilogue="0 truncf>f16"
    )
    wanted = specs.matmul(64, 48, 80)
    assert [one.dims for one in found.rotatable] == [one.dims for one in wanted.rotatable]
    assert (found.body, found.epilogue) == (wanted.body, wanted.epilogue)
    assert (found.extents, found.acc_dtype, found.output) == (
        wanted.extents,
        wanted.acc_dtype,
        replace(wanted.output, name="", role="activation"),
    )
    found = operator(
        "convolution", "x c 2h+i 2w+j, f c i j -> x f h w", "f32 f32", "0 1 mulf", "sum", EXTENTS
    )
    wanted = specs.conv2d(1, 32, 14, 14, 16, 3, 3, "f32", stride=2)
    assert [one.shape for one in found.rotatable] == [one.shape for one in wanted.rotatable]
    assert [len(dim.terms) for dim in found.inputs[0].dims] == [1, 1, 2, 2]


def test_functions_are_written_in_postfix() -> None:
    function, dtype = scalar_function("0 c0.5 mulf 1 cmpf:ogt 0 1 select", ["f32", "f16"], cast="truncf>f16")
    assert dtype == "f16"
    assert function == ScalarFunction(
        2,
        (
            ScalarOp("arith.truncf", (0,), "f16"),
            ScalarOp("const", (), "f16", "0.5"),
            ScalarOp("arith.mulf", (2, 3), "f16"),
            ScalarOp("arith.cmpf", (4, 1), "i1", "ogt"),
            ScalarOp("arith.select", (5, 2, 1), "f16"),
        ),
        6,
    )


def test_operators_are_made_of_every_kind_and_all_are_different() -> None:
    steps = made_steps()
    assert len({(one.spec, one.step) for one in steps}) == len(steps)
    kinds = {
        "contraction",
        "convolution",
        "reduction",
        "pooling",
        "elementwise",
        "gather",
        "epilogue",
        "combine",
        "fused end",
    }
    assert {one.kind for one in steps} == kinds


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("contraction", "t u, n u"),
        ("convolution", "2h+i 2w+j c, f"),
        ("epilogue", "b m n; m n"),
        ("fused end", "b m n; m n"),
    ],
)
def test_boxes_fit_a_core_and_are_even_and_odd(kind: str, text: str) -> None:
    one = made(kind, text)
    boxes = list(islice(random_boxes(one, Random(0)), 300))
    for axis, extents in zip(one.spec.axes, zip(*boxes, strict=True), strict=True):
        assert max(extents) <= axis.extent
        if one.is_end and axis.kind == "reduction":
            assert set(extents) == {1}
    last = one.spec.output.dims[-1].axes[0]
    assert {box[last] % 8 for box in boxes} == set(range(8))
    assert len(set(map(prod, boxes))) > 100


def test_same_seed_same_sub_tasks() -> None:
    one = made("reduction", "m l n")
    assert samples(one, 8, seed=3) == samples(one, 8, seed=3)
    assert samples(one, 8, seed=3) != samples(one, 8, seed=4)


def test_names_and_epilogues_make_no_step_and_extents_do() -> None:
    first, same = specs.matmul(8, 8, 8), specs.matmul(8, 8, 8, name="other", a="x", b="w", c="y")
    other, wide = specs.linear_relu(8, 8, 8, c="z"), specs.matmul(8, 8, 16, a="p", b="q", c="r")
    inputs = tuple(
        TensorValue(name, shape, "f16") for name, shape in (("a", (8, 8)), ("x", (8, 8)), ("p", (8, 16)))
    )
    weights = tuple(
        TensorValue(name, shape, "f16")
        for name, shape in (("b", (8, 8)), ("w", (8, 8)), ("b_bias", (8,)), ("q", (16, 8)))
    )
    found = steps_of([Graph("g", inputs, weights, (first, same, other, wide), (), ())])
    assert [(one.spec.name, one.step) for one in found] == [
        ("matmul", "sub_task"),
        ("combine", "combine"),
        ("matmul", "epilogue"),
        ("matmul", "fused end"),
        ("linear", "epilogue"),
        ("linear", "fused end"),
        ("matmul", "sub_task"),
        ("matmul", "epilogue"),
        ("matmul", "fused end"),
    ]


def test_fused_ends_add_one_part_or_several_and_are_counted_as_run() -> None:
    one = made("fused end", "m k, n k -> m n; n, 0 1 addf")
    tasks = [one.other_task(box, Random(0)) for box in islice(random_boxes(one, Random(0)), 40)]
    # The parts of two cores are two inputs; those of more are rows of one, summed along an axis.
    assert {bool(task.reduction_axes) for task in tasks} == {False, True}
    found = samples(one, 40, seed=1)
    assert [each.counted for each in found] == [each.run for each in found]
    assert {each.bound for each in found} == {0}
    assert not any(each.fault for each in found)


def test_a_regression_finds_what_is_linear_and_is_tested_on_shapes_held_back() -> None:
    one = made("contraction", "m k, n k -> m n")
    boxes = [(m, n, 4 * k) for m, n, k in islice(random_boxes(one, Random(0)), 80)]
    linear = [100 + prod(box) // 4 + 3 * box[0] for box in boxes]
    # What is held back, and what is placed badly, takes something else: nothing of that is fitted.
    runs = [
        cycles * (7 if number % 2 or number % (2 * TEST_EVERY) == 2 * (TEST_EVERY - 1) else 1)
        for number, cycles in enumerate(linear)
    ]
    found = tuple(
        Sample(box, "at bytes 2" if number % 2 else "", run, None, 0)
        for number, (box, run) in enumerate(zip(boxes, runs, strict=True))
    )
    held = {number: value for number, value in enumerate(regressed(one, found)) if value is not None}
    assert list(held) == list(range(2 * (TEST_EVERY - 1), len(boxes), 2 * TEST_EVERY))
    for number, value in held.items():
        assert value == pytest.approx(linear[number], rel=1e-6)
    # With hardly more samples than coefficients nothing is fitted.
    assert regressed(one, found[:16]) == (None,) * 16


@pytest.mark.parametrize(
    ("counted", "bound", "fault"),
    [
        (100, 100, ""),
        (None, 100, ""),
        (106, 90, "counted 106, run 100"),
        (None, 101, "bounded by 101, takes 100"),
    ],
)
def test_counts_are_equal_and_bounds_are_not_above(counted: int | None, bound: int, fault: str) -> None:
    assert Sample((4, 8), "", 100, counted, bound).fault == (f"extents [4, 8]: {fault}" if fault else "")


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ((90, 110), ""),
        ((100, 110), ""),
        ((101, 110), "from 101 to 110, run 100"),
        ((90, 99), "from 90 to 99, run 100"),
    ],
)
def test_look_ups_take_what_lies_between_their_limits(limits: tuple[int, int], fault: str) -> None:
    found = Sample((4, 8), "", 100, None, 95, limits)
    assert found.fault == (f"extents [4, 8]: {fault}" if fault else "")
    assert found.cycles == limits[1]


def test_look_ups_take_least_where_no_index_is_found() -> None:
    for sample in samples(made("gather", "n, v d"), 20, seed=1):
        assert sample.limits is not None
        assert sample.limits[0] <= sample.run <= sample.limits[1]
        assert sample.limits[0] < sample.limits[1]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a step of each of three kinds."""
    steps = (made("contraction", "m k, n k"), made("combine", ""), made("gather", "n, v d"))
    monkeypatch.setattr(t10.cli.profile, "made_steps", lambda: steps)


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_profile_prints_and_writes_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / name for name in ("one.json", "two.json", "three.csv")]
    for path in paths:
        assert main(["profile", "--samples", "60", "-o", str(path), "--plot", str(tmp_path / "fit.svg")]) == 0
    text = capsys.readouterr().out
    assert "regression" in text
    assert paths[0].read_bytes() == paths[1].read_bytes()
    records = json.loads(paths[0].read_text())
    assert len(records) == 3 * 60
    rows = list(csv.DictReader(paths[2].open()))
    assert [row["run"] for row in rows] == [str(record["run"]) for record in records]
    for record in records:
        most = record["run"] if record["most"] is None else record["most"]
        assert record["bound"] <= most
        assert record["counted"] == (None if record["kind"] == "gather" else record["run"])
        assert (record["least"] is None) == (record["kind"] != "gather")
        assert record["kind"] != "gather" or record["least"] <= record["run"] <= most
    assert sum(record["regression"] is not None for record in records if record["kind"] == "contraction") == 7
    assert b"linear regression" in (tmp_path / "fit.svg").read_bytes()


@pytest.mark.usefixtures("few")
def test_a_check_leaves_the_regression_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "--check", "--samples", "4"]) == 0
    text = capsys.readouterr().out
    assert "regression" not in text
    assert "contraction" in text


def test_a_kind_without_bounds_has_none_in_the_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(t10.cli.profile, "made_steps", lambda: (made("fused end", "m k"),))
    assert main(["profile", "--check", "--samples", "4"]) == 0
    (row,) = (line for line in capsys.readouterr().out.splitlines() if "fused end" in line)
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["fused end", "1", "4", "4", "0", "0", "", "", ""]


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("form", [["--check"], []], ids=["check", "plain"])
def test_a_wrong_count_fails(
    form: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(task: Task, offsets_bytes: tuple[int, ...]) -> int | None:
        counted = counted_cycles(task, offsets_bytes)
        return counted + 6 if counted is not None and offsets_bytes else counted

    monkeypatch.setattr("t10.profile.sample.counted_cycles", wrong)
    assert main(["profile", *form, "--samples", "4"]) == VerifyError.exit_code
    assert re.search(r"4 sub-tasks .* at bytes .*: counted \d+, run \d+", capsys.readouterr().err)


@pytest.mark.usefixtures("few")
def test_a_bound_above_a_run_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(spec: OperatorSpec, boxes: Ints, *, is_whole: bool) -> Ints:
        return sub_task_bound(spec, boxes, is_whole=is_whole) + 10**9

    monkeypatch.setattr("t10.profile.compute_step.sub_task_bound", wrong)
    assert main(["profile", "--check", "--samples", "4"]) == VerifyError.exit_code
    # Of eight sub-tasks two have operands that begin anywhere: bounds are claimed for the others.
    assert re.search(r"6 sub-tasks .*: bounded by 10\d+, takes \d+", capsys.readouterr().err)


def test_profile_of_a_model_is_that_of_its_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mlp.csv"
    assert main(["profile", "--samples", "4", str(MODELS / "mlp.onnx"), "-o", str(path)]) == 0
    steps = steps_of([compile(MODELS / "mlp.onnx", "test-16").plan.graph])
    rows = list(csv.DictReader(path.open()))
    assert {row["step"] for row in rows} == {one.title for one in steps}
    assert "contraction" in capsys.readouterr().out


def test_samples_go_to_files_of_two_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "-o", str(tmp_path / "fit.txt")]) != 0
    assert "ends in .json or .csv" in capsys.readouterr().err


def test_cores_that_compute_otherwise_are_priced_by_formulas() -> None:
    mk2, other = load_chip("ipu-mk2"), load_chip("ipu-mk2:n_workers=4")
    assert IpuCostModel(mk2).is_counted
    assert not IpuCostModel(other).is_counted
    assert code_digest() in IpuCostModel(mk2).fingerprint()
    assert code_digest() not in IpuCostModel(other).fingerprint()


def test_a_box_takes_what_its_task_takes() -> None:
    spec: OperatorSpec = specs.matmul(32, 32, 32)
    first = cycles_of(sub_task(spec, (32, 32, 32)))
    assert first == cycles_of(sub_task(spec, (32, 32, 32)))
    assert first is not None
    smaller = cycles_of(sub_task(spec, (16, 16, 16)))
    assert smaller is not None
    assert smaller < first


def test_codelets_with_more_scratch_than_lies_below_their_stacks_are_measured() -> None:
    """Rows of 101 elements are copied to be read by 8 bytes: 48,672 of them."""
    odd, even = (cycles_of(sub_task(specs.matmul(n, n, n, "f32"), (n, n, n))) for n in (101, 104))
    assert odd is not None
    assert even is not None
    assert even < odd < 4 * even


@pytest.mark.parametrize("model", ["mlp", "softmax"])
def test_measured_steps_are_those_that_run(model: str) -> None:
    planned = compile(MODELS / f"{model}.onnx", "test-16")
    measured = planned.with_measured_steps()
    assert measured.plan is planned.plan
    made = lowered(measured)
    inputs = random_inputs(measured.plan.graph, 0)
    ran = run_device(made.program, measured.chip, made.image, measured.weights, inputs)
    for one in ran.operators:
        assert one.cycles.total == sum(measured.measured[one.name])
    assert ran.cycles == measured.timed_cycles
    assert ran.cycles == pytest.approx(measured.execute(inputs).cycles, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "sram_bytes"),
    [(2, 33424), (15, 32392), (20, 22688), (21, 28944), (57, 24880), (81, 29872), (94, 20640), (1121, 35472)],
    ids=["in place", "copies", "adding", "fills", "two types", "seams", "parts of words", "offsets"],
)
def test_plans_cost_what_they_take(seed: int, sram_bytes: int, tmp_path: Path) -> None:
    """Planned for a small memory and executed in a large one, where all operands lie in elements of their own."""
    case = random_case(seed)
    (tmp_path / "model.onnx").write_bytes(case.model)
    small, large = (
        ChipSpec.model_validate({**case.chip.model_dump(), "sram_bytes": size})
        for size in (sram_bytes, load_chip("test-16").sram_bytes)
    )
    model, plan = tmp_path / "model.onnx", tmp_path / "small" / "plan.json"
    compile(model, small).save(plan.parent)
    planned = compile(model, large, plan=plan, program=True).with_measured_steps()
    made = lowered(planned)
    ran = run_device(made.program, large, made.image, planned.weights, case.inputs)
    result = planned.execute(case.inputs)
    assert result.cycles == planned.report().total_cycles
    assert planned.timed_cycles == planned.report().timed_cycles
    assert planned.timed_cycles is not None
    if b"Gather" in case.model:
        # A look-up branches on its indices: it takes what made-up ones do, or less.
        assert 0.9 * planned.timed_cycles <= ran.cycles <= planned.timed_cycles
    else:
        assert ran.cycles == planned.timed_cycles


def test_measured_steps_are_kept_with_the_plan(tmp_path: Path) -> None:
    measured = compile(MODELS / "mlp.onnx", "test-16").with_measured_steps()
    measured.save(tmp_path)
    again = Executable.load(tmp_path)
    assert dict(again.measured) == dict(measured.measured)
    assert again.report() == measured.report()
    again.save(tmp_path / "again")
    assert (tmp_path / "again" / "plan.json").read_bytes() == (tmp_path / "plan.json").read_bytes()
