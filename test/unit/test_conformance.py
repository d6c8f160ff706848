"""The runner of ONNX's tests: what it reads and writes, what it calls a surprise, and that nothing ends it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from record_counts import merged_rows, of_exports, of_texts

from t10.cli import conformance as command
from t10.cli.entry import main
from t10.conformance import expectations
from t10.conformance import judge as judging
from t10.conformance.cases import Case, DataSet
from t10.conformance.document import limit_of, operators_page
from t10.conformance.expectations import (
    Expectations,
    line_of,
    merged,
    read_expectations,
    reworded,
    surprises,
    write_expectations,
)
from t10.conformance.measured import Measured, read_measured, write_measured
from t10.conformance.summary import counts_by_kind, reasons
from t10.conformance.verdict import EXPECTABLE, Status, Verdict
from t10.conformance.workers import Limits, run_cases
from t10.errors import InputError


def verdict(name: str, status: Status = "pass", reason: str = "", **rest: Any) -> Verdict:
    return Verdict(f"node/{name}", "Add-14", status, reason, **rest)


def expecting(*verdicts: Verdict, version: str = onnx.__version__) -> Expectations:
    return Expectations(version, {each.name: each for each in verdicts})


def negation(name: str, y: list[float]) -> Case:
    """Return a test of Neg of (1, 2) with a reference."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, [2])],
        [value("y", TensorProto.FLOAT, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    data = DataSet((np.array([1, 2], np.float32),), (np.array(y, np.float32),))
    return Case(f"node/{name}", model, (data,), 1e-3, 1e-7)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found = [
        verdict("b", "unsupported", "input 'x' is text (expected numbers): no"),
        verdict("a", tiles="pass"),
        verdict("c", constants=("axes", "k"), tiles="unsupported", tiles_reason="no codelet: none"),
        Verdict("light/n", "", "pass"),
        Verdict("simple/d", "", "pass", tiles="unsupported", tiles_reason="no codelet"),
    ]
    write_expectations(found, tmp_path / "list.txt")
    again = read_expectations(tmp_path / "list.txt")
    assert again.is_of_this_onnx
    assert dict(again.verdict_by_name) == {each.name: each for each in found}
    assert list(again.verdict_by_name) == sorted(again.verdict_by_name)


def test_defects_are_never_written(tmp_path: Path) -> None:
    statuses: tuple[Status, ...] = ("wrong", "crash", "time limit")
    write_expectations([verdict(f"t{i}", status) for i, status in enumerate(statuses)], tmp_path / "list.txt")
    assert not read_expectations(tmp_path / "list.txt").verdict_by_name


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        (["node/a: pass"], ":1: expected"),
        (["# What the tests of onnx 1 give", "node/a: wrong"], ":2: expected"),
        (["# What the tests of onnx 1 give", "node/b: pass", "node/a: pass"], ":3: node/a stands twice"),
        (["# What the tests of onnx 1 give", "node/a: pass", "node/a: pass"], ":3: node/a stands twice"),
    ],
)
def test_a_list_that_is_none_is_refused(tmp_path: Path, lines: list[str], where: str) -> None:
    path = tmp_path / "list.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=where):
        read_expectations(path)


def test_every_change_of_a_verdict_is_a_surprise() -> None:
    listed = expecting(verdict("a"), verdict("b", "unsupported", "why"), verdict("c", constants=("k",)))
    assert surprises([verdict("a"), verdict("b", "unsupported", "other words")], listed) == ()
    changed = [verdict("a", "unsupported", "why"), verdict("b"), verdict("c"), verdict("d")]
    assert [line.split()[0] for line in surprises(changed, listed)] == [
        f"node/{name}" for name in ("a", "b", "c", "d")
    ]


def test_other_words_for_a_refusal_are_told_apart() -> None:
    listed = expecting(verdict("a"), verdict("b", "unsupported", "why"), verdict("c", "unsupported", "why"))
    found = [verdict("a"), verdict("b", "unsupported", "other words"), verdict("c", "unsupported", "why")]
    assert reworded(found, listed) == ("node/b",)


