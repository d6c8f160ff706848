"""What moving elements makes cores do besides waiting for bytes: rates, and the loads of an exchange phase.

```
[gather what is not whole words]  sync  set-up  latency  transfers  [copies inside cores, scatter, constants]
         gather_cycles                                   port_cycles           settle_cycles
```

Gathering takes as long as the core with most of it; transfers take no less than the busiest port, and where they are
scheduled what they take. A core waits for others at the synchronisation only: its copies begin when its own transfers
end, and `settle_cycles` are those from the last transfer's end until the last core is done.

Bytes wanted by several cores are sent once; a core's bytes are cut wherever the set of cores that want them changes,
and every piece costs its sender and its receivers a fragment. Pieces that are not whole words travel packed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core import _loads
from t10.core.links import Links
from t10.core.tile import TileRange, are_apart

UNITS = _loads.UNITS
"""Rates of work inside cores are in this part of a cycle."""

Runs = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class MoveRates:
    """What moving costs a core: bandwidth and fragments in cycles, work inside cores in units of 1 / `UNITS` cycle.

    A port passes `exchange_bytes` in `exchange_cycles`.
    `copy_8` to `copy_1`: per byte copied where both ends differ by a multiple of 8, 4, 2 bytes or an odd number.
    `short_even` to `long_odd`: per byte gathered or scattered in pieces of less than two words and in longer ones, of
    even bytes or not. `row`: per row of copies that step evenly, per packed transfer gathered, per core that scatters.
    `ragged`: per end of a piece that is no word's end. `paired_bytes_per_cycle`: what cores 2k and 2k + 1 each receive
    where both take the same in transfers of `least_paired_words` and more; 0: no more than others. `launch_cycles`:
    before work inside a core begins. `links`: those between groups of cores, where there are any.
    """

    exchange_bytes: int
    exchange_cycles: int
    fragment_cycles: int
    largest_words: int
    copy_8: int
    copy_4: int
    copy_2: int
    copy_1: int
    short_even: int
    short_odd: int
    long_even: int
    long_odd: int
    row: int
    ragged: int
    paired_bytes_per_cycle: int = 0
    least_paired_words: int = 0
    launch_cycles: int = 0
    links: Links | None = None

    def launched(self, units: int) -> int:
        """Return the cycles of so much work inside a core, with its launch; 0 of none."""
        return self.launch_cycles + -(-units // UNITS) if units else 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return all rates in the order in which native code takes them, the numbers of links behind them."""
        rates = tuple([getattr(self, name) for name in self.__slots__ if name != "links"])
        return rates if self.links is None else (*rates, *self.links.numbers)


@dataclass(frozen=True, slots=True)
class Loads:
    """Cycles of the busiest port, of work inside cores before the exchange, and of what is left of it behind.

    Launches are included. Of a phase that was scheduled, `port_cycles` are those until its last transfer ends. Where
    cores lie in groups, they are no fewer than the busiest link needs, and include the latency of the longest way.
    """

    port_cycles: int = 0
    gather_cycles: int = 0
    settle_cycles: int = 0


@dataclass(frozen=True, slots=True)
class Places:
    """Where a phase's target and sources begin in memory, as offsets, where some of them share memory elements.

    Elements have `element_bytes`; from `interleaved_offset` on they come in pairs. A core that reads and writes one
    element does one after the other.
    """

    element_bytes: int
    interleaved_offset: int
    target: int
    sources: tuple[int, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return all numbers in the order in which native code takes them."""
        return self.element_bytes, self.interleaved_offset, self.target, *self.sources


def shared_places(target: TileRange, sources: Sequence[TileRange]) -> Places | None:
    """Return the places of a phase, None where sources and target lie in memory elements of their own."""
    if all(are_apart(source, target) for source in sources):
        return None
    memory = target.memory
    return Places(
        memory.element_bytes,
        memory.interleaved_base - memory.base,
        target.address_bytes - memory.base,
        tuple(source.address_bytes - memory.base for source in sources),
    )


def phase_loads(
    runs: Runs, fills: Runs, n_cores: int, item_bytes: int, rates: MoveRates, places: Places | None = None
) -> Loads:
    """Return the loads of a phase, its transfers scheduled; apart without `places`.

    `runs` (n, 6): number of the source, core and slot there, core and slot here, elements; sorted by core here, then
    slot. `fills` (n, 4): number of the constant, core, slot, elements; runs of different constants are written one by
    one. Slot 0 of every source and of the target begins at a multiple of eight bytes.
    """
    return Loads(
        *_loads.phase_loads(
            runs,
            fills,
            rates.numbers,
            item_bytes,
            True,
            places.numbers if places else (),
            np.zeros((n_cores, 4), np.int64),
        )
    )


def core_loads(runs: Runs, fills: Runs, n_cores: int, item_bytes: int, rates: MoveRates) -> NDArray[np.int64]:
    """Return by core, (cores, 4): units before the exchange, cycles sent and received, units behind it."""
    table = np.zeros((n_cores, 4), np.int64)
    _loads.phase_loads(runs, fills, rates.numbers, item_bytes, False, (), table)
    return table
