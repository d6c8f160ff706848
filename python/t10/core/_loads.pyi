"""Types of the native module `t10.core._loads` (sources: `_loads.cpp`, `phase_loads.h`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

UNITS: int
"""Work inside cores is counted in this part of a cycle."""

def phase_loads(
    runs: NDArray[np.int32],
    fills: NDArray[np.int32],
    rates: Sequence[int],
    item_bytes: int,
    is_scheduled: bool,
    places: Sequence[int],
    table: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Return the cycles of the busiest port, and of the most work inside any core before and behind the exchange.

    `is_scheduled`: the first is the cycles until the last transfer ends instead. `places` are the numbers of
    `t10.core.loads.Places`; where there are none, sources and target lie in memory elements of their own.

    `runs` (n, 6): number of the source, core and slot there, core and slot here, elements; sorted by core here, then
    slot. `fills` (n, 3): core, slot, elements. `rates` are those of `t10.core.loads.MoveRates`. `table` (cores, 4)
    receives units before, cycles of both ports (sent, received) and units behind, per core. Raises ValueError for
    runs out of order, IndexError for cores beyond the table.
    """
