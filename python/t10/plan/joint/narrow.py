"""A problem without the states in which no choice can be better than the best one known, so that the rest is solved.

A state is left out where the bound of all choices that contain it says so. What is left has smaller tables: operators
that were too entangled to be eliminated exactly often no longer are.
Source: bound-based dead-end elimination (reduced-cost fixing).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from t10.core.arrays import Ints
from t10.plan.joint.relaxation import CALL_WORK, Relaxation
from t10.plan.joint.selection import Selection


@dataclass(frozen=True, slots=True)
class Narrowed:
    """A problem with fewer states; `rows` are its rows' numbers in the one it comes from.

    No choice with a state that was left out takes fewer than `bound_cycles`; `work` is what it took to find that, and
    `close` are choices, of such bounds, whose states stay.
    """

    selection: Selection
    rows: Ints
    bound_cycles: float
    work: int
    close: tuple[Ints, ...]

    def inside(self, rows: Ints) -> Ints:
        """Return a choice of the wider problem, none of whose states was left out, as one of this."""
        return np.searchsorted(self.rows, rows)


def narrowed(
    relaxation: Relaxation, selection: Selection, kept: Iterable[Ints], limit: float, idle: tuple[int, int]
) -> Narrowed:
    """Return a problem without the states in which every choice takes `limit` cycles or more.

    `relaxation` bounds the problem; states of the choices `kept` stay; in every choice weights at rest take from
    `idle[0]` to `idle[1]` bytes. All states of an operator that are not known to be needed are bounded together: each
    bound leaves them out, or names one that stays.
    """
    low, high = idle
    limits = relaxation.limits(low)
    root = relaxation.bound(limits, high)
    price, work = root.price, root.work
    is_open = np.ones(len(selection.rows.state), np.bool_)
    is_kept = np.zeros(int(selection.first_state[-1]), np.bool_)
    for rows in kept:
        is_kept[selection.rows.state[rows]] = True
    bound_cycles = np.inf
    close: list[Ints] = []
    for operator in range(selection.n_operators):
        own = np.array(selection.rows_of(operator))
        while not (is_kept_row := is_kept[selection.rows.state[own]]).all():
            tried = is_open.copy()
            tried[own[is_kept_row]] = False
            line = relaxation.best(limits, price, replace(relaxation.whole, is_open=tried))
            work += CALL_WORK if line is None else line.work
            least = np.inf if line is None else line.at(price) - price * high
            if line is None or least >= limit:
                is_open[own[~is_kept_row]] = False
                bound_cycles = min(bound_cycles, least)
                break
            is_kept[selection.rows.state[line.rows]] = True
            close.append(line.rows)
    return Narrowed(selection.restricted(is_open), np.nonzero(is_open)[0], bound_cycles, work, tuple(close))
