"""Idle levels of one operator: layouts of its weights between uses, their bytes and set-up cycles.

Level 0 is `linear`: spread evenly over all cores. Level j >= 1 keeps them in the layout of the active plan, every
replica with 1/j of its partition; j = 1 means idle equals active, nothing is set up. Source: T10 §4.3.2,
compute-shift model R9.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

import numpy as np

from t10.core import geometry
from t10.core.arrays import Bools, Ints
from t10.core.chunks import chunk_slots, window_chunk
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.movement import operand_of
from t10.core.plan import CostedPlan, OperatorPlan
from t10.cost import CostModel
from t10.cost.operator import home_cycles
from t10.plan.memory.allocation import aligned_size
from t10.plan.movement.fetch import contiguous_runs, fetch_cycles

MOST_LEVELS = 8
REMEMBERED = 1 << 14
SPREAD_BYTES = 64
"""A value that is spread over cores leaves so many bytes on each of them at least: fewer arrive in too many runs."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What an operator does: number of its plan on the front, and its weights' idle level."""

    plan: int
    level: int


@dataclass(frozen=True, slots=True)
class LevelTable:
    """Rows of (plan of the front, idle level): cycles with and without set-up, idle bytes, bytes while active."""

    plan: Ints
    level: Ints
    cycles: Ints
    run_cycles: Ints
    idle_bytes: Ints
    need_bytes: Ints

    @property
    def is_thin(self) -> Bools:
        """Return which rows keep the least of the weights at rest: spread out, unless a level is pinned."""
        return self.level == self.level.min()

    @property
    def has_levels(self) -> bool:
        """Return whether there is anything but linear idle layouts."""
        return bool(self.level.max(initial=0))


def windows_of(spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[int, ...]:
    """Return the window lengths that operand `number` follows: its own, or the output's for epilogue inputs."""
    return geometry.window_lengths(plan, min(number, len(spec.inputs)))


def operand_slots(spec: OperatorSpec, plan: OperatorPlan, number: int) -> int:
    """Return how many elements of operand `number` a core holds under a plan."""
    return prod(geometry.partition_shape(operand_of(spec, number), windows_of(spec, plan, number)))


def replica_count(spec: OperatorSpec, plan: OperatorPlan, number: int) -> int:
    """Return how many cores hold each window of operand `number`; 1 where that differs between windows."""
    return _replica_count(operand_of(spec, number), plan, min(number, len(spec.inputs)))


@lru_cache(maxsize=REMEMBERED)
def _replica_count(operand: Operand, plan: OperatorPlan, slot: int) -> int:
    if all(plan.ft[slot][axis] == 1 for axis in operand.axes):
        return geometry.n_sharers(operand, plan)
    ranks = geometry.replica_ranks(operand, plan, slot)
    counts = np.bincount(ranks)
    return len(counts) if (counts == counts[0]).all() else 1


def spread_cores(n_elements: int, dtype: str, n_cores: int) -> int:
    """Return over how many of the cores a value is spread evenly: each of them has some of it."""
    most = min(n_cores, max(n_elements * size_bytes(dtype) // SPREAD_BYTES, 1))
    return max(-(-n_elements // chunk_slots(n_elements, most)), 1)


def spread_bytes(n_elements: int, dtype: str, n_cores: int) -> int:
    """Return the bytes that a core holds of a value that is spread evenly."""
    n_slots = chunk_slots(n_elements, spread_cores(n_elements, dtype, n_cores))
    return aligned_size(n_slots * size_bytes(dtype))


def scatter_at(level: int, n_replicas: int) -> int:
    """Return over how many replicas a weight is divided at an idle level."""
    return gcd(level, n_replicas)


def level_table(
    spec: OperatorSpec,
    front: tuple[CostedPlan, ...],
    owned: tuple[int, ...],
    n_cores: int,
    cost: CostModel,
    pinned: int | None = None,
) -> LevelTable:
    """Return every (plan, level) of an operator; `owned` are the operands that are weights it alone reads.

    With a `pinned` level there is no other, unless it has no such weights.
    """
    rows: list[tuple[int, int, int, int, int, int]] = []
    weights = [n for n, operand in enumerate(spec.operands) if operand.role == "weight"]
    for index, priced in enumerate(front):
        plan = priced.plan
        slots = {n: operand_slots(spec, plan, n) for n in weights}
        replicas = {n: replica_count(spec, plan, n) for n in owned}
        run = priced.cycles.total
        levels = (0, *_levels(replicas, slots)) if pinned is None or not owned else (pinned,)
        for level in levels:
            idle = need = setup = 0
            need = priced.active_bytes
            home: list[int] = []
            for n in weights:
                operand = operand_of(spec, n)
                size = size_bytes(operand.dtype)
                if n not in owned:
                    setup += _fetch(cost, operand, plan, windows_of(spec, plan, n), slots[n])
                    continue
                if level == 0:
                    idle += spread_bytes(prod(operand.shape), operand.dtype, n_cores)
                    setup += _fetch(cost, operand, plan, windows_of(spec, plan, n), slots[n])
                    continue
                scatter = scatter_at(level, replicas[n])
                kept = window_chunk(slots[n], scatter)
                idle += aligned_size(kept * size)
                if scatter == 1:
                    need -= aligned_size(slots[n] * size)
                    home += [n] if n < len(spec.inputs) else []
                else:
                    setup += cost.exchange_cycles((slots[n] - kept) * size, scatter - 1, neighbour=False)
            extra = home_cycles(cost, spec, plan, tuple(home)) if home else 0
            rows.append((index, level, run + extra + setup, run + extra, idle, need))
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return LevelTable(*(np.ascontiguousarray(column) for column in columns))


def _levels(replicas: dict[int, int], slots: dict[int, int]) -> list[int]:
    """Return the idle levels j worth considering: divisors of the largest weight's replicas, largest j first."""
    if not replicas:
        return []
    main = max(replicas, key=lambda n: (slots[n], -n))
    divisors = [d for d in range(replicas[main], 0, -1) if replicas[main] % d == 0]
    if len(divisors) <= MOST_LEVELS:
        return divisors
    keep = np.unique(np.linspace(0, len(divisors) - 1, MOST_LEVELS).astype(np.int64))
    return [divisors[i] for i in keep.tolist()]


def _fetch(
    cost: CostModel, operand: Operand, plan: OperatorPlan, windows: tuple[int, ...], n_elements: int
) -> int:
    """Return the estimated cycles of bringing a whole partition from anywhere."""
    lengths = np.array([windows], np.int64)
    n_bytes = np.array([n_elements * size_bytes(operand.dtype)], np.int64)
    return int(fetch_cycles(cost, n_bytes, contiguous_runs(operand, lengths))[0])
