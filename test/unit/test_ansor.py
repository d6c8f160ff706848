"""Ansor's search: same tilings and prices as Roller, what it learns helps, and the same seed finds the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log2
from typing import Any

import numpy as np
import pytest
from support.specs import matmul, one_operator_graph

from t10.baselines import roller
from t10.baselines.ansor import ROUND, Ansor, searched
from t10.baselines.boosted_trees import ONE, BoostedTrees, Leaf, logarithms
from t10.baselines.load_compute_store import Shared, Timed, tile_bytes, timed
from t10.baselines.roller import EXACT, Roller
from t10.baselines.space import Space, space_of
from t10.baselines.vgm import plan_vgm
from t10.chip import load_chip
from t10.core.expression import OperatorSpec
from t10.cost.registry import cost_model, given
from t10.errors import InfeasiblePlanError

CHIP = load_chip("test-16")
PRICES = cost_model(given("t10-paper"), CHIP)
ROOM_BYTES = 60_000
SHAPES = ((24, 1000, 32), (8, 128, 256))
SEEDS = range(4)


@dataclass(frozen=True, slots=True)
class Whole:
    """An operator with every tiling of its space measured."""

    shared: Shared
    space: Space
    estimates: dict[int, Timed]

    @property
    def best(self) -> int:
        """Return the cycles of the best measurement."""
        return min(each.cycles for each in self.estimates.values())

    def best_after(self, evaluations: int, seed: int) -> int:
        """Return the cycles of the best that a search measures."""
        found = searched(self.space, CHIP.n_cores, self.estimates.__getitem__, evaluations, seed)
        return min(each.cycles for _, each in found)


def _price(shared: Shared, space: Space, *, is_exact: bool) -> Callable[[int], Timed]:
    def priced(point: int) -> Timed:
        tiling = space.tiling(*divmod(point, len(space.splits)))
        return timed(shared, tiling, CHIP, PRICES, "multicast", is_exact=is_exact)

    return priced


def _space(spec: OperatorSpec) -> tuple[Shared, Space]:
    shared = Shared.of(one_operator_graph(spec), spec, CHIP.n_cores)
    return shared, space_of(spec, CHIP, ROOM_BYTES, splits_sums=True)


@pytest.fixture(scope="module", params=SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def whole(request: pytest.FixtureRequest) -> Whole:
    shared, space = _space(matmul(*request.param))
    measure = _price(shared, space, is_exact=False)
    points = np.flatnonzero(space.is_allowed).tolist()
    assert len(points) > 3 * ROUND * len(SEEDS)
    return Whole(shared, space, {point: measure(point) for point in points})


def test_no_search_beats_the_whole_space_and_longer_ones_come_closer(whole: Whole) -> None:
    found = np.array([[whole.best_after(n, seed) for n in (16, 32, 48, 64, 96)] for seed in SEEDS])
    assert (found >= whole.best).all()
    assert (np.diff(found, axis=1) <= 0).all()
    gaps = np.log2(found / whole.best).mean(axis=0)
    assert gaps[0] > 2 * gaps[3], "64 evaluations halve the gap of 16 at least"
    assert gaps[3] < log2(1.1)


def test_what_is_learned_finds_more_than_as_many_tilings_at_random(whole: Whole) -> None:
    points = np.array(list(whole.estimates))
    learned = random = 0.0
    for seed in SEEDS:
        drawn = np.random.default_rng(seed + 100).permutation(points)[:64].tolist()
        learned += log2(whole.best_after(64, seed) / whole.best)
        random += log2(min(whole.estimates[point].cycles for point in drawn) / whole.best)
    assert learned < random / 2


def test_a_price_is_never_below_the_best_of_the_space() -> None:
    """The two best measurements are priced exactly: the better is the best of the space, or dearer."""
    shared, space = _space(matmul(8, 32, 64))
    points = np.flatnonzero(space.is_allowed).tolist()
    exact, measure = (_price(shared, space, is_exact=each) for each in (True, False))
    least = min(exact(point).cycles for point in points)
    for evaluations in (1, 32, len(points)):
        assert Ansor(evaluations).best_tile(shared, CHIP, PRICES, ROOM_BYTES).cycles >= least
    found = Ansor(len(points)).best_tile(shared, CHIP, PRICES, ROOM_BYTES).tiling
    cycles = {point: measure(point).cycles for point in points}
    best = sorted(cycles.values())[EXACT - 1]
    assert found in [
        space.tiling(*divmod(point, len(space.splits))) for point in points if cycles[point] <= best
    ]


def test_systems_that_choose_the_same_tiling_have_it_priced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = one_operator_graph(matmul(8, 32, 48))
    asked: list[object] = []

    def counted(*given: Any, **kinds: Any) -> Timed:
        asked.extend([] if kinds else [given[1:]])
        return timed(*given, **kinds)

    monkeypatch.setattr(roller, "timed", counted)
    roller.priced_exactly.cache_clear()
    renamed = one_operator_graph(replace(matmul(8, 32, 48), name="another"))
    first = plan_vgm(graph, CHIP, PRICES, Roller(splits_sums=True)).cycles
    once = len(asked)
    assert once == EXACT
    assert plan_vgm(renamed, CHIP, PRICES, Roller(splits_sums=True)).cycles == first
    assert len(asked) == once
    plan_vgm(graph, CHIP, PRICES, Ansor(10**6))
    assert len(asked) == len(set(asked)) <= once + EXACT
    n_asked = len(asked)
    plan_vgm(
        graph, CHIP.model_copy(update={"sram_bytes": 2 * CHIP.sram_bytes}), PRICES, Roller(splits_sums=True)
    )
    assert len(asked) == n_asked
    plan_vgm(graph, CHIP, PRICES, Roller("unicast", splits_sums=True))
    assert len(asked) == n_asked + EXACT


def test_as_many_evaluations_as_tilings_measure_each_once(whole: Whole) -> None:
    order = [point for point, _ in searched(whole.space, 16, whole.estimates.__getitem__, 10**6, seed=3)]
    assert sorted(order) == sorted(whole.estimates)
    assert len(set(order)) == len(order)


def test_a_longer_search_goes_on_where_a_shorter_one_ends_and_seeds_differ(whole: Whole) -> None:
    def order(evaluations: int, seed: int) -> list[int]:
        return [p for p, _ in searched(whole.space, 16, whole.estimates.__getitem__, evaluations, seed)]

    assert order(20, 0) == order(50, 0)[:20]
    assert order(50, 0) == order(50, 0)
    assert set(order(50, 0)) != set(order(50, 1))


def test_tilings_of_a_space_fit_and_share_a_sum_among_the_cores_there_are() -> None:
    spec = matmul(8, 16, 512)
    room = 4096
    space = space_of(spec, CHIP, room, splits_sums=True)
    for box, split in np.argwhere(space.is_allowed).tolist():
        tiling = space.tiling(box, split)
        assert tile_bytes(spec, tiling) <= room
        if tiling.splits > 1:
            assert tiling.n_tiles(spec) * tiling.splits <= CHIP.n_cores
            assert tiling.splits <= tiling.n_steps(spec)
    assert space.is_allowed[:, space.splits.index(8)].any()
    assert space_of(spec, CHIP, room, splits_sums=False).splits == (1,)


def test_an_operator_without_room_is_refused_as_for_roller() -> None:
    with pytest.raises(InfeasiblePlanError, match="no aligned tile fits"):
        plan_vgm(one_operator_graph(matmul(4096, 4096, 4096)), CHIP, PRICES, Ansor(4))


def test_trees_learn_a_product_of_features_in_whole_numbers() -> None:
    random = np.random.default_rng(0)
    rows = random.integers(1, 100, (200, 4))
    targets = logarithms(rows[:, 0] * rows[:, 2])
    model = BoostedTrees.fitted(rows[:150], targets[:150])
    off = np.abs(model.predicted(rows[150:]) - targets[150:]).mean()
    assert off < np.abs(targets[150:] - targets[:150].mean()).mean() / 4
    mirrored = BoostedTrees.fitted(rows[:150][::-1].copy(), targets[:150][::-1].copy())
    assert mirrored.predicted(rows).tolist() == model.predicted(rows).tolist()


def test_rows_that_nothing_tells_apart_make_leaves() -> None:
    model = BoostedTrees.fitted(np.ones((5, 2), np.int64), np.array([10, 20, 30, 40, 50]))
    assert all(isinstance(tree, Leaf) for tree in model.trees)
    assert model.predicted(np.array([[7, 7]])).tolist() == [30]


def test_logarithms_of_powers_of_two_are_exact_and_grow() -> None:
    values = np.arange(1, 5000)
    found = logarithms(values)
    assert (np.diff(found) > 0).all()
    assert found[[0, 1, 3, 1023]].tolist() == [0, ONE, 2 * ONE, 10 * ONE]
    assert np.abs(found / ONE - np.log2(values)).max() < 0.09
    assert logarithms(np.array([1 << 40])).tolist() == [40 * ONE]
