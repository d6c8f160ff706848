"""Plans that do not rotate, beside those of a search: one per F_op, so more F_op can be looked at.

The constraints on parallelism and padding keep the space of rotating plans small. A short axis has hardly any number of
parts within them, and of a small operator fewer, fuller cores may be faster (see `unrotated_space`).
"""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.expression import OperatorSpec
from t10.cost import CostModel
from t10.cost.model import least_costs
from t10.plan.search.evaluate import evaluate
from t10.plan.search.listed import Found, FtRows
from t10.plan.search.pareto import fastest, front_indices


def no_rotation(spec: OperatorSpec, n: int) -> Ints:
    """Return the temporal factors of n plans that do not rotate."""
    return np.ones((n, len(spec.rotatable), len(spec.axes)), np.int64)


def with_unrotated(
    spec: OperatorSpec, cost: CostModel, rows: Ints, found: list[Found], most_bytes: int
) -> tuple[list[Found], int]:
    """Return the front of plans found and of those under F_op `rows` that do not rotate, and how many were priced.

    Both have the least bytes first; of `rows` those of at most `most_bytes` count.
    """
    bounds = evaluate(spec, least_costs(cost), rows, no_rotation(spec, len(rows)))
    known, known_bytes = (np.array([plan[i] for plan in found], np.int64) for i in (1, 2))
    kept = bounds.active_bytes <= most_bytes
    kept &= ~_is_beaten(bounds.cycles, bounds.active_bytes, known, known_bytes)
    rows, n_found = rows[kept], len(found)
    ft: FtRows = ((1,) * len(spec.axes),) * len(spec.rotatable)
    partitions = [*(partition for partition, _, _ in found), *((tuple(row), ft) for row in rows.tolist())]
    # Of equal plans the first in this order is kept.
    order = np.array(sorted(range(len(partitions)), key=partitions.__getitem__), np.int64)
    cycles = np.concatenate([known, bounds.cycles[kept]])[order]
    n_bytes = np.concatenate([known_bytes, bounds.active_bytes[kept]])[order]
    n_priced = 0

    def price(numbers: Ints) -> Ints:
        nonlocal n_priced
        prices, here = cycles[numbers], order[numbers] - n_found
        new = here >= 0
        n_priced += int(new.sum())
        if new.any():
            of = rows[here[new]]
            prices[new] = evaluate(spec, cost, of, no_rotation(spec, len(of))).cycles
        return prices

    if least_costs(cost) is cost:
        front = front_indices(cycles, n_bytes)
        prices, n_priced = cycles[front], len(rows)
    else:
        front, prices = (each[::-1] for each in fastest(cycles, n_bytes, price, len(order)))
    numbers: list[int] = order[front].tolist()
    sizes: list[int] = n_bytes[front].tolist()
    return list(zip((partitions[i] for i in numbers), prices.tolist(), sizes, strict=True)), n_priced


def _is_beaten(least: Ints, n_bytes: Ints, known: Ints, known_bytes: Ints) -> Bools:
    """Return which plans take at least as many cycles as one that is known and more bytes, or more cycles and no fewer.

    Those known are a front, least bytes first.
    """
    if not len(known):
        return np.zeros(len(least), np.bool_)
    # The fastest of those known that take no more bytes.
    last = np.searchsorted(known_bytes, n_bytes, side="right") - 1
    cycles, sizes = known[last], known_bytes[last]
    return (last >= 0) & (cycles <= least) & ((cycles < least) | (sizes < n_bytes))
