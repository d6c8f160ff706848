"""Types of the native module `t10.core._loads` (sources: `_loads.cpp`, `phase_loads.h`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

UNITS: int
"""Work inside cores is counted in this part of a cycle."""
RATE_CYCLES: int
"""Rates of links are bytes in so many cycles."""

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

    Where `rates` go on with the numbers of `t10.core.links.Links`, the first is never less than the busiest link needs,
    and includes the latency of the longest way.

    `runs` (n, 6): number of the source, core and slot there, core and slot here, elements; sorted by core here, then
    slot. `fills` (n, 4): constant, core, slot, elements. `rates` are those of `t10.core.loads.MoveRates`. `table`
    (cores, 4) receives units before, cycles of both ports (sent, received) and units behind, per core. Raises
    ValueError for runs out of order, IndexError for cores beyond the table.
    """

def link_loads(
    links: Sequence[int], n_cores: int, transfers: NDArray[np.int64], n_bytes: NDArray[np.int64]
) -> int:
    """Write into `n_bytes` what passes every link (`t10.core.links.Links`), and return the latency of the longest way.

    `transfers` (n, 4): number of the transfer, ascending; core that sends, core that takes, bytes. Raises IndexError
    for cores beyond `n_cores`, ValueError where links and `n_bytes` differ in number.
    """
