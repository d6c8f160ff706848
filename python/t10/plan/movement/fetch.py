"""What it costs to fetch an operand from anywhere: an estimate, for when the layouts around are not known yet."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import Operand
from t10.cost import CostModel


def contiguous_runs(operand: Operand, windows: Ints) -> Ints:
    """Return how many separate runs of the row-major tensor a partition consists of: an estimate of fragments."""
    runs = np.ones(len(windows), np.int64)
    whole = np.ones(len(windows), np.bool_)
    for dim, size in zip(reversed(operand.dims), reversed(operand.shape), strict=True):
        extent = np.ones(len(windows), np.int64)
        for term in dim.terms:
            extent = extent + term.coefficient * (windows[:, term.axis] - 1)
        runs = np.where(whole, runs, runs * extent)
        whole = whole & (extent >= size)
    return runs


def fetch_costs(cost: CostModel) -> tuple[int, float, int]:
    """Return the cycles of a small exchange from anywhere, of each further byte, and of each further fragment."""
    base = cost.exchange_cycles(4, 1, neighbour=False)
    per_byte = (cost.exchange_cycles(4 + (1 << 20), 1, neighbour=False) - base) / (1 << 20)
    return base, per_byte, cost.exchange_cycles(4, 2, neighbour=False) - base


def fetch_cycles(cost: CostModel, n_bytes: Ints, runs: Ints) -> Ints:
    """Return the estimated cycles in which every core fetches `n_bytes` in `runs` fragments from anywhere."""
    base, per_byte, per_run = fetch_costs(cost)
    cycles = base + np.ceil(n_bytes * per_byte).astype(np.int64) + (runs - 1) * per_run
    return np.where(n_bytes > 0, cycles, 0)
