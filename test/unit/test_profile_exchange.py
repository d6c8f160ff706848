"""Loads explain the exchange simulator's phases to the cycle; what is fitted on some of them holds for others."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from t10.chip import load_chip
from t10.cli import main
from t10.core.loads import UNITS, core_loads, phase_loads
from t10.cost.exchange import ExchangeCosts, exchange_costs
from t10.profile.collective import collectives
from t10.profile.exchange import Timed, fit_exchange, timed, write_exchange_fit
from t10.profile.fit import fit, nonnegative_least_squares
from t10.profile.random_phases import MAKERS, random_phases

CHIP = load_chip("test-64")
COUNTED = ExchangeCosts(0.5, 0.75, 1.5, 1.0, 2.0, 0.75, 1.5, 4.0, 4.0, 0.0)
"""What the exchange simulator charges (docs/device-simulator.md)."""


def some(kind: str, count: int = 5) -> list[Timed]:
    return [timed(phase, CHIP) for phase in random_phases(kind, CHIP.n_cores, count, seed=1)]


@pytest.mark.parametrize("kind", MAKERS)
def test_work_inside_every_core_is_that_of_the_exchange_simulator(kind: str) -> None:
    for one in some(kind):
        phase = one.phase
        loads = core_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, COUNTED.rates(CHIP))
        np.testing.assert_array_equal(-(-loads[:, [0, 3]] // UNITS), one.time.inside_cycles)


@pytest.mark.parametrize("kind", MAKERS)
def test_no_schedule_is_shorter_than_the_busiest_port_and_few_are_much_longer(kind: str) -> None:
    for one in some(kind):
        phase = one.phase
        rates = COUNTED.rates(CHIP)
        port = phase_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, rates).port_cycles
        transfer = one.time.transfer_cycles + (CHIP.fragment_cycles if one.time.n_transfers else 0)
        assert port <= transfer <= 1.25 * port


def test_fits_are_those_of_their_seed_and_hold_for_other_phases(tmp_path: Path) -> None:
    found = fit_exchange(CHIP, 8, seed=3)
    assert found == fit_exchange(CHIP, 8, seed=3)
    for name in ("copy_4", "copy_2", "short_even", "long_even", "row", "ragged"):
        assert getattr(found.costs, name) == pytest.approx(getattr(COUNTED, name), rel=0.05)
    everything = found.errors[-1]
    assert (everything.kind, everything.n) == ("all", 2 * (len(MAKERS) + 3))
    assert everything.median < 0.02
    write_exchange_fit(tmp_path / "fit.json", found, CHIP, 8, 3)
    written = json.loads((tmp_path / "fit.json").read_text())
    assert written["errors"]["all"]["median"] == round(everything.median, 4)
    assert written["row"] == found.costs.row


def test_the_bundled_coefficients_are_near_what_the_simulator_charges() -> None:
    for name in ("copy_4", "copy_2", "copy_1", "short_even", "short_odd", "long_even", "row", "ragged"):
        assert getattr(exchange_costs(), name) == pytest.approx(getattr(COUNTED, name), rel=0.02)
    assert exchange_costs().waiting < 0.02


def test_shifts_and_reductions_are_drawn_alike_for_one_seed() -> None:
    first, second = (collectives(CHIP, 2, seed=5) for _ in range(2))
    assert list(first) == ["shifts", "reduce-scatters", "all-reduces"]
    for kind, group in first.items():
        keys = [[pattern.key for pattern in one.patterns] for one in group]
        assert keys == [[pattern.key for pattern in one.patterns] for one in second[kind]]


def test_the_command_prints_errors_and_writes_what_the_cost_model_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "exchange.json"
    assert main(["profile", "--exchange", "--chip", "test-16", "--samples", "4", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "relayouts of f16" in text
    assert "reduce-scatters" in text
    written = json.loads(out.read_text())
    assert (written["chip"], written["samples"]) == ("test-16", 4)
    assert set(written) >= {each.name for each in fields(ExchangeCosts)}


def test_least_squares_find_what_made_the_data_and_never_a_negative() -> None:
    rng = np.random.default_rng(0)
    table = rng.random((40, 4))
    truth = np.array([2.0, 0.0, 0.5, 3.0])
    np.testing.assert_allclose(nonnegative_least_squares(table, table @ truth), truth, atol=1e-9)
    against = nonnegative_least_squares(table, table @ np.array([1.0, -1.0, 1.0, 1.0]))
    assert (against >= 0).all()
    assert against[1] == 0


def test_what_a_model_cannot_tell_apart_it_does_not_price_at_the_cheaper() -> None:
    # One feature, 1 and 4 cycles for the same box: least squares of relative errors would say 1.18.
    one = np.ones(40)
    cycles = np.where(np.arange(40) % 2, 1.0, 4.0)
    assert 1.5 < fit({"one": one}, cycles)["one"] < 2.5
