"""The benchmark of the planner: verdicts, memory bounds, and a section from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planner.__main__ import main
from planner.bars import Bar, bar_lines, table_lines
from planner.memory import liveness_bytes
from planner.planned import Request, planned

from t10.core.graph import Graph
from t10.core.schedule import Buffer, ModulePlan


def test_a_bar_is_met_on_the_right_side_only() -> None:
    fast = Bar("models", "x", 4.9, "s", 5.0, "<=", "measured")
    slow = Bar("models", "x", 1.4, "x", 1.5, ">=", "modelled")
    unknown = Bar("models", "x", None, "s", 5.0, "<=", "measured", "does not fit")
    assert [bar.verdict for bar in (fast, slow, unknown)] == ["ok", "MISSED", "MISSED"]


def test_lines_name_the_kind_of_every_number() -> None:
    lines = bar_lines(
        [Bar("gap", "nerf: worst proved gap", 0.0004, "", 0.001, "<=", "computed", "at batch 4")]
    )
    assert lines[1].split() == [
        "nerf:",
        "worst",
        "proved",
        "gap",
        "0.0004",
        "<=",
        "0.001",
        "computed",
        "ok",
        "(at",
        "batch",
        "4)",
    ]


def test_columns_of_a_table_align() -> None:
    lines = table_lines(("model", "s"), [("nerf", "1.00"), ("bert-large", "10.00")])
    assert lines == ["model           s", "nerf         1.00", "bert-large  10.00"]


def plan_of(*buffers: Buffer) -> ModulePlan:
    graph = Graph("g", (), (), (), (), ())
    return ModulePlan("c", graph, (), (), (), buffers, 0, 0)


def test_liveness_counts_shared_bytes_once() -> None:
    apart = plan_of(Buffer("a", 100, 50, 0, 0), Buffer("b", 150, 20, 0, 0))
    shared = plan_of(Buffer("a", 100, 50, 0, 0), Buffer("b", 100, 50, 0, 0))
    later = plan_of(Buffer("a", 100, 50, 0, 0), Buffer("b", 200, 70, 1, 1))
    assert [liveness_bytes(plan, 100) for plan in (apart, shared, later)] == [170, 150, 150]


@pytest.mark.slow
def test_a_model_that_is_too_large_says_so() -> None:
    outcome = planned(Request("opt-1.3b", chip="test-64"))
    assert outcome.status == "too large"
    assert "bytes per core" in outcome.error
    assert outcome.seconds_by_stage["import"] > 0


@pytest.mark.slow
def test_a_section_writes_its_bars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bars.json"
    code = main(["--only", "models", "--models", "nerf", "--json", str(file)])
    (record,) = json.loads(file.read_text(encoding="utf-8"))
    assert record["name"] == "nerf: import to plan"
    assert record["kind"] == "measured"
    assert code == (0 if record["verdict"] == "ok" else 1)
    assert "nerf warm" in capsys.readouterr().out


def test_an_unknown_section_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "everything"]) == 2
    assert "sections: search, models, paper, gap, peak" in capsys.readouterr().out
