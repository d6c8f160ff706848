"""Ansor's choice of tiles: an evolutionary search, guided by a model that learns from the tilings it has measured.

It executes as Roller does and chooses from the same tilings; only how it looks for one differs. A measurement is the
modelled price, without noise, that Roller's ten best are given, and a search may take so many of them: `evaluations`.
Between rounds of measurements, trees are fitted to everything measured so far and the population evolves by what they
predict. The trees see shapes, bytes and counts, never the cost model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from t10.baselines.boosted_trees import BoostedTrees, logarithms
from t10.baselines.load_compute_store import Shared, Timed, timed
from t10.baselines.roller import fastest
from t10.baselines.space import Space, space_of, tiles_and_steps
from t10.baselines.traffic import Exchange
from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.cost import CostModel

EVALUATIONS = 64
ROUND = 16
"""Tilings that are measured before the model learns again; Ansor takes 64 of about 1,000."""
POPULATION = 2048
GENERATIONS = 4
MUTATIONS = 85
"""Of 100 children so many are mutated; the others mix two parents."""
BEST_MEASURED = 20
"""Of 100 of the first population so many are of the best tilings that were measured."""
AT_RANDOM = 20
"""One of so many measurements is of a tiling drawn at random, whatever the model predicts."""


@dataclass(frozen=True, slots=True)
class Ansor:
    """What the search may do: measurements per operator, and the seed of what it draws.

    Several cores may share a sum, as Ansor's factored reductions may.
    """

    evaluations: int = EVALUATIONS
    seed: int = 0
    exchange: Exchange = "multicast"
    splits_sums: bool = True

    def best_tile(self, shared: Shared, chip: ChipSpec, cost: CostModel, room_bytes: int) -> Timed:
        """Return the fastest tiling that was found; raises `InfeasiblePlanError` where none fits."""
        space = space_of(shared.spec, chip, room_bytes, splits_sums=self.splits_sums)

        def measure(point: int) -> Timed:
            tiling = space.tiling(*divmod(point, len(space.splits)))
            return timed(shared, tiling, chip, cost, self.exchange, is_exact=False)

        found = dict(searched(space, chip.n_cores, measure, self.evaluations, self.seed))
        return fastest(shared, found.values(), chip, cost, self.exchange)


def searched(
    space: Space, n_cores: int, measure: Callable[[int], Timed], evaluations: int, seed: int
) -> Iterator[tuple[int, Timed]]:
    """Yield the points that a search measures, in order, and what they take; never one twice.

    A point is the number of a box times the splits there are, and of a split. More evaluations go on where fewer end.
    """
    points = np.flatnonzero(space.is_allowed)
    random = np.random.default_rng(seed)
    measured: dict[int, Timed] = {}
    budget = min(evaluations, len(points))
    while len(measured) < budget:
        batch = _drawn(points, measured, random, ROUND)
        if measured:
            batch = _evolved(space, n_cores, measured, random, batch)
        for point in batch[: budget - len(measured)]:
            measured[point] = measure(point)
            yield point, measured[point]


def _drawn(points: Ints, measured: dict[int, Timed], random: np.random.Generator, count: int) -> list[int]:
    """Return points at random that were not measured."""
    rest = np.setdiff1d(points, np.fromiter(measured, np.int64, len(measured)))
    return [int(each) for each in random.permutation(rest)[:count]]


def _evolved(
    space: Space, n_cores: int, measured: dict[int, Timed], random: np.random.Generator, drawn: list[int]
) -> list[int]:
    """Return the points to measure next: those of a population that are predicted best, and some drawn at random."""
    known = np.fromiter(measured, np.int64, len(measured))
    cycles = np.array([each.cycles for each in measured.values()], np.int64)
    targets = logarithms(np.maximum(cycles, 1))
    model = BoostedTrees.fitted(_features(space, n_cores, known), targets)
    population = _first(space, known[np.argsort(cycles, kind="stable")], random)
    seen: dict[int, int] = {}
    for _ in range(GENERATIONS):
        scores = model.predicted(_features(space, n_cores, population))
        seen |= zip(population.tolist(), scores.tolist(), strict=True)
        population = _children(space, population, scores, random)
    new = sorted(seen.keys() - measured.keys(), key=lambda point: (seen[point], point))
    n_drawn = -(-ROUND // AT_RANDOM)
    return list(dict.fromkeys([*new[: ROUND - n_drawn], *drawn]))[:ROUND]


def _first(space: Space, best: Ints, random: np.random.Generator) -> Ints:
    """Return a population: some of the best measured points, the others drawn at random."""
    points = np.flatnonzero(space.is_allowed)
    n_best = POPULATION * BEST_MEASURED // 100
    drawn = points[random.integers(0, len(points), POPULATION - n_best)]
    return np.concatenate((np.resize(best[:ROUND], n_best), drawn))


def _children(space: Space, population: Ints, scores: Ints, random: np.random.Generator) -> Ints:
    """Return the next generation: of two points drawn, the better is a parent; what is not allowed dies at birth."""

    def parents() -> Ints:
        pairs = random.integers(0, len(population), (2, len(population)))
        return population[np.where(scores[pairs[0]] <= scores[pairs[1]], pairs[0], pairs[1])]

    one, other = parents(), parents()
    shape = (*space.counts, len(space.splits))
    genes: Ints = np.array(np.unravel_index(one, shape))
    others: Ints = np.array(np.unravel_index(other, shape))
    n_genes, n = len(shape), len(population)
    mixed = np.where(random.integers(0, 2, genes.shape) == 1, genes, others)
    gene = random.integers(0, n_genes, n)
    extent = np.array(shape, np.int64)[gene]
    step = np.where(random.integers(0, 2, n) == 1, 1, -1)
    moved = np.clip(genes[gene, np.arange(n)] + step, 0, extent - 1)
    mutated = genes.copy()
    mutated[gene, np.arange(n)] = np.where(random.integers(0, 2, n) == 1, moved, random.integers(0, extent))
    children = np.where(random.integers(0, 100, n) < MUTATIONS, mutated, mixed)
    born = np.ravel_multi_index(tuple(children), shape)
    return np.where(space.is_allowed.reshape(-1)[born], born, one)


def _features(space: Space, n_cores: int, points: Ints) -> Ints:
    """Return what the model sees of points (points, features)."""
    box, split = np.divmod(points, len(space.splits))
    boxes, splits = space.boxes[box], np.array(space.splits, np.int64)[split]
    tiles, steps = tiles_and_steps(space.spec, boxes)
    own_steps, waves = -(-steps // splits), -(-tiles * splits // n_cores)
    work, phases = boxes.prod(axis=1), waves * own_steps
    loaded, runs, stored, held = space.sizes[box].T
    counts = (splits, tiles, own_steps, waves, work, loaded, runs, stored, held)
    totals = (phases, phases * work, phases * loaded, phases * runs, waves * stored)
    return np.stack((*boxes.T, *counts, *totals), axis=1)


__all__ = ["EVALUATIONS", "Ansor", "searched"]
