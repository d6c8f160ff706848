"""The communication model fitted to the exchange simulator, and held against it on phases that were held back.

    t10 profile --exchange --chip ipu-mk2 [--seed 0] [--samples 40] [-o FILE]

Counted exactly: the bytes and fragments of every core's ports, and what it gathers, copies and scatters (`core.loads`).
Fitted: what a byte, a row, a ragged end of that costs, and how much longer than its busiest port a phase takes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import numpy as np

from t10.chip import ChipSpec
from t10.core.arrays import Floats
from t10.core.atomic import write_text
from t10.core.device import Pattern
from t10.core.loads import UNITS, MoveRates, core_loads, phase_loads
from t10.cost.exchange import ExchangeCosts
from t10.emit.patterns import pattern_of_runs
from t10.profile.collective import Collective, collectives
from t10.profile.fit import fit
from t10.profile.random_phases import MAKERS, RandomPhase, random_phases
from t10.sim.device.phase import ExchangeModel, PhaseTime, pattern_time

SAMPLES = 40
TEST_EVERY = 4
"""Of so many phases one is held back for the test."""
CORES_OF_A_PHASE = 16
SOURCE_OFFSET, TARGET_OFFSET = 0, 0x54000
"""In memory elements of their own, as the emitter places them where there is room."""
FITTED = tuple(each.name for each in fields(ExchangeCosts) if each.name != "waiting")
DIGITS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """A phase and what it takes on the exchange simulator."""

    phase: RandomPhase
    time: PhaseTime


@dataclass(frozen=True, slots=True)
class Errors:
    """Relative errors of the modelled cycles of phases that were held back."""

    kind: str
    n: int
    median: float
    p99: float
    most: float


@dataclass(frozen=True, slots=True)
class ExchangeFit:
    """Fitted coefficients, and their errors by kind of phase; the last entry is of all."""

    costs: ExchangeCosts
    errors: tuple[Errors, ...]


def timed(phase: RandomPhase, chip: ChipSpec) -> Timed:
    """Return what the exchange simulator says of a phase."""
    return Timed(phase, _time(_pattern(phase), chip))


def _pattern(phase: RandomPhase) -> Pattern:
    fills = phase.fills
    rows = np.zeros((len(fills), 6), np.int32)
    rows[:, 2], rows[:, 3:] = fills[:, 1], fills
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


def fit_exchange(chip: ChipSpec, n_samples: int = SAMPLES, seed: int = 0) -> ExchangeFit:
    """Return the coefficients fitted to `n_samples` phases of every kind; a quarter is held back for the errors."""
    drawn = {kind: random_phases(kind, chip.n_cores, n_samples, seed) for kind in MAKERS}
    phases = {kind: [timed(phase, chip) for phase in own] for kind, own in drawn.items()}
    learned = [
        one for own in phases.values() for n, one in enumerate(own) if n % TEST_EVERY != TEST_EVERY - 1
    ]
    costs = _with_waiting(_work_costs(learned, chip), learned, chip)
    errors: list[tuple[str, Floats]] = []
    for kind, own in phases.items():
        held_back = own[TEST_EVERY - 1 :: TEST_EVERY]
        errors.append((kind, np.array([_error(costs, one, chip) for one in held_back])))
    for kind, group in collectives(chip, n_samples // TEST_EVERY, seed).items():
        errors.append((kind, np.array([_collective_error(costs, one, chip) for one in group])))
    everything = ("all", np.concatenate([each for _, each in errors]))
    return ExchangeFit(costs, tuple(_errors(*each) for each in (*errors, everything)))


def _errors(kind: str, errors: Floats) -> Errors:
    return Errors(
        kind, len(errors), float(np.median(errors)), float(np.quantile(errors, 0.99)), float(errors.max())
    )


def _error(costs: ExchangeCosts, one: Timed, chip: ChipSpec) -> float:
    """Return the relative error of a phase's modelled cycles."""
    phase = one.phase
    loads = phase_loads(phase.runs, phase.fills, chip.n_cores, phase.item_bytes, costs.rates(chip))
    return abs(costs.phase_cycles(chip, loads) / one.time.cycles - 1)


def _collective_error(costs: ExchangeCosts, one: Collective, chip: ChipSpec) -> float:
    """Return the relative error of the exchanges of a shift or a reduction."""
    simulated = sum(_time(each, chip, is_neighbour=one.is_neighbour).cycles for each in one.patterns)
    return abs(one.modelled(costs) / simulated - 1)


def _work_costs(phases: Sequence[Timed], chip: ChipSpec) -> ExchangeCosts:
    """Return what work inside cores costs: the least squares of relative errors over cores of all phases."""
    columns: list[Floats] = []
    cycles: list[Floats] = []
    none = ExchangeCosts(**dict.fromkeys((*FITTED, "waiting"), 0.0))
    known = none.rates(chip)
    random = np.random.default_rng(len(phases))
    for one in phases:
        work = one.time.inside_cycles
        given = _inside(one.phase, known, chip)
        chosen = np.argwhere(work - given > 1)
        if not len(chosen):
            continue
        chosen = chosen[random.permutation(len(chosen))[:CORES_OF_A_PHASE]]
        at = (chosen[:, 0], chosen[:, 1])
        zero = replace(known, copy_8=0)
        units = [_inside(one.phase, replace(zero, **{name: UNITS}), chip)[at] for name in FITTED]
        columns.append(np.stack(units, axis=1))
        cycles.append((work - given)[at])
    table, goal = np.concatenate(columns), np.concatenate(cycles)
    features = {name: table[:, n] for n, name in enumerate(FITTED)}
    # Whole cycles are rounded up: half a cycle, of which the coefficients must know nothing.
    found = fit(features | {"rounding": np.ones(len(goal))}, goal)
    return replace(none, **{name: round(found.get(name, 0.0), DIGITS) for name in FITTED})


def _inside(phase: RandomPhase, rates: MoveRates, chip: ChipSpec) -> Floats:
    """Return the cycles of work inside cores before and behind a phase, (cores, 2), at these rates."""
    loads = core_loads(phase.runs, phase.fills, chip.n_cores, phase.item_bytes, rates)
    return loads[:, [0, 3]] / UNITS


def _with_waiting(costs: ExchangeCosts, phases: Sequence[Timed], chip: ChipSpec) -> ExchangeCosts:
    """Return the costs with how much longer transfers take than the busiest port: least squares of relative errors."""
    port = np.array([one.time.bound_cycles for one in phases], np.float64)
    extra = np.array([one.time.transfer_cycles for one in phases]) - port
    cycles = np.array([one.time.cycles for one in phases], np.float64)
    weight, goal = port / cycles, extra / cycles
    return replace(costs, waiting=round(float((weight @ goal) / max(weight @ weight, 1e-30)), DIGITS))


def write_exchange_fit(
    path: Path | str, found: ExchangeFit, chip: ChipSpec, n_samples: int, seed: int
) -> None:
    """Write fitted coefficients as the cost model reads them, with the errors they had."""
    errors = {
        each.kind: {"n": each.n, "median": round(each.median, DIGITS), "p99": round(each.p99, DIGITS)}
        for each in found.errors
    }
    document = {
        "chip": chip.name,
        "seed": seed,
        "samples": n_samples,
        **asdict(found.costs),
        "errors": errors,
    }
    write_text(path, json.dumps(document, indent=1) + "\n")
