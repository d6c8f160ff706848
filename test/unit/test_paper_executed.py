"""The evaluation executes the plans that it prints, finds wrong numbers, and counts what fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundled import transformers
from bundled.transformers import Sizes
from paper import part_batches, part_executed, part_regions
from paper.claims import claims_of
from paper.page import known_rows
from paper.part_batches import BATCHES, COUNTED, HOLDS_ALL, NOT_TRIED, PLANNED, guessed, largest
from paper.part_data import Data, chip_and_costs
from paper.part_executed import executed_error, readied
from support.specs import matmul, one_operator_graph

from t10.baselines.roller import Roller
from t10.baselines.vgm import least_vgm_bytes, plan_vgm, room_bytes
from t10.chip import load_chip
from t10.compare import SYSTEMS
from t10.core.graph import Graph
from t10.errors import InfeasiblePlanError, T10Error

SMALL = Sizes(batch=1, length=16, width=64, heads=4, inner=128)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("system", ["Roller", "Roller, split sums", "Ansor", "PopART 0.6"])
def test_plans_of_other_systems_compute_what_onnx_runtime_does(system: str) -> None:
    chip, cost = load_chip("test-16"), chip_and_costs()[1]
    graph, values, inputs, expected = readied(transformers.opt("float16", SMALL), chip)
    found = SYSTEMS[system].plan(graph, chip, cost)
    error, tolerance = executed_error(found, graph, chip, values, inputs, expected, system)
    assert 0 < error <= tolerance
    wrong = {name: each + 1 for name, each in expected.items()}
    with pytest.raises(T10Error, match="off by"):
        executed_error(found, graph, chip, values, inputs, wrong, system)


def test_a_wrong_number_stops_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Data, "folder", tmp_path)
    model, system, digest = part_executed.jobs()[0]
    lines = (",".join(part_executed.FIELDS), f"{model},{system},{digest},9,5,9,9,100,0.5,0.005")
    (tmp_path / part_executed.FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
    for part in (part_executed.claims, part_executed.section):
        with pytest.raises(T10Error, match="is off by"):
            part()


@pytest.mark.slow
def test_other_cycles_than_were_executed_are_not_taken_for_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Data, "folder", tmp_path)
    model, system, digest = part_executed.jobs()[0]
    for known, agrees in ((digest, False), ("0" * 16, None)):
        lines = (",".join(part_executed.FIELDS), f'{model},"{system}",{known},9,5,9,9,100,0.0005,0.005')
        (tmp_path / part_executed.FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")
        claims = part_executed.claims()
        assert [each.agrees for each in claims] == ([] if agrees is None else [agrees])


def test_what_is_kept_is_of_the_printed_plans() -> None:
    (claim,) = part_executed.claims()
    assert claim.agrees, f"run python benchmarks/paper: {claim.why}"


def test_reasons_were_tried() -> None:
    claims = [*claims_of(known_rows()), *part_batches.claims(), *part_regions.claims()]
    assert [each.why for each in claims if "perhaps" in each.why] == []


def _fits(graph: Graph, sram_bytes: int, system: Roller) -> bool:
    chip = load_chip("test-16").model_copy(update={"sram_bytes": sram_bytes})
    try:
        plan_vgm(graph, chip, chip_and_costs()[1], system)
    except InfeasiblePlanError:
        return False
    return True


@pytest.mark.parametrize("splits", [False, True])
def test_what_roller_needs_at_least_is_what_its_planner_needs(*, splits: bool) -> None:
    graph, system = one_operator_graph(matmul(256, 256, 256)), Roller(splits_sums=splits)
    chip = load_chip("test-16")
    beside = chip.sram_bytes - room_bytes(chip, system)
    need = least_vgm_bytes(graph, chip.n_cores) + beside
    assert _fits(graph, need, system)
    assert not _fits(graph, need - 8, system)


def test_the_largest_batch_is_counted_up_or_planned_down() -> None:
    def need(batch: int) -> tuple[int, int, str]:
        return 100 * batch, 1000, ""

    more = "needs 1,200 bytes per core of 1,000"
    for batch in (1, 6, 8, 12, 4096):
        assert largest(need, BATCHES.index(batch), COUNTED, NOT_TRIED) == (8, COUNTED, 800, more)
    assert largest(need, BATCHES.index(32), PLANNED, HOLDS_ALL) == (8, PLANNED, 800, more)
    assert largest(need, BATCHES.index(6), PLANNED, HOLDS_ALL) == (6, PLANNED, 600, HOLDS_ALL)
    assert largest(lambda _: (0, 1, "no room"), 4, PLANNED, HOLDS_ALL) == (0, PLANNED, 0, "no room")
    assert largest(lambda _: (2, 1, ""), 0, COUNTED, NOT_TRIED)[0] == 0
    assert largest(lambda _: (1, 1, ""), 0, COUNTED, NOT_TRIED) == (BATCHES[-1], COUNTED, 1, NOT_TRIED)


@pytest.mark.parametrize("fixed", [0, 40_000])
def test_few_batches_are_counted_where_every_unit_needs_as_much(fixed: int) -> None:
    """Every batch that is counted is a model that is built."""
    asked: list[int] = []

    def need(batch: int) -> tuple[int, int, str]:
        asked.append(batch)
        return fixed + 1_000 * batch + (500 if batch > 8 else 0), fixed + 130_000, ""

    place = guessed(need)
    assert largest(need, place, COUNTED, NOT_TRIED)[0] == 128
    assert len(set(asked)) <= 4
