"""The cut of a model into stages whose slowest takes least, found from bounds that become exact where they matter.

A stage takes what it receives, what it runs and what it sends, one after the other. What a stage runs is known once it
has been planned; before that it is bounded, by the fastest plans of its operators, and by what a planned stage takes
that is a part of it. The best cut under the bounds is planned, and so on until a cut is as good as the bounds say: the
stages of no other cut need to be planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from t10.core.arrays import Bools, Ints

NEVER = 1 << 60
"""Cycles of a stage that does not fit."""
SLACK = (0.25, 0.05)
"""By what parts of the bound the first cuts may be slower: those at which least passes are mostly alike."""
MOST_ROUNDS = 1000

Cut = tuple[int, ...]
"""Numbers of the places at which stages begin and end, the first and the last place included."""


@dataclass(slots=True)
class CutProblem:
    """Places 0 to n of a model, and up to `most` stages between them.

    `fastest` are the cycles of operators before a place under their fastest plans, `fits` (n + 1, n + 1) whether a
    stage from place i to j may fit, `hand_cycles` (most - 1, n + 1) bounds what the stage of a number hands over at a
    place, `crossing_bytes` are those at a place. `run_cycles` bounds what stages run; `is_exact` ones were planned.
    """

    fastest: Ints
    fits: Bools
    hand_cycles: Ints
    crossing_bytes: Ints
    most: int
    is_free: bool = False
    """Whether fewer stages are as welcome."""
    run_cycles: Ints = field(init=False)
    is_exact: Bools = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is planned yet."""
        self.run_cycles = np.where(self.fits, self.fastest[None, :] - self.fastest[:, None], NEVER)
        self.is_exact = np.zeros(self.run_cycles.shape, np.bool_)

    @property
    def n_places(self) -> int:
        """Return the number of the last place."""
        return len(self.run_cycles) - 1

    def stage_cycles(self, number: int) -> Ints:
        """Return what stage `number` takes from each place to each other, by bounds."""
        received = self.hand_cycles[number - 1] if number else np.zeros(self.n_places + 1, np.int64)
        sent = self.hand_cycles[number] if number < self.most - 1 else np.full(self.n_places + 1, NEVER)
        sent = sent.copy()
        sent[-1] = 0
        return np.minimum(self.run_cycles + received[:, None] + sent[None, :], NEVER)

    def bound(self) -> int:
        """Return what the slowest stage of any cut takes at least; `NEVER` where none fits."""
        reached = np.full(self.n_places + 1, NEVER)
        reached[0] = 0
        best = NEVER
        for number in range(self.most):
            slowest = np.maximum(reached[:, None], self.stage_cycles(number))
            reached = slowest.min(axis=0)
            if self.is_free or number == self.most - 1:
                best = min(best, int(reached[-1]))
        return best

    def cheapest(self, limit: int, *, counts_unknown: bool) -> Cut | None:
        """Return a cut of which no stage takes more than `limit`: the fewest to plan, then the least that passes."""
        price = self.crossing_bytes.astype(np.float64)[None, :] + 1.0
        if counts_unknown:
            price = price + (~self.is_exact) * (1.0 + price.max()) * (self.most + 1)
        price = np.broadcast_to(price, self.run_cycles.shape)
        reached = np.full(self.n_places + 1, np.inf)
        reached[0] = 0
        froms: list[Ints] = []
        ends: list[tuple[float, int]] = []
        for number in range(self.most):
            fits = self.stage_cycles(number) <= min(limit, NEVER - 1)
            sums = np.where(fits, reached[:, None] + price, np.inf)
            froms.append(sums.argmin(axis=0))
            reached = sums.min(axis=0)
            if self.is_free or number == self.most - 1:
                ends.append((float(reached[-1]), number))
        least, number = min(ends)
        if least == np.inf:
            return None
        cut = [self.n_places]
        for each in reversed(range(number + 1)):
            cut.append(int(froms[each][cut[-1]]))
        return tuple(reversed(cut))


@dataclass(frozen=True, slots=True)
class Found:
    """The best cut, what its slowest stage takes, and what no cut takes less than."""

    cut: Cut
    cycles: int
    bound_cycles: int


def best_cut(
    problem: CutProblem,
    plan: Callable[[int, int], int | None],
    slowest: Callable[[Cut], int],
    gap: float,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> Found | None:
    """Return the cut whose slowest stage takes least, None where none fits.

    `plan` returns what a stage runs once it is planned, None where it does not fit; `slowest` what the slowest stage of
    a cut of planned stages takes. It is looked for until what may be gained is the part `gap` at most.
    """
    best: Found | None = None
    bound = 0
    for number in range(MOST_ROUNDS):
        bound = problem.bound()
        if bound >= NEVER or (best is not None and best.cycles * (1 - gap) <= bound):
            break
        slack = SLACK[number] if number < len(SLACK) else 0.0
        limit = int(bound * (1 + slack))
        if best is not None:
            limit = min(limit, best.cycles - 1)
        cut = problem.cheapest(limit, counts_unknown=not slack)
        if cut is None:
            break
        new = [stage for stage in _stages(cut) if not problem.is_exact[stage]]
        for done, stage in enumerate(new):
            report(done, len(new))
            _learn(problem, stage, plan(*stage))
        if all(problem.run_cycles[stage] < NEVER for stage in _stages(cut)):
            cycles = slowest(cut)
            if best is None or cycles < best.cycles:
                best = Found(cut, cycles, 0)
        if not new and not slack:
            break
    return best and Found(best.cut, best.cycles, min(max(bound, 0), best.cycles))


def _stages(cut: Cut) -> Sequence[tuple[int, int]]:
    return tuple(pairwise(cut))


def _learn(problem: CutProblem, stage: tuple[int, int], cycles: int | None) -> None:
    """Replace a bound by what the stage takes: one that holds all of it takes that at least, and the rest besides."""
    first, end = stage
    problem.is_exact[first, end] = True
    around = problem.run_cycles[: first + 1, end:]
    if cycles is None:
        around[:] = NEVER
        return
    before = problem.fastest[first] - problem.fastest[: first + 1]
    behind = problem.fastest[end:] - problem.fastest[end]
    known = problem.is_exact[: first + 1, end:].copy()
    around[:] = np.where(known, around, np.maximum(around, cycles + before[:, None] + behind[None, :]))
    problem.run_cycles[first, end] = cycles
