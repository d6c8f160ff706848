"""Exchanges that pass a fraction of bytes in a cycle: planned as simulated, with exact arithmetic."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import numpy as np
import pytest
from support.random_moves import random_arriving
from test_random_prices import by_kind, differences

from t10.chip import load_chip
from t10.cli import main
from t10.cost import IpuCostModel
from t10.driver import compile
from t10.emit.lower import lowered_parts
from t10.errors import InputError
from t10.plan.movement import arrivals
from t10.plan.movement.arrivals import Mover
from t10.profile.steps import timed

MLP = Path(__file__).parents[2] / "examples" / "models" / "mlp.onnx"
RATES = (3.57, 0.75, 9.25)


@pytest.mark.parametrize(
    ("written", "rate"), [("3.57", (357, 100)), ("4", (4, 1)), ("4.0", (4, 1)), ("0.75", (3, 4))]
)
def test_bytes_take_the_cycles_that_their_quotient_is_rounded_up_to(
    written: str, rate: tuple[int, int]
) -> None:
    chip = load_chip(f"test-4:exchange_bytes_per_cycle={written}")
    assert chip.exchange_rate == rate
    numbers = np.arange(0, 4000, 7)
    expected = [ceil(n * rate[1] / rate[0]) for n in numbers.tolist()]
    assert chip.port_cycles(numbers).tolist() == expected
    assert [chip.port_cycles(n) for n in numbers.tolist()] == expected
    costs = IpuCostModel(chip)
    begun = costs.exchange_cycles(1, 1, neighbour=True) - chip.port_cycles(1)
    assert costs.exchange_cycles(1000, 1, neighbour=True) - begun == chip.port_cycles(1000)


@pytest.mark.parametrize("rate", RATES)
def test_random_plans_take_their_price(rate: float) -> None:
    for seed in range(6):
        assert differences(seed, exchange_bytes_per_cycle=rate) == []


@pytest.mark.parametrize("rate", RATES)
def test_bounds_of_arrivals_are_not_above_them(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "BOUND_PIECES", 0)
    costs = IpuCostModel(load_chip("test-64").model_copy(update={"exchange_bytes_per_cycle": rate}))
    for seed in range(60):
        case = random_arriving(seed)
        arguments = (case.spec, case.plan, case.number, case.layouts)
        cycles = Mover(case.graph, costs, 64).arrival(*arguments, "").cycles
        for most in (1, 9, 1 << 14):
            monkeypatch.setattr(arrivals, "CORE_PIECES", most)
            assert sum(Mover(case.graph, costs, 64).bound(*arguments)) <= cycles, seed


def test_slower_exchanges_take_longer_and_faster_ones_less() -> None:
    cycles = [
        compile(MLP, f"test-16:exchange_bytes_per_cycle={rate},paired_bytes_per_cycle=0")
        .report()
        .total_cycles
        for rate in ("3", "3.57", "4")
    ]
    assert cycles[0] > cycles[1] > cycles[2]


def test_a_model_takes_what_it_is_planned_at() -> None:
    executable = compile(MLP, "test-16:exchange_bytes_per_cycle=3.57")
    plan, chip = executable.plan, executable.chip
    measured = timed(lowered_parts(plan, chip, IpuCostModel(chip)), plan, chip)
    for operator in plan.operators:
        for kind, price, took in by_kind(operator, measured[operator.name]):
            assert price == took, (operator.name, kind)


@pytest.mark.parametrize("engine", ["plan", "iss"])
def test_a_model_is_verified(engine: str) -> None:
    chip = "test-16:exchange_bytes_per_cycle=3.57"
    assert main(["verify", str(MLP), "--chip", chip, "--engine", engine, "--seeds", "1", "--no-cache"]) == 0


@pytest.mark.parametrize("rate", ["0", "1e-9", "-1"])
def test_a_rate_that_is_none_is_refused(rate: str) -> None:
    with pytest.raises(InputError, match=r"field exchange_bytes_per_cycle: .*found"):
        load_chip(f"test-4:exchange_bytes_per_cycle={rate}")
