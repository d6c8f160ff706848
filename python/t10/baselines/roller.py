"""Roller's choice of tiles: aligned lengths, ranked by predicted time, the best of them by their price.

Roller grows tiles along the axes that are reused most and stops at the first that fill the core. Here all aligned tiles
that fit are ranked, which leaves out none that it would find; like Roller with measurements, the ten best are priced.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from t10.baselines.load_compute_store import Shared, Timed, timed
from t10.baselines.space import Space, space_of, tiles_and_steps
from t10.baselines.tiles import Tiling
from t10.baselines.traffic import Exchange
from t10.chip import ChipSpec
from t10.cost import CostModel
from t10.cost.model import least_costs

BEST = 10
EXACT = 2
"""Tilings that are priced phase by phase, and of these exactly."""
REMEMBERED = 1 << 12


@dataclass(frozen=True, slots=True)
class Roller:
    """What the system may do: how it exchanges, and whether cores may share a sum."""

    exchange: Exchange = "multicast"
    splits_sums: bool = False

    def best_tile(self, shared: Shared, chip: ChipSpec, cost: CostModel, room_bytes: int) -> Timed:
        """Return the fastest tiling within `room_bytes` of a core; raises `InfeasiblePlanError` where none fits."""
        space = space_of(shared.spec, chip, room_bytes, splits_sums=self.splits_sums)
        ranked = _ranked(space, chip, cost)[:BEST]
        found = [timed(shared, each, chip, cost, self.exchange, is_exact=False) for each in ranked]
        return fastest(shared, found, chip, cost, self.exchange)


def fastest(
    shared: Shared, estimated: Iterable[Timed], chip: ChipSpec, cost: CostModel, exchange: Exchange
) -> Timed:
    """Return, of the tilings with the best estimates, the one that is fastest by its exact price."""
    best = sorted(estimated, key=order)[:EXACT]
    key = shared.key()
    asked = (Asked(key, each.tiling, exchange, chip.n_cores, id(cost), shared, chip, cost) for each in best)
    return min(map(priced_exactly, asked), key=order)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for an exact price; whoever asks, equal operators have one answer.

    It depends on how many cores there are and on the costs, not on how much memory. `cost` is kept, so its id is.
    """

    key: Hashable
    tiling: Tiling
    exchange: Exchange
    n_cores: int
    cost_id: int
    shared: Shared = field(compare=False)
    chip: ChipSpec = field(compare=False)
    cost: CostModel = field(compare=False)


@lru_cache(maxsize=REMEMBERED)
def priced_exactly(asked: Asked) -> Timed:
    """Return an exact price: systems that choose the same tiling have it counted once."""
    return timed(asked.shared, asked.tiling, asked.chip, asked.cost, asked.exchange)


def order(timed: Timed) -> tuple[int, tuple[int, ...], int]:
    """Return by what tilings are sorted: cycles, then something that tells them apart."""
    return timed.cycles, timed.tiling.lengths, timed.tiling.splits


def _ranked(space: Space, chip: ChipSpec, cost: CostModel) -> list[Tiling]:
    """Return the tilings that are best predicted, of every number of splits some, best first."""
    rows = np.flatnonzero(space.is_allowed.any(axis=1))
    own, boxes = space.sizes[rows], space.boxes[rows]
    tiles, steps = tiles_and_steps(space.spec, boxes)
    compute = least_costs(cost).sub_task_cycles_many(space.spec, boxes)
    n_bytes, n_cycles = chip.exchange_rate
    load = cost.exchange_cycles(4, 1, neighbour=False) + own[:, 0] * n_cycles // n_bytes + 2 * own[:, 1]
    store = cost.exchange_cycles(4, 1, neighbour=False) + own[:, 2] * n_cycles // n_bytes
    found: list[tuple[int, tuple[int, ...], int]] = []
    for number, splits in enumerate(space.splits):
        waves = -(-tiles * splits // chip.n_cores)
        reduce = 0 if splits == 1 else (own[:, 2] * (splits - 1) // splits) * n_cycles // n_bytes + 600
        total = waves * (-(-steps // splits) * (compute + load) + store + reduce)
        ranked = np.flatnonzero(space.is_allowed[rows, number])
        ranked = ranked[np.argsort(total[ranked], kind="stable")][:BEST]
        found += [(int(total[i]), tuple(boxes[i].tolist()), splits) for i in ranked.tolist()]
    return [Tiling(lengths, splits) for _, lengths, splits in sorted(found)]


__all__ = ["BEST", "Roller", "fastest"]
