"""Modelled energy of a plan, from what a chip file says that work takes."""

from __future__ import annotations

from math import prod

from t10.chip import ChipSpec
from t10.chip.energy import Energy
from t10.core.dtypes import size_bytes
from t10.core.own_weights import own_weights
from t10.core.schedule import ModulePlan
from t10.cost import IpuCostModel
from t10.report.records import EnergyReport
from t10.report.traffic import bytes_of_all_cores

PICO = 1e-12


def energies(plan: ModulePlan, chip: ChipSpec) -> tuple[EnergyReport | None, ...]:
    """Return by operator what it takes; None where the chip does not say.

    Cores compute their whole parts, padding included. What one core keeps to itself is not moved.
    """
    energy = chip.energy
    if energy is None:
        return (None,) * len(plan.operators)
    own, fetched = own_weights(plan.graph), {fetch.operator for fetch in plan.fetches}
    found: list[EnergyReport] = []
    for scheduled, n_bytes in zip(
        plan.operators, bytes_of_all_cores(plan, chip, IpuCostModel(chip)), strict=True
    ):
        chosen = scheduled.active.plan
        weights = own.get(scheduled.name, ()) if scheduled.name in fetched else ()
        found.append(
            _energy(
                energy,
                prod(chosen.f_op) * prod(chosen.lengths),
                n_bytes,
                sum(prod(each.shape) * size_bytes(each.dtype) for each in weights),
                scheduled.active.cycles.total / chip.clock_hz,
            )
        )
    return tuple(found)


def _energy(energy: Energy, n_points: int, n_bytes: int, n_fetched: int, seconds: float) -> EnergyReport:
    return EnergyReport(
        compute=n_points * energy.mac_pj * PICO,
        exchange=n_bytes * energy.byte_pj * PICO,
        off_chip=n_fetched * energy.off_chip_byte_pj * PICO,
        static=energy.static_watts * seconds,
    )
