"""Plans that a user pins: kept exactly, completed, and refused with one clear error where they are wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from support import models
from support.compiled import MODELS, compiled
from support.draw import drawn

import t10
from t10.backend import lowered, write_program
from t10.chip import load_chip
from t10.cli import main
from t10.core.document import write_document
from t10.core.plan import OperatorPlan, PhaseTerm
from t10.dialect.mlir import ir
from t10.driver import Executable
from t10.errors import InfeasiblePlanError, InputError, T10Error, VerifyError
from t10.frontend.importer import import_model
from t10.passes.pipeline import module_text
from t10.passes.registry import make, run
from t10.plan.fronts.pinned import idle_levels
from t10.plan.fronts.pins import pins_schema, read_pins
from t10.plan.options import ForcedPartition, PlanOptions
from t10.plan.verify import verify_module

FILES = ("plan.json", "module.mlir")


def saved(executable: Executable, folder: Path) -> Path:
    executable.save(folder)
    return folder


def pins_file(path: Path, *operators: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"format": "t10-pins", "version": 1, "operators": operators}))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn(["bert_fp16", "resnet18_fp32", "llama2_fp16", "vit_fp32"], 1))
def test_a_plan_given_back_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    path = MODELS / f"{name}.onnx"
    first = saved(compiled(name, "test-64"), tmp_path / "first")
    again = saved(t10.compile(path, chip="test-64", plan=first / "plan.json"), tmp_path / "again")
    for file in FILES:
        assert (first / file).read_bytes() == (again / file).read_bytes(), file


@pytest.mark.slow
@pytest.mark.parametrize(("name", "chip"), [("mlp", "test-16:sram_bytes=40960"), ("vit_fp16", "test-16")])
def test_the_program_of_a_plan_given_back_is_that_of_the_plan(name: str, chip: str, tmp_path: Path) -> None:
    path = MODELS / f"{name}.onnx"
    first = t10.compile(path, chip=chip, program=True)
    folder = saved(first, tmp_path / "first")
    again = t10.compile(path, chip=chip, plan=folder / "plan.json", program=True)
    assert again.parts is not None
    assert again.plan == first.plan
    made = lowered(again)
    base, variables = made.program.memory.base, {each.name: each for each in made.program.variables}
    placed = [buffer for buffer in again.plan.buffers if buffer.name in variables]
    assert len(placed) >= len(again.plan.buffers) - 1
    for buffer in placed:
        assert variables[buffer.name].address_bytes == base + buffer.address_bytes, buffer.name
    write_program(first, lowered(first), tmp_path / "one")
    write_program(again, made, tmp_path / "other")
    for file in ("program.json", "codelets.S"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "other" / file).read_bytes(), file


@pytest.mark.slow
def test_passes_give_the_same_module_for_a_plan_given_back(tmp_path: Path) -> None:
    path = MODELS / "vit_fp16.onnx"
    first = saved(compiled("vit_fp16", "test-16"), tmp_path / "first")
    module: Any = import_model(path).module
    with module.context, ir.Location.unknown():
        run(make("t10-partition", f"chip=test-16 plan={first / 'plan.json'}"), module)
        run(make("t10-place", "chip=test-16"), module)
        assert module_text(module) == (first / "module.mlir").read_text(encoding="utf-8")


def test_one_pinned_operator_keeps_its_plan_and_the_others_are_searched(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    pins = pins_file(
        tmp_path / "pins.json", {"name": "first", "f_op": {"m": 2, "n": 2}, "ft": {"x": {"k": 2}}}
    )
    plan = t10.compile(path, chip="test-16", plan=pins).plan
    first = next(op for op in plan.operators if op.name == "first")
    assert first.active.plan.f_op == (2, 2, 1)
    assert first.active.plan.ft[0] == (1, 1, 2)
    assert first.active.plan.rp == (0, 0, 12)
    assert not verify_module(plan, load_chip("test-16"))


@pytest.mark.parametrize("method", ["exact", "greedy"])
@pytest.mark.parametrize("more", [{}, {"idle_level": 0}])
def test_pins_of_all_operators_are_not_called_optimal(
    more: dict[str, Any],
    method: Literal["exact", "greedy"],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With one plan of every operator a bound says nothing about the plan."""
    path, out = models.mlp(tmp_path / "mlp.onnx"), tmp_path / "out"
    one = [[1, 1, 1]] * 3
    rows = [{"name": name, "f_op": [2, 4, 1], "ft": one, **more} for name in ("first", "second")]
    pins = pins_file(tmp_path / "pins.json", *rows)
    command = ["compile", str(path), "-o", str(out), "--chip", "test-16", "--plan", str(pins), "--no-program"]
    assert main([*command, "--reconcile", method]) == 0
    text = capsys.readouterr().out
    assert "as pinned" in text
    assert main(["report", str(out)]) == 0
    assert main(["explain", str(out), "--op", "first"]) == 0
    explained = capsys.readouterr().out
    assert "as pinned" in " ".join(explained.split())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "as pinned" in page
    for said in (text, explained, page):
        assert "optim" not in said
        assert "no choice" not in said
    for file in ("plan.json", "report.json"):
        assert json.loads((out / file).read_text())["optimality"]["method"] == "pinned", file


