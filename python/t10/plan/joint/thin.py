"""Fewer states of deep models: those with which choices take least, by a few eliminations of all of them.

Prices of operators alone do not say which states go together; tables of pairs do, but solving takes long with many
states. So a deep model begins with many. Bounds of all choices with a state are asked for with several numbers of bytes
at rest, and operators that are alike keep the states of the least bounds. Unlike those that `narrow` leaves out, states
that are left out here may be part of a better choice: what is said of all choices is said of those that stay.
Source: min-marginals of the Lagrangian relaxation.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from t10.core.arrays import Floats, Ints
from t10.core.plan import CostedPlan
from t10.plan.joint.loosen import relaxation_of
from t10.plan.joint.relaxation import Relaxation
from t10.plan.joint.selection import Selection

MOST_STATES = 16
"""States of an operator that stay, besides those that are kept in any case."""
PARTS_AT_REST = (0.7, 0.85, 1.0)
"""Of the bytes that weights may take at rest at most, for which bounds are asked."""
FURTHER_PARTS = (0.5, 0.25, 0.0)
"""What is asked for where nothing fits with those."""
ASKING_THREADS = 2
"""Bounds that are asked for at a time: each takes some hundred MB for the largest models."""

States = tuple[CostedPlan, ...]


def thinned(states: Sequence[States], selection: Selection, kept: Sequence[Ints]) -> tuple[States, ...]:
    """Return fewer states per operator; one tuple for operators that share one.

    `selection` is the problem of all `states`. Those of the choices `kept` stay. All stay where nothing fits.
    """
    excess = _excess(selection)
    if excess is None:
        return tuple(states)
    ranks: dict[int, Floats] = {}
    staying: dict[int, set[int]] = {}
    starts = [selection.states_of(rows).tolist() for rows in kept]
    for step, own in enumerate(states):
        here = excess[selection.first_state[step] : selection.first_state[step + 1]]
        ranks[id(own)] = np.minimum(ranks.get(id(own), here), here)
        staying.setdefault(id(own), set()).update(start[step] for start in starts)
    found: dict[int, States] = {}
    for own in states:
        best = np.argsort(ranks[id(own)], kind="stable")[:MOST_STATES].tolist()
        found[id(own)] = found.get(id(own)) or tuple(own[n] for n in sorted({*best, *staying[id(own)]}))
    return tuple(found[id(own)] for own in states)


def _excess(selection: Selection) -> Floats | None:
    """Return by how much the bound of choices with a state is above that of all choices, None where nothing fits."""
    relaxation = relaxation_of(selection)
    most = relaxation.most_idle_bytes()
    for parts in (PARTS_AT_REST, *((part,) for part in FURTHER_PARTS)):
        idle_bytes = [int(part * most) for part in parts if most >= 0]
        with ThreadPoolExecutor(ASKING_THREADS) as pool:
            asked = [pool.submit(_excess_at, relaxation, selection, each) for each in idle_bytes]
        fitting = [excess for each in asked if (excess := each.result()) is not None]
        if fitting:
            return np.minimum.reduce(fitting)
    return None


def _excess_at(relaxation: Relaxation, selection: Selection, idle_bytes: int) -> Floats | None:
    limits = relaxation.limits(idle_bytes)
    root = relaxation.bound(limits, idle_bytes)
    if not np.isfinite(root.cycles):
        return None
    least, _ = relaxation.least_by_row(limits, root.price)
    by_state: Floats = np.minimum.reduceat(least, selection.first_row[:-1])
    return by_state - by_state.min()
