"""Gradient-boosted regression trees on whole numbers: the same trees on every machine.

Sums of whole numbers are exact in any order, so that no vector unit changes a split. Features are only compared, which
is why nothing needs a logarithm but the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from t10.core.arrays import Ints

N_TREES = 30
DEPTH = 3
LEAST_ROWS = 2
"""Rows of a leaf at least."""
RATE = 3
"""Every tree takes one part in so many of what is left."""
ONE = 1 << 12
"""What a factor of two is in logarithms of whole numbers."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a tree adds to all rows that get here."""

    value: int


@dataclass(frozen=True, slots=True)
class Split:
    """Rows whose `feature` is at most `threshold` go to `low`, others to `high`."""

    feature: int
    threshold: int
    low: Node
    high: Node


Node: TypeAlias = Leaf | Split


@dataclass(frozen=True, slots=True)
class BoostedTrees:
    """A sum of trees over a mean."""

    mean: int
    trees: tuple[Node, ...]

    @classmethod
    def fitted(cls, rows: Ints, targets: Ints) -> BoostedTrees:
        """Return trees fitted to `targets` (rows,) by features `rows` (rows, features)."""
        mean = int(targets.sum()) // len(targets)
        left = targets - mean
        trees: list[Node] = []
        for _ in range(N_TREES):
            tree = _grown(rows, left, DEPTH)
            trees.append(tree)
            left = left - _values(tree, rows)
        return cls(mean, tuple(trees))

    def predicted(self, rows: Ints) -> Ints:
        """Return what rows of features are expected to take, in the unit of the targets."""
        found = np.full(len(rows), self.mean, np.int64)
        for tree in self.trees:
            found += _values(tree, rows)
        return found


def logarithms(values: Ints) -> Ints:
    """Return logarithms of whole numbers from 1, `ONE` for a factor of two; straight between powers of two."""
    power = np.zeros(len(values), np.int64)
    rest = values.copy()
    for shift in (32, 16, 8, 4, 2, 1):
        is_larger = rest >> shift > 0
        power += shift * is_larger
        rest = np.where(is_larger, rest >> shift, rest)
    return power * ONE + ((values - (1 << power)) * ONE >> power)


def _grown(rows: Ints, left: Ints, depth: int) -> Node:
    chosen = _best_split(rows, left) if depth else None
    if chosen is None:
        return Leaf(int(left.sum()) // (RATE * len(left)))
    feature, threshold = chosen
    is_low = rows[:, feature] <= threshold
    low, high = (_grown(rows[side], left[side], depth - 1) for side in (is_low, ~is_low))
    return Split(feature, threshold, low, high)


def _best_split(rows: Ints, left: Ints) -> tuple[int, int] | None:
    """Return the feature and threshold that leave the smallest squares; None where none tells rows apart."""
    n = len(rows)
    if n < 2 * LEAST_ROWS:
        return None
    ranks = np.argsort(rows, axis=0, kind="stable")
    ordered = np.take_along_axis(rows, ranks, axis=0)
    below = np.cumsum(left[ranks], axis=0)[:-1]
    n_below = np.arange(1, n, dtype=np.int64)[:, None]
    gains = below * below // n_below + (int(left.sum()) - below) ** 2 // (n - n_below)
    is_cut = (ordered[:-1] != ordered[1:]) & (n_below >= LEAST_ROWS) & (n - n_below >= LEAST_ROWS)
    gains = np.where(is_cut, gains, -1)
    best = int(np.argmax(gains))
    place, feature = divmod(best, rows.shape[1])
    if gains[place, feature] <= int(left.sum()) ** 2 // n:
        return None
    return feature, int(ordered[place, feature])


def _values(node: Node, rows: Ints) -> Ints:
    """Return what a tree says of every row."""
    if isinstance(node, Leaf):
        return np.full(len(rows), node.value, np.int64)
    is_low = rows[:, node.feature] <= node.threshold
    return np.where(is_low, _values(node.low, rows), _values(node.high, rows))
