"""Legal plans of an operator drawn at random, and better ones near them: what a user might pin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np

from t10.chip import ChipSpec
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.plan import CostedPlan
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.errors import InfeasiblePlanError
from t10.plan.options import PlanOptions
from t10.plan.search.alignment import align_pace
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import costed, room_bytes
from t10.plan.search.placement import place
from t10.plan.search.space import axis_factors, searched_partitions, unrotated_space
from t10.plan.search.temporal import TemporalSpace

FtRows = tuple[AxisSizes, ...]
Partition = tuple[AxisSizes, FtRows]

DRAWS = 40
MOST_CORES = 0.7
CLIMBS, MOST_CLIMB_STEPS, NEIGHBOUR_ROWS = 3, 12, 6


@dataclass(slots=True)
class RandomPins:
    """Draws plans of one operator on a chip; `above` has the bound and the price of those bounded too high."""

    spec: OperatorSpec
    chip: ChipSpec
    cost: CostModel
    rng: Random
    above: dict[Partition, tuple[int, int]] = field(default_factory=dict[Partition, tuple[int, int]])
    _found: dict[Partition, CostedPlan | None] = field(default_factory=dict[Partition, "CostedPlan | None"])

    def near_the_best(self, n: int, start: Sequence[CostedPlan]) -> list[CostedPlan]:
        """Return `n` random plans that fit a core, and better ones near them and near `start`, fastest first."""
        drawn = self.drawn(n)
        best = sorted(drawn, key=price)[:CLIMBS]
        climbed = [pin for one in (*start, *best) for pin in self._climbed(one)]
        known = {(pin.plan.f_op, pin.plan.ft): pin for pin in (*drawn, *climbed)}
        return sorted(known.values(), key=price)

    def drawn(self, n: int) -> list[CostedPlan]:
        """Return `n` random plans, fewer where few fit: half of any partition, half of those that use most cores."""
        spec = self.spec
        rows, _ = searched_partitions(spec, self.chip.n_cores, PlanOptions(exhaustive=True))
        n_used = rows.prod(axis=1)
        many = rows[n_used >= MOST_CORES * n_used.max()]
        space = TemporalSpace.of(spec)
        pins: dict[Partition, CostedPlan] = {}
        for number in range(DRAWS * n):
            if len(pins) == n:
                break
            of = (rows, many)[number % 2]
            f_op: AxisSizes = tuple(of[self.rng.randrange(len(of))].tolist())
            per_slot = [space.rows(slot, f_op, 0.0) for slot in range(len(spec.rotatable))]
            ft: FtRows = tuple(tuple(each[self.rng.randrange(len(each))].tolist()) for each in per_slot)
            pin = self.plan((f_op, ft))
            if pin is not None:
                pins[f_op, ft] = pin
        return list(pins.values())

    def plan(self, partition: Partition) -> CostedPlan | None:
        """Return a legal plan that fits with its exact price, None where there is none."""
        if partition not in self._found:
            self._found[partition] = self._made(*partition)
        return self._found[partition]

    def is_within_constraints(self, pin: CostedPlan) -> bool:
        """Return whether the F_op of a plan is among those that the search's constraints leave for its rotation."""
        rows, _ = searched_partitions(self.spec, self.chip.n_cores, PlanOptions())
        if all(set(row) == {1} for row in pin.plan.ft):
            further = unrotated_space(self.spec, self.chip.n_cores, PlanOptions())[1]
            rows = np.concatenate([rows, further])
        return bool((rows == np.array(pin.plan.f_op)).all(axis=1).any())

    def _made(self, f_op: AxisSizes, ft: FtRows) -> CostedPlan | None:
        try:
            plan = place(self.spec, f_op, ft, align_pace(self.spec, f_op, ft))
        except InfeasiblePlanError:
            return None
        if plan is None:
            return None
        rows = np.array([f_op], np.int64), np.array([ft], np.int64)
        priced = evaluate(self.spec, self.cost, *rows)
        bound = evaluate(self.spec, least_costs(self.cost), *rows)
        if bound.cycles[0] > priced.cycles[0]:
            self.above[f_op, ft] = int(bound.cycles[0]), int(priced.cycles[0])
        return costed(plan, priced, 0) if priced.active_bytes[0] <= room_bytes(self.chip) else None

    def _climbed(self, start: CostedPlan) -> Iterator[CostedPlan]:
        """Yield plans of falling price, each a neighbour of the one before."""
        at = start
        for _ in range(MOST_CLIMB_STEPS):
            near = [pin for each in self._neighbours(at) if (pin := self.plan(each)) is not None]
            best = min(near, key=price, default=at)
            if price(best) >= price(at):
                return
            at = best
            yield at

    def _neighbours(self, pin: CostedPlan) -> Iterator[Partition]:
        """Yield partitions that differ in the parts of one or two axes, or in the row of an operand."""
        spec, f_op, n_cores = self.spec, pin.plan.f_op, self.chip.n_cores
        single: FtRows = ((1,) * len(f_op),) * len(spec.rotatable)
        factors = [
            axis_factors(axis.extent, n_cores, 0.0) if axis.is_splittable else (1,) for axis in spec.axes
        ]
        for a, some in enumerate(factors):
            for n in _near(some, f_op[a], 2):
                one = (*f_op[:a], n, *f_op[a + 1 :])
                others = [
                    (*one[:b], m, *one[b + 1 :])
                    for b in range(a + 1, len(f_op))
                    for m in _near(factors[b], f_op[b], 1)
                ]
                yield from ((other, single) for other in (one, *others) if np.prod(other) <= n_cores)
                if np.prod(one) <= n_cores:
                    yield one, pin.plan.ft
        space = TemporalSpace.of(spec)
        for slot in range(len(spec.rotatable)):
            rows = space.rows(slot, f_op, 0.0)
            for row in self.rng.sample(range(len(rows)), min(NEIGHBOUR_ROWS, len(rows))):
                yield f_op, (*pin.plan.ft[:slot], tuple(rows[row].tolist()), *pin.plan.ft[slot + 1 :])


def price(plan: CostedPlan) -> tuple[int, Partition]:
    """Return what plans are sorted by."""
    return plan.cycles.total, (plan.plan.f_op, plan.plan.ft)


def _near(factors: tuple[int, ...], at: int, reach: int) -> tuple[int, ...]:
    """Return the factors a few places from one, smaller and larger."""
    place_of = next((i for i, factor in enumerate(factors) if factor >= at), len(factors) - 1)
    near = factors[max(place_of - reach, 0) : place_of + reach + 1]
    return tuple(factor for factor in near if factor != at)
