"""Edits of planned modules are refused, caught, or equivalent by name: a slice of benchmarks/tamper.py."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.folders import take_as_it_is
from support.tampered import (
    CHECKER,
    CRASH,
    NUMBERS,
    REFUSED,
    WITHOUT_EFFECT,
    Judge,
    difference_of,
    planned,
    sources,
    trials,
)
from support.tampering import edits

import t10
from t10.errors import InputError, VerifyError

PART, DEVICE_PART = 0.04, 0.004


@pytest.fixture(scope="module")
def square() -> Judge:
    return Judge(planned("square"))


@pytest.fixture(scope="module")
def crossed() -> Judge:
    return Judge(planned("crossed"))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("name", sources())
def test_no_edit_of_a_module_is_without_effect(name: str) -> None:
    defects = [
        f"{edit.kind}: {edit.what}: {verdict.outcome} {verdict.reason}"
        for edit, verdict in trials(name, "rtensor", PART)
        if verdict.outcome in (WITHOUT_EFFECT, CRASH)
    ]
    assert not defects


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["paper", "two_axes", "scatter", "convolution", "gather"])
def test_no_edit_of_a_graph_is_without_effect(name: str) -> None:
    defects = [
        f"{edit.kind}: {edit.what}: {verdict.outcome} {verdict.reason}"
        for edit, verdict in trials(name, "ipu", DEVICE_PART)
        if verdict.outcome in (WITHOUT_EFFECT, CRASH)
    ]
    assert not defects


@pytest.mark.parametrize("name", ["paper", "not_divisible", "convolution", "gather", "cast"])
def test_modules_compute_what_they_were_made_from(name: str) -> None:
    judge = Judge(planned(name))
    assert not difference_of(judge.expected[0], judge.reference())


def test_without_its_shifts_a_loop_is_refused(square: Judge) -> None:
    lines = [line for line in square.module.text.split("\n") if '"rtensor.shift"' not in line]
    shifts = re.findall(r'(%\w+) = "rtensor.shift"\((%\w+),', square.module.text)
    assert len(shifts) == 2
    text = "\n".join(lines)
    for result, source in shifts:
        text = re.sub(rf"{result}(?!\w)", source, text)
    verdict = square.judge(text)
    assert verdict.outcome == REFUSED
    assert "which does not bring it to the positions of the box" in verdict.reason


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps = [1, 1, 2]", "steps = [1, 1, 7]", "steps[2] = 7 does not divide lengths[2] = 6"),
        ("rp = [0, 3]", "rp = [0, 2]", "expected the pace 3 of the grid"),
        ("axis = 2 : i64", "axis = 1 : i64", "axis = 1, but the tensor rotates along [2]"),
        ("value = 2 : index", "value = 3 : index", "expected [0, 2, 1]: all positions once"),
        ('"rtensor.sub_task"(%arg5, %11)', '"rtensor.sub_task"(%arg5, %arg2)', "expected the positions along axes"),
        ("bytes = 32", "bytes = 48", "has a place of 48 bytes, expected 32"),
        ('combine = "sum"', 'combine = "max"', "the root combines by sum"),
        ('t10.chip = "test-16", ', "", "has no t10.chip"),
    ],
)  # fmt: skip
def test_what_once_had_no_effect_is_refused(square: Judge, old: str, new: str, message: str) -> None:
    text = square.module.text
    if old.startswith('"rtensor.sub_task"'):
        found = re.search(r'"rtensor.sub_task"\((%\w+), (%\w+)\)', text)
        time = re.search(r'"rtensor.position"\((%\w+)\)', text)
        assert found is not None
        assert time is not None
        old, new = found[0], f'"rtensor.sub_task"({found[1]}, {time[1]})'
    assert old in text
    verdict = square.judge(text.replace(old, new, 1))
    assert verdict.outcome == REFUSED
    assert message in verdict.reason


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("two_axes", "t10.order = array<i64: 1, 0>", "t10.order = array<i64: 1, 1>", "names each of 2 dims once"),
        ("two_axes", "t10.order = array", "t10.name = 7, t10.order = array", "t10.name is 7 : i64, expected a string"),
        ("gather", "value = 0.000000e+00 : f32", "value = 1.000000e+00 : f32", "elsewhere than at its index"),
        ("views", "static_strides = array<i64: 1, 1>", "static_strides = array<i64: 0, 1>", "with strides [0, 1]"),
    ],
)  # fmt: skip
def test_attributes_that_say_nothing_sensible_are_refused(
    name: str, old: str, new: str, message: str
) -> None:
    judge = Judge(planned(name))
    assert old in judge.module.text
    verdict = judge.judge(judge.module.text.replace(old, new, 1))
    assert verdict.outcome == REFUSED
    assert message in verdict.reason


def test_a_relayout_reads_what_lies_somewhere(crossed: Judge) -> None:
    head, tail = crossed.module.text.split('"linalg.generic"(%1, %2)', 1)
    tail = tail.replace(
        "(tensor<6x6xf16, #layout1>, tensor<6x6xf16>)", "(tensor<6x6xf16>, tensor<6x6xf16>)", 1
    )
    verdict = crossed.judge(f'{head}"linalg.generic"(%arg1, %2){tail}')
    assert verdict.outcome == REFUSED
    assert "reads arg1, which lies on no core" in verdict.reason


def test_what_rests_is_read(crossed: Judge) -> None:
    text = crossed.module.text.replace('"linalg.generic"(%1, %2)', '"linalg.generic"(%0, %2)')
    text = re.sub(r'("scf.for"\([^()]*), %1,', r"\1, %0,", text)
    assert "arg1 rests, but nothing reads it" in crossed.judge(text).reason


def test_a_move_writes_where_nothing_was(crossed: Judge) -> None:
    found = [e for e in edits(crossed.module.text) if re.search(r"= linalg.generic: %2 -> %arg", e.what)]
    assert len(found) == 4
    for edit in found:
        assert "a move writes into something else than a tensor.empty" in crossed.judge(edit.text).reason


def test_a_start_that_is_wrong_is_caught(square: Judge) -> None:
    text = square.module.text.replace("[3, 1, 2, 1], [3, 1, 2, 0]", "[3, 1, 2, 1]", 1)
    assert square.judge(text).outcome in (REFUSED, CHECKER, NUMBERS)


def test_a_scalar_computes_something_that_is_used(square: Judge) -> None:
    found = next(
        e for e in edits(square.module.text) if e.kind == "duplicate" and "arith.mulf unused" in e.what
    )
    assert "the root computes arith.mulf, which nothing uses" in square.judge(found.text).reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("compiled")
    model = where / "model.mlir"
    model.write_text(sources()["square"].partition("\n")[2].replace("// -----", ""), encoding="utf-8")
    t10.compile(model, chip="test-16").save(where / "out")
    return where / "out"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(.|\n)*", "garbage"),
        ("(.|\n)*", ""),
        ("rtensor.relayout", "rtensor.setup"),
        (r"steps = \[[^]]*\]", "steps = [5]"),
        ("rtensor.fill", "rtensor.allocate"),
        ("test-16", "test-4"),
    ],
)
def test_loading_notices_another_module(folder: Path, tmp_path: Path, old: str, new: str) -> None:
    copied = shutil.copytree(folder, tmp_path / "out")
    text = (copied / "module.mlir").read_text(encoding="utf-8")
    (copied / "module.mlir").write_text(re.sub(old, new, text, count=1), encoding="utf-8")
    take_as_it_is(copied)
    with pytest.raises((VerifyError, InputError)):
        t10.Executable.load(copied)


def test_run_says_that_a_module_is_garbage(folder: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(folder, tmp_path / "out")
    (copied / "module.mlir").write_text("garbage", encoding="utf-8")
    take_as_it_is(copied)
    command = [sys.executable, "-m", "t10.cli", "run", str(copied)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == VerifyError.exit_code
    assert "is no module at the compute-shift level" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_another_computation_in_the_module_is_what_runs(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(sources()["integers"].partition("\n")[2].replace("// -----", ""), encoding="utf-8")
    made = t10.compile(model, chip="test-16")
    made.save(tmp_path / "out")
    file = tmp_path / "out" / "module.mlir"
    text = file.read_text(encoding="utf-8")
    assert "arith.addi" in text
    file.write_text(text.replace("arith.addi", "arith.subi", 1), encoding="utf-8")
    take_as_it_is(tmp_path / "out")
    inputs = {value.name: np.full(value.shape, 7, np.int32) for value in made.inputs}
    before, after = made.run(inputs), t10.Executable.load(tmp_path / "out").run(inputs)
    assert all((before[name] != after[name]).any() for name in before)
