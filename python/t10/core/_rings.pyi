"""Types of the native module `t10.core._rings` (source: `_rings.cpp`).

`coordinates` and `starts` are (cores, axes), 0 or more: where a core is on every axis of the plan, and where its window
starts there. Two cores hold the same window if both are equal on the axes `own` of the operand. Raises ValueError for
tables of other shapes and negative numbers, IndexError for axes that are not there.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def window_ranks(
    coordinates: NDArray[np.int64], starts: NDArray[np.int64], own: Sequence[int], ranks: NDArray[np.int64]
) -> None:
    """Write, per core, how many cores before it hold the same window."""

def window_groups(
    coordinates: NDArray[np.int64], starts: NDArray[np.int64], own: Sequence[int], groups: NDArray[np.int64]
) -> None:
    """Write a number per core, from 0 in the order in which they come first: the same for cores of the same window."""

def ring_sources(
    coordinates: NDArray[np.int64],
    starts: NDArray[np.int64],
    own: Sequence[int],
    axis: int,
    step: int,
    length: int,
    sources: NDArray[np.int64],
) -> None:
    """Write, per core, the core of its rank whose window starts `step` further along `axis`, or -1.

    Starts are taken modulo `length`. Raises ValueError for a length below 1 and a negative step.
    """
