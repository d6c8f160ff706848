"""The communication model held against the exchange simulator, on random phases.

    t10 profile --exchange --chip ipu-mk2 [--seed 0] [--samples 40]

Relayouts and set-ups are scheduled as the simulator does. Shifts and reductions are priced in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Floats
from t10.core.device import Pattern
from t10.core.loads import phase_loads
from t10.cost.exchange import exchange_rates, phase_cycles
from t10.emit.patterns import pattern_of_runs
from t10.profile.collective import Collective, collectives
from t10.profile.random_phases import MAKERS, RandomPhase, random_phases
from t10.sim.device.phase import ExchangeModel, PhaseTime, pattern_time

SAMPLES = 40
SOURCE_OFFSET, TARGET_OFFSET = 0, 0x54000
"""In memory elements of their own, as the emitter places them where there is room."""


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """A phase and what it takes on the exchange simulator."""

    phase: RandomPhase
    time: PhaseTime


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of the modelled cycles of phases."""

    kind: str
    n: int
    median: float
    p99: float
    most: float


def timed(phase: RandomPhase, chip: ChipSpec) -> Timed:
    """Return what the exchange simulator says of a phase."""
    return Timed(phase, _time(_pattern(phase), chip))


def _pattern(phase: RandomPhase) -> Pattern:
    fills = phase.fills
    rows = np.zeros((len(fills), 6), np.int32)
    rows[:, 0], rows[:, 2], rows[:, 3:] = fills[:, 0], fills[:, 2], fills[:, 1:]
    return pattern_of_runs(phase.runs, phase.item_bytes, rows, ("0",))


def _time(pattern: Pattern, chip: ChipSpec, *, is_neighbour: bool = False) -> PhaseTime:
    return pattern_time(
        pattern,
        ExchangeModel(chip),
        chip.n_cores,
        source_offsets=np.array([SOURCE_OFFSET], np.int64),
        target_offset=TARGET_OFFSET,
        is_neighbour=is_neighbour,
    )


def exchange_errors(chip: ChipSpec, n_samples: int = SAMPLES, seed: int = 0) -> tuple[Errors, ...]:
    """Return the errors on `n_samples` random phases of every kind; the last entry is of all."""
    errors: list[tuple[str, Floats]] = []
    for kind in MAKERS:
        drawn = random_phases(kind, chip.n_cores, n_samples, seed)
        errors.append((kind, np.array([_error(timed(phase, chip), chip) for phase in drawn])))
    for kind, group in collectives(chip, n_samples, seed).items():
        errors.append((kind, np.array([abs(one.cycles / collective_cycles(one, chip) - 1) for one in group])))
    everything = ("all", np.concatenate([each for _, each in errors]))
    return tuple(_errors(*each) for each in (*errors, everything))


def _errors(kind: str, errors: Floats) -> Errors:
    return Errors(
        kind, len(errors), float(np.median(errors)), float(np.quantile(errors, 0.99)), float(errors.max())
    )


def _error(one: Timed, chip: ChipSpec) -> float:
    """Return the relative error of a phase's modelled cycles."""
    phase = one.phase
    loads = phase_loads(phase.runs, phase.fills, chip.n_cores, phase.item_bytes, exchange_rates(chip))
    return abs(phase_cycles(chip, loads) / one.time.cycles - 1)


def collective_cycles(one: Collective, chip: ChipSpec) -> int:
    """Return what the exchange simulator says of the exchanges of a shift or a reduction."""
    return sum(_time(each, chip, is_neighbour=one.is_neighbour).cycles for each in one.patterns)