@pytest.mark.parametrize("tiles", ["wrong", "unsupported"])
def test_what_tiles_give_else_than_listed_is_a_surprise(tiles: Status) -> None:
    listed = expecting(verdict("a", tiles="pass"))
    assert surprises([verdict("a", tiles="pass")], listed) == ()
    assert len(surprises([verdict("a", tiles=tiles, tiles_reason="why")], listed)) == 1
    also = expecting(verdict("a", tiles=tiles, tiles_reason="why"))
    assert len(surprises([verdict("a", tiles=tiles, tiles_reason="why")], also)) == (tiles == "wrong")


def test_numbers_are_compared_on_tiles_too() -> None:
    assert judging.judge(negation("right", [-1, -2])).tiles == "pass"


def test_tests_of_another_onnx_surprise_only_by_defects() -> None:
    listed = expecting(verdict("a"), version="0.1")
    found = [verdict("new"), verdict("refused", "unsupported", "why"), verdict("bad", "wrong", "1 for 2")]
    assert [line.split()[0] for line in surprises(found, listed)] == ["node/bad"]


def test_found_verdicts_take_the_place_of_listed_ones() -> None:
    listed = expecting(verdict("a"), verdict("b"))
    assert {v.name: v.status for v in merged([verdict("b", "unsupported", "why")], listed)} == {
        "node/a": "pass",
        "node/b": "unsupported",
    }


def test_counts_and_reasons() -> None:
    found = [verdict("a"), verdict("b", constants=("k",))]
    found += [verdict(name, "unsupported", f"dim {i} of '{name}' is odd") for i, name in enumerate("cd")]
    row = counts_by_kind(found)["node"]
    assert (row["pass"], row["with constants"], row["unsupported"], row["wrong"]) == (1, 1, 2, 0)
    assert reasons(found) == (("dim N of … is odd", 2),)


def test_the_reviewed_list_holds_what_may_be_expected_and_nothing_of_one_machine() -> None:
    expected = read_expectations()
    for each in expected.verdict_by_name.values():
        assert each.status in EXPECTABLE
        assert bool(each.reason) == (each.status == "unsupported"), line_of(each)
        assert "/tmp" not in each.reason
    passing = [v for v in expected.verdict_by_name.values() if v.status == "pass" and not v.constants]
    assert sum(v.name.startswith("node/") for v in passing) >= 900


def test_the_page_has_a_row_per_operator_and_opset() -> None:
    refused = verdict("b", "unsupported", "operator 'y': no (try more)")
    page = operators_page(expecting(verdict("a", tiles="pass"), refused))
    assert "| Add | 14 | 1 | 0 | 1 | 1 | no |" in page
    for more in ("", " (and 2 more)"):
        reason = f"operator 'y': Foo is of 'x' (expected numbers) (keep it (or not)){more}"
        assert limit_of(reason) == "Foo is of … (expected numbers)"


def test_the_page_names_types_that_are_refused_once() -> None:
    reasons = (f"input '{name}' is of element type {kind} (expected float) (cast it)" for name, kind in
               (("x", "uint16"), ("y", "uint16"), ("x", "bfloat16")))  # fmt: skip
    page = operators_page(expecting(*(verdict(f"t{i}", "unsupported", r) for i, r in enumerate(reasons))))
    assert "| Add | 14 | 0 | 0 | 0 | 3 | no bfloat16, uint16 |" in page


def test_numbers_are_compared_at_the_tolerance_of_the_test() -> None:
    assert judging.judge(negation("right", [-1, -2])).status == "pass"
    assert judging.judge(negation("near", [-1.0005, -2])).status == "pass"
    wrong = judging.judge(negation("off", [-1.01, -2]))
    assert wrong.status == "wrong"
    assert "1 of 2 elements differ, at [0] -1.0 for -1.0" in wrong.reason


