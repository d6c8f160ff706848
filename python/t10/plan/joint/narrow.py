"""A problem without the rows in which no choice can be better than the best one known, so that the rest is solved.

A row is left out where the bound of all choices that contain it says so; one elimination, to and fro, gives those of
all rows. What is left has smaller tables: operators that were too entangled to be eliminated exactly often no longer
are.
Source: reduced-cost fixing by min-marginals of the Lagrangian relaxation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.core.arrays import Ints
from t10.plan.joint.relaxation import Relaxation
from t10.plan.joint.selection import Selection

ROUNDED = 1e-3
"""Cycles by which a bound must be above what is wanted at least: sums are rounded."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A problem with fewer rows; `rows` are their numbers in the one it comes from.

    No choice with a row that was left out takes fewer than `bound_cycles`; `work` is what it took to find that.
    """

    selection: Selection
    rows: Ints
    bound_cycles: float
    work: int

    def inside(self, rows: Ints) -> Ints:
        """Return a choice of the wider problem, none of whose rows was left out, as one of this."""
        return np.searchsorted(self.rows, rows)


def narrowed(
    relaxation: Relaxation, selection: Selection, kept: Ints, limit: float, idle: tuple[int, int]
) -> Narrowed:
    """Return a problem without the rows with which every choice takes `limit` cycles or more.

    `relaxation` bounds the problem; the rows of the choice `kept` stay; in every choice weights at rest take from
    `idle[0]` to `idle[1]` bytes.
    """
    low, high = idle
    limits = relaxation.limits(low)
    root = relaxation.bound(limits, high)
    least, work = relaxation.least_by_row(limits, root.price)
    least -= root.price * high + ROUNDED
    is_out = least >= limit
    is_out[kept] = False
    bound_cycles = float(least[is_out].min(initial=np.inf))
    rows = np.nonzero(~is_out)[0]
    return Narrowed(selection.restricted(~is_out), rows, bound_cycles, root.work + work)
