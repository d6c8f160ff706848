"""Fetches of a planned model: its operators as steps of a run, and the run as part of its plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from t10.chip import ChipSpec
from t10.core.dtypes import size_bytes
from t10.core.graph import TensorValue
from t10.core.off_chip import OffChip
from t10.core.own_weights import own_weights
from t10.core.schedule import PHASES, Fetch, ModulePlan
from t10.plan.memory.allocation import aligned_size, live_bytes
from t10.plan.memory.buffers import requests_of
from t10.plan.prefetch.run import Run, Step, waits_of

IDLE = "idle:"


def fetched_bytes(weights: Sequence[TensorValue]) -> int:
    """Return the bytes that off-chip memory passes for some weights."""
    return sum(prod(weight.shape) * size_bytes(weight.dtype) for weight in weights)


def steps_of(plan: ModulePlan, chip: ChipSpec, memory: OffChip) -> tuple[Step, ...]:
    """Return the operators of a model, planned without fetches, as steps of a run with off-chip memory."""
    own = own_weights(plan.graph)
    names = {weight.name for weights in own.values() for weight in weights}
    every = tuple(
        Fetch(spec.name, step) for step, spec in enumerate(plan.graph.operators) if spec.name in own
    )
    requests = requests_of(replace(plan, fetches=every), chip)
    rest = {
        r.name.removeprefix(IDLE): aligned_size(r.size_bytes) for r in requests if r.name.startswith(IDLE)
    }
    used = _most(live_bytes(requests), len(plan.operators))
    held = _most(
        live_bytes([r for r in requests if r.name.removeprefix(IDLE) not in names]), len(plan.operators)
    )
    steps: list[Step] = []
    for number, scheduled in enumerate(plan.operators):
        weights = [weight for weight in own.get(scheduled.name, ()) if weight.name in rest]
        steps.append(
            Step(
                replace(scheduled.active.cycles, wait=0).total,
                used[number],
                held[number],
                sum(rest[weight.name] for weight in weights),
                memory.cycles(fetched_bytes(weights)) if weights else 0,
            )
        )
    return tuple(steps)


def _most(alive: np.ndarray[tuple[int], np.dtype[np.int64]], n_steps: int) -> list[int]:
    """Return the most bytes alive in any phase of each step."""
    padded = np.zeros(n_steps * len(PHASES), np.int64)
    padded[: len(alive)] = alive[: len(padded)]
    return padded.reshape(n_steps, len(PHASES)).max(axis=1).tolist()


def with_run(plan: ModulePlan, found: Run) -> ModulePlan:
    """Return a plan with the fetches of a run, whose operators wait for them; its buffers have no places."""
    fetches = tuple(
        Fetch(scheduled.name, first)
        for scheduled, first in zip(plan.operators, found.first, strict=True)
        if first >= 0
    )
    return _waiting(replace(plan, fetches=fetches), found.waits)


def with_waits(plan: ModulePlan, chip: ChipSpec) -> ModulePlan:
    """Return a plan whose operators wait for the fetches it has, as long as all else takes what it takes."""
    memory = chip.off_chip
    if memory is None or not plan.fetches:
        return plan
    own: Mapping[str, tuple[TensorValue, ...]] = own_weights(plan.graph)
    number = {scheduled.name: n for n, scheduled in enumerate(plan.operators)}
    cycles = [replace(scheduled.active.cycles, wait=0).total for scheduled in plan.operators]
    fetches = [
        (number[fetch.operator], fetch.first, memory.cycles(fetched_bytes(own.get(fetch.operator, ()))))
        for fetch in plan.fetches
    ]
    return _waiting(plan, waits_of(cycles, fetches, memory.latency_cycles))


def _waiting(plan: ModulePlan, waits: Sequence[int]) -> ModulePlan:
    operators = tuple(
        replace(
            scheduled,
            active=replace(scheduled.active, cycles=replace(scheduled.active.cycles, wait=wait)),
        )
        for scheduled, wait in zip(plan.operators, waits, strict=True)
    )
    return replace(plan, operators=operators)
