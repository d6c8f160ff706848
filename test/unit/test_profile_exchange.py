"""Prices of exchange phases are those of the exchange simulator, to the cycle; where they are not, by how much."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from t10.chip import load_chip
from t10.cli import main
from t10.core.loads import UNITS, core_loads, phase_loads
from t10.cost.exchange import exchange_rates, phase_cycles
from t10.profile.collective import Collective, collectives
from t10.profile.exchange import Timed, collective_cycles, exchange_errors, timed
from t10.profile.random_phases import MAKERS, random_phases

CHIP = load_chip("test-64")
RATES = exchange_rates(CHIP)


def some(kind: str, count: int = 5) -> list[Timed]:
    return [timed(phase, CHIP) for phase in random_phases(kind, CHIP.n_cores, count, seed=1)]


@pytest.mark.parametrize("kind", MAKERS)
def test_work_inside_every_core_is_that_of_the_exchange_simulator(kind: str) -> None:
    for one in some(kind):
        phase = one.phase
        loads = core_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, RATES)
        np.testing.assert_array_equal(-(-loads[:, [0, 3]] // UNITS), one.time.inside_cycles)


@pytest.mark.parametrize("kind", MAKERS)
def test_a_phase_is_priced_at_what_the_exchange_simulator_schedules(kind: str) -> None:
    for one in some(kind, 10):
        phase = one.phase
        loads = phase_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, RATES)
        assert phase_cycles(CHIP, loads) == one.time.cycles


def test_ports_that_wait_are_in_the_price() -> None:
    """The busiest port is a bound that is reached by no means always, and passed nowhere."""
    waiting: list[int] = []
    for kind in MAKERS:
        for one in some(kind, 10):
            phase = one.phase
            table = core_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, RATES)
            found = phase_loads(phase.runs, phase.fills, CHIP.n_cores, phase.item_bytes, RATES)
            waiting.append(found.port_cycles - int(table[:, 1:3].max(initial=0)))
    assert min(waiting) == 0
    assert sum(each > 0 for each in waiting) > 5


@pytest.mark.parametrize("kind", ["shifts", "reduce-scatters", "all-reduces"])
def test_regular_phases_take_what_they_are_priced_at(kind: str) -> None:
    """Also where the parts that one core takes end inside a word."""
    found = collectives(CHIP, 60, seed=2)[kind]
    for one in found:
        assert collective_cycles(one, CHIP) == one.cycles
    assert kind == "shifts" or any(map(is_ragged, found))


def is_ragged(one: Collective) -> bool:
    """Return whether the parts that some core takes end inside a word."""
    return any(bool((each.runs[:, 5] * each.runs[:, 6] % 4).any()) for each in one.patterns)


def test_shifts_and_reductions_are_drawn_alike_for_one_seed() -> None:
    first, second = (collectives(CHIP, 2, seed=5) for _ in range(2))
    assert list(first) == ["shifts", "reduce-scatters", "all-reduces"]
    for kind, group in first.items():
        keys = [[pattern.key for pattern in one.patterns] for one in group]
        assert keys == [[pattern.key for pattern in one.patterns] for one in second[kind]]


def test_errors_are_those_of_their_seed() -> None:
    found = exchange_errors(CHIP, 4, seed=3)
    assert found == exchange_errors(CHIP, 4, seed=3)
    assert [each.kind for each in found[-4:]] == ["shifts", "reduce-scatters", "all-reduces", "all"]
    assert found[-1].n == 4 * (len(MAKERS) + 3)


def test_the_command_prints_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["profile", "--exchange", "--chip", "test-16", "--samples", "4"]
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "relayouts of f16" in text
    assert "reduce-scatters" in text
    assert main([*command, "-o", str(tmp_path / "exchange.json")]) == 2
    assert "-o does not go with" in capsys.readouterr().err


@pytest.mark.parametrize("place", [0, 3])
def test_what_a_core_has_itself_goes_on_with_what_arrives_beside_it(place: int) -> None:
    """Pieces that touch have no ends of their own, which would be written byte by byte: before, behind, and between."""

    def behind(*own: int) -> int:
        """Return the units of core 0 where bytes 1 and 2 arrive from core 1, and it has `own` bytes itself."""
        runs = [(0, 1, 1, 0, 1, 2), *((0, 0, 8 * each, 0, each, 1) for each in own)]
        rows = sorted(runs, key=lambda run: run[4])
        loads = core_loads(np.array(rows, np.int32), np.zeros((0, 4), np.int32), CHIP.n_cores, 1, RATES)
        return int(loads[0, 3])

    apart = behind(place + 5)
    assert behind(place) < apart
    assert behind(0, 3) < behind(place, 6)
