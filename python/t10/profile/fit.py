"""Linear models without negative coefficients, fitted so that relative errors are small."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t10.core.arrays import Floats

SIGNIFICANT = 4e-3
"""A feature that never explains more than this part of any sample's cycles is left out."""
ROUNDS = 5
MOST_FACTOR = 100.0
"""Weights count errors up to so many times."""


def fit(features: Mapping[str, Floats], cycles: Floats) -> dict[str, float]:
    """Return coefficients by feature that make relative errors least; those of no weight are left out.

    What counts is (modelled - cycles) / sqrt(modelled * cycles), modelled as of the round before: squares of plain
    relative errors would rather have everything too cheap, and a search goes where it is cheap.
    """
    found = _solved(features, cycles)
    kept = {
        name: column
        for name, column in features.items()
        if found[name] * float((column / cycles).max()) > SIGNIFICANT
    }
    found = _solved(kept, cycles) if kept else {}
    return {name: value for name, value in found.items() if value > 0}


def _solved(features: Mapping[str, Floats], cycles: Floats) -> dict[str, float]:
    """Return a coefficient for every feature."""
    names = list(features)
    columns = np.stack([np.asarray(features[name], np.float64) for name in names], axis=1)
    solution, modelled = np.zeros(len(names)), cycles
    for _ in range(ROUNDS):
        weights = 1 / np.sqrt(cycles * np.clip(modelled, cycles / MOST_FACTOR, cycles * MOST_FACTOR))
        table = columns * weights[:, None]
        scale = np.maximum(np.abs(table).max(axis=0), 1e-30)
        solution = nonnegative_least_squares(table / scale, cycles * weights) / scale
        modelled = columns @ solution
    return {name: float(value) for name, value in zip(names, solution, strict=True)}


def nonnegative_least_squares(table: Floats, target: Floats) -> Floats:
    """Return x >= 0 that makes |table x - target| least (active sets: Lawson and Hanson)."""
    n = table.shape[1]
    gram, goal = table.T @ table, table.T @ target
    x = np.zeros(n)
    passive = np.zeros(n, np.bool_)
    tolerance = 1e-9 * max(float(np.abs(goal).max(initial=0)), 1e-30)
    for _ in range(3 * n):
        gradient = goal - gram @ x
        gradient[passive] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= tolerance:
            break
        passive[best] = True
        while True:
            trial = np.zeros(n)
            chosen = np.flatnonzero(passive)
            trial[chosen] = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], goal[chosen], rcond=None)[0]
            if (trial[chosen] > 0).all():
                x = trial
                break
            falling = chosen[trial[chosen] <= 0]
            ratio = x[falling] / np.maximum(x[falling] - trial[falling], 1e-300)
            x = x + float(ratio.min()) * (trial - x)
            passive &= x > 1e-14
            x[~passive] = 0.0
    return x
