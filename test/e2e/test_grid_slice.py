"""Operator x element type x engine: a slice of the grid here, all of it by `make conformance`."""

from __future__ import annotations

import pytest

from t10.conformance.grid.cases import load_grid, packs
from t10.conformance.grid.summary import by_case, defects
from t10.conformance.known import read_known, unknown
from t10.conformance.workers import Limits, run_cases

N_PACKS = 60
N_SHARDS = 2


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(N_SHARDS))
def test_a_slice_of_the_grid_has_no_unexplained_difference(shard: int) -> None:
    chosen = packs(load_grid())[:N_PACKS][shard::N_SHARDS]
    verdicts = by_case(run_cases(chosen, Limits(), jobs=1))
    assert len(verdicts) > len(chosen)
    assert [str(each) for each in unknown(defects(verdicts), read_known())] == []


@pytest.mark.slow
def test_a_pack_of_the_grid_runs_on_every_engine() -> None:
    pack = next(each for each in packs(load_grid()) if each.name.startswith("grid/Add/float/"))
    (verdict,) = run_cases([pack.on_host()], Limits(), jobs=1)
    assert {(each.status, each.tiles, each.host) for each in verdict.parts} == {("pass", "pass", "pass")}
