"""The tests of the onnx package give what the reviewed list says: a slice of them here, all by `make conformance`."""

from __future__ import annotations

from functools import cache

import pytest
from support.draw import drawn

from t10.conformance.cases import KINDS, Case, load_cases
from t10.conformance.expectations import read_expectations
from t10.conformance.known import read_known, unexpected
from t10.conformance.workers import Limits, run_cases

N_SHARDS = 4
EVERY = 45
PART = 0.5
SMALL_KINDS = KINDS[:-1]
SMALLEST_NETWORK = "light/squeezenet"


@cache
def _cases() -> tuple[Case, ...]:
    return load_cases(SMALL_KINDS)


def _slice() -> tuple[Case, ...]:
    """Return some of: one test per operator and opset, one per reason of a refusal, and every n-th; ordered by name."""
    listed = read_expectations().verdict_by_name
    chosen: dict[str, Case] = {}
    for case in _cases():
        verdict = listed.get(case.name)
        reason = verdict.reason.partition(" (")[0].rpartition("'")[2] if verdict else ""
        for key in (case.operator, reason):
            if key:
                chosen.setdefault(key, case)
    every = {case.name: case for case in (*chosen.values(), *_cases()[::EVERY])}
    cases = sorted(every.values(), key=_name)
    return tuple(drawn(cases, round(PART * len(cases)), name=_name))


def _name(case: Case) -> str:
    return case.name


def _found(cases: tuple[Case, ...]) -> tuple[str, ...]:
    return unexpected(run_cases(cases, Limits(), jobs=1), read_expectations(), read_known())


def test_the_list_names_every_test_once() -> None:
    listed = read_expectations()
    names = {case.name for case in (*_cases(), *load_cases(KINDS[-1:]))}
    if listed.is_of_this_onnx:
        assert set(listed.verdict_by_name) == names
    else:
        assert len(names & set(listed.verdict_by_name)) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(N_SHARDS))
def test_a_slice_gives_what_is_expected(shard: int) -> None:
    assert _found(_slice()[shard::N_SHARDS]) == ()


@pytest.mark.slow
def test_a_network_computes_what_onnx_runtime_computes() -> None:
    networks = tuple(case for case in load_cases(("light",)) if case.name == SMALLEST_NETWORK)
    assert len(networks) == 1
    assert _found(networks) == ()