def test_recorded_counts_are_read_again_and_replaced_by_name(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    assert read_measured(path) == ()
    write_measured([Measured("b", {"pass": 1}, "run b"), Measured("a", {"wrong": 2}, "run a")], path)
    write_measured([Measured("b", {"pass": 3, "unsupported": 4}, "run b", {"not tried": 5})], path)
    a, b = read_measured(path)
    assert (a.what, a.counts, b.row[:3], b.apart) == ("a", {"wrong": 2}, (3, 0, 4), {"not tried": 5})
    with pytest.raises(ValueError, match="counts of great"):
        Measured("c", {"great": 1}, "run c")


def test_rows_of_other_commands_are_counted_by_status() -> None:
    verdicts = ("equal", "equal with constants n", "refused", "DIFFERS", "HANGS", "UNEXPECTED refused")
    texts = of_texts({"verdict": v, "constants": ["n"] if "constants" in v else []} for v in verdicts)
    assert texts.counts == {"pass": 1, "with constants": 1, "unsupported": 2, "wrong": 1, "time limit": 1}
    rows = [{"exporter": e, "status": s} for e in ("dynamo", "script") for s in ("pass", "pass", "exporter")]
    again = [{"name": "x", "verdict": "DIFFERS"}, {"name": "y"}], [{"name": "x", "verdict": "equal"}]
    assert merged_rows(again) == [{"name": "x", "verdict": "equal"}, {"name": "y"}]
    dynamo, script = of_exports(rows)
    assert (dynamo.what, dynamo.counts) == ("exports of PyTorch (dynamo)", {"pass": 2})
    assert script.apart == {"not written by the exporter": 1}


def test_the_command_ends_with_1_when_a_test_gives_what_is_not_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "simple/test_expand_shape_model1"
    line = ["conformance", "--only", name]
    assert main(line) == 0
    assert "1 test with the expected verdict" in capsys.readouterr().out
    write_expectations([Verdict(name, "", "unsupported", "why")], tmp_path / "list.txt")
    assert main([*line, "--list", str(tmp_path / "list.txt")]) == 1
    assert "pass (expected unsupported: why)" in capsys.readouterr().err


def test_the_summary_runs_nothing_and_prints_every_count(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "load_cases", None)
    assert main(["conformance", "--summary"]) == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("node", "light", "texts of onnx-mlir", "benchmarks/torch_exports"))


def test_the_command_reads_and_updates_the_list_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "list.txt"
    name = "simple/test_expand_shape_model1"
    write_expectations([Verdict(name, "", "unsupported", "why")], path)
    write_measured([Measured("texts", {"pass": 77}, "run texts")], tmp_path / "measured.json")
    assert main(["conformance", "--list", str(path), "--summary"]) == 0
    shown = capsys.readouterr().out
    assert "why" in shown
    assert "77" in shown
    assert main(["conformance", "--list", str(path), "--only", name, "--update"]) == 0
    assert read_expectations(path).verdict_by_name[name].status == "pass"


def test_the_command_of_an_installed_package_asks_for_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(expectations, "REPOSITORY_LIST", tmp_path / "expected.txt")
    assert main(["conformance", "--summary"]) == 2
    error = capsys.readouterr().err
    assert "no list of what every test is expected to give" in error
    assert "--list FILE" in error


def _broken(case: Case) -> Verdict:
    if case.name.endswith("ends"):
        os._exit(7)
    while case.name.endswith("hangs"):
        time.perf_counter()
    return Verdict(case.name, case.operator, "pass")


def test_a_test_that_crashes_or_hangs_ends_its_process_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in: Callable[[Case], Verdict] = _broken
    monkeypatch.setattr(judging, "judge", stand_in)
    cases = [replace(negation("x", [0, 0]), name=f"node/{n}") for n in ("ends", "fine", "hangs", "last")]
    found = run_cases(cases, Limits(cpu_seconds=1), jobs=1)
    assert [v.name for v in found] == [case.name for case in cases]
    assert [v.status for v in found] == ["crash", "pass", "time limit", "pass"]
    assert "exit code 7" in found[0].reason
