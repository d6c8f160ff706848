"""`Steps`: what a core takes for what it computes, however that is found out; launches are left out."""

from __future__ import annotations

from typing import Protocol

from t10.core.arrays import Ints
from t10.core.expression import OperatorSpec


class Steps(Protocol):
    """Cycles of compute steps on one core, for many candidates (n,) at once."""

    def sub_task(self, spec: OperatorSpec, boxes: Ints) -> Ints:
        """Return the cycles of one compute step for every row of `boxes` (n, axes)."""
        ...

    def epilogue(self, spec: OperatorSpec, n_slots: Ints, runs: Ints, n_members: Ints | None = None) -> Ints:
        """Return the cycles of an epilogue on so many elements, `runs` of them in a row that operands walk evenly.

        They are all of a window that a core has alone, or a chunk of one that `n_members` cores have sums of.
        """
        ...

    def combine(self, spec: OperatorSpec, n_parts: Ints, n_slots: Ints, *, is_whole: bool = False) -> Ints:
        """Return the cycles in which a core combines `n_parts` parts of `n_slots` elements with its own.

        They are of its chunk of a window; with `is_whole` of the window, and of several parts its own is one.
        """
        ...