def test_pins_that_leave_a_choice_are_bounded(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    for pins in (
        pins_file(tmp_path / "one.json", {"name": "first", "f_op": [2, 4, 1], "ft": [[1, 1, 1]] * 3}),
        pins_file(tmp_path / "parts.json", *({"name": n, "f_op": [2, 4, 1]} for n in ("first", "second"))),
    ):
        known = t10.compile(path, chip="test-16", plan=pins).plan.optimality
        assert known is not None
        assert (known.method, known.n_states > 2) == ("exact", True)


def test_a_pinned_pace_selects_among_the_factors_searched(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    forced = ForcedPartition("first", (2, 4, 1), rp=(0, 0, 12))
    plan = t10.compile(path, chip="test-16", options=PlanOptions(forced=(forced,))).plan
    first = next(op for op in plan.operators if op.name == "first")
    assert first.active.plan.rp == (0, 0, 12)


@pytest.mark.parametrize(
    ("pin", "kind", "text"),
    [
        ({"name": "frist", "f_op": [1, 1, 1]}, InputError, "did you mean first"),
        ({"name": "first", "f_op": [2, 2]}, InputError, "f_op has 2 numbers for 3 axes"),
        ({"name": "first", "f_op": {"z": 2}}, InputError, "f_op names axis 'z'"),
        ({"name": "first", "f_op": [4, 8, 1]}, InfeasiblePlanError, "needs 32 cores, expected at most 16"),
        ({"name": "first", "f_op": [2, 2, 1], "rp": [0, 0, 5]}, InfeasiblePlanError, "expected one of"),
        ({"name": "first", "f_op": [2, 2, 1], "ft": {"q": {"k": 2}}}, InputError, "ft names tensor 'q'"),
        ({"name": "first", "f_op": [2, 2, 1], "ft": [[1, 1, 2]]}, InputError, "ft has 1 rows for 3 tensors"),
        (
            {"name": "first", "f_op": [2, 2, 1], "ft": {"x": {"k": 3}}},
            InfeasiblePlanError,
            "prod(ft[0]) = 3 does not divide the 2 cores",
        ),
    ],
)
def test_a_pin_that_cannot_be_says_why(
    pin: dict[str, Any], kind: type[T10Error], text: str, tmp_path: Path
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    with pytest.raises(kind) as caught:
        t10.compile(path, chip="test-16", plan=pins_file(tmp_path / "pins.json", pin))
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_operator_pinned_twice_is_refused(tmp_path: Path) -> None:
    pin = {"name": "first", "f_op": [2, 2, 1]}
    path = models.mlp(tmp_path / "mlp.onnx")
    with pytest.raises(InputError, match="pins it twice"):
        t10.compile(path, chip="test-16", plan=pins_file(tmp_path / "pins.json", pin, pin))


def test_a_plan_for_other_shapes_is_refused_with_both(tmp_path: Path) -> None:
    out = saved(t10.compile(models.mlp(tmp_path / "a.onnx", rows=4), chip="test-16"), tmp_path / "out")
    with pytest.raises(InputError, match=r"plans it over m < 4.*here it runs over m < 8") as caught:
        t10.compile(models.mlp(tmp_path / "a.onnx", rows=8), chip="test-16", plan=out / "plan.json")
    assert caught.value.operator == "first"


def test_a_plan_for_a_larger_chip_is_refused(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx", rows=64)
    out = saved(t10.compile(path, chip="test-64"), tmp_path / "out")
    with pytest.raises(VerifyError, match="the pinned plan is wrong"):
        t10.compile(path, chip="test-4", plan=out / "plan.json")


def test_a_whole_plan_that_is_wrong_is_an_error_at_its_operator(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    plan = t10.compile(path, chip="test-16", plan=pins_file(tmp_path / "p.json", ROTATING)).plan
    first = plan.operators[0]
    term = first.active.plan.phases[2][0]
    wrong = replace(
        first.active.plan, phases=((), (), (PhaseTerm(term.sharer_axes, 1, term.modulus, term.stride + 1),))
    )
    with pytest.raises(VerifyError) as caught:
        t10.compile(path, chip="test-16", options=PlanOptions(forced=(whole("first", wrong),)))
    assert caught.value.operator == "first"
    assert "the pinned plan is wrong" in str(caught.value)


def test_a_plan_of_part_of_a_model_leaves_the_rest_to_the_planner(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    plan = t10.compile(path, chip="test-16").plan
    forced = whole("second", plan.operators[-1].active.plan)
    again = t10.compile(path, chip="test-16", options=PlanOptions(forced=(forced,))).plan
    assert again.operators[-1].active.plan == plan.operators[-1].active.plan


@pytest.mark.parametrize("method", ["exact", "greedy"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_pinned_idle_level_is_kept(level: int, method: Literal["exact", "greedy"], tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    forced = ForcedPartition("first", (4, 4, 1), idle_level=level)
    plan = t10.compile(path, chip="test-16", options=PlanOptions(forced=(forced,), reconcile=method)).plan
    assert idle_levels(plan)["first"] == level
    kinds = {arrival.operand: arrival.kind for arrival in plan.operators[0].arrivals}
    assert kinds[1] == ("in_place" if level == 1 else "setup")
    assert not verify_module(plan, load_chip("test-16"))


@pytest.mark.parametrize("method", ["exact", "greedy"])
def test_an_idle_level_beyond_the_replicas_is_refused(
    method: Literal["exact", "greedy"], tmp_path: Path
) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    plan = t10.compile(path, chip="test-16").plan
    whole_levels = tuple(replace(whole(s.name, s.active.plan), idle_level=99) for s in plan.operators)
    for forced in ((ForcedPartition("first", (4, 4, 1), idle_level=99),), whole_levels):
        with pytest.raises(
            InfeasiblePlanError, match=r"idle_level is 99, expected 0 or a divisor of \d+"
        ) as caught:
            t10.compile(path, chip="test-16", options=PlanOptions(forced=forced, reconcile=method))
        assert caught.value.operator == "first"


def test_a_file_of_pins_says_what_is_wrong_with_its_form(tmp_path: Path) -> None:
    for text, found in (
        ("{", "cannot read"),
        ("[]", "expected an object"),
        ('{"format": "t10-pins", "version": 2}', "version: found 2"),
        ('{"format": "t10-pins", "version": 1, "operators": [{"name": "a"}]}', "f_op"),
        ('{"format": "t10-report", "version": 1}', "format: found 't10-report'"),
        (
            '{"format": "t10-pins", "version": 1, "operators": [{"name": "a", "f_op": [1e300]}]}',
            "expected a whole number, found 1e",
        ),
    ):
        path = tmp_path / "pins.json"
        path.write_text(text)
        with pytest.raises(InputError, match=found):
            read_pins(path)
    assert pins_schema()["title"] == "pins of T10"


def test_a_plan_json_that_was_changed_is_planned_with_its_plans(tmp_path: Path) -> None:
    path = models.mlp(tmp_path / "mlp.onnx")
    first = t10.compile(path, chip="test-16")
    # Another price, as an older version would have written: the plans are kept, the prices are those of today.
    dearer = tuple(
        replace(op, active=replace(op.active, cycles=replace(op.active.cycles, compute=9)))
        for op in first.plan.operators
    )
    write_document(tmp_path / "old.json", replace(first.plan, operators=dearer))
    again = t10.compile(path, chip="test-16", plan=tmp_path / "old.json")
    assert [op.active for op in again.plan.operators] == [op.active for op in first.plan.operators]


ROTATING: dict[str, Any] = {"name": "first", "f_op": [2, 3, 1], "ft": [[1, 1, 3], [1, 1, 2], [1, 1, 1]]}


def whole(name: str, plan: OperatorPlan) -> ForcedPartition:
    return ForcedPartition(name, plan.f_op, plan.ft, plan.rp, plan)
