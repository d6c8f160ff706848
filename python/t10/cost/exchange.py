"""What an IPU's exchange phases take beyond what the chip's file says: coefficients fitted to the exchange simulator.

`t10 profile --exchange` fits them (docs/cost-model.md); they lie in `data/ipu-exchange.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import numpy as np

from t10.chip import ChipSpec
from t10.core.loads import UNITS, Loads, MoveRates

WORD_BYTES = 4
DATA_FILE = "ipu-exchange.json"


@dataclass(frozen=True, slots=True)
class ExchangeCosts:
    """Cycles of work inside cores around an exchange; meanings as in `MoveRates`.

    `waiting` is by what part of its own work the busiest port is kept waiting by others.
    """

    copy_4: float
    copy_2: float
    copy_1: float
    short_even: float
    short_odd: float
    long_even: float
    long_odd: float
    row: float
    ragged: float
    waiting: float

    def rates(self, chip: ChipSpec) -> MoveRates:
        """Return the rates at which loads are counted on a chip."""
        units = {name: round(getattr(self, name) * UNITS) for name in self.__slots__ if name != "waiting"}
        return MoveRates(
            bytes_per_cycle=chip.exchange_bytes_per_cycle,
            fragment_cycles=chip.fragment_cycles,
            largest_words=chip.largest_transfer_words,
            copy_8=-(-UNITS // chip.copy_bytes_per_cycle),
            **units,
        )

    def phase_cycles(self, chip: ChipSpec, loads: Loads) -> int:
        """Return the cycles of a phase with these loads, work inside cores included."""
        total = 0
        if loads.port_cycles:
            waiting = round(loads.port_cycles * self.waiting)
            # The first fragment's control is part of the set-up.
            total += chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles
            total += loads.port_cycles + waiting - chip.fragment_cycles
        for inside in (loads.gather_cycles, loads.settle_cycles):
            if inside:
                total += chip.copy_launch_cycles + inside
        return total

    def parts_cycles(self, chip: ChipSpec, n_bytes: Any, n_parts: Any) -> Any:
        """Return the cycles of a phase in which every core takes `n_parts` parts of `n_bytes` from others.

        Arrays, or what records formulas; parts that are not whole words travel packed and are scattered.
        """
        ragged = np.minimum(n_bytes % WORD_BYTES, 1)
        words = -(-(n_bytes + ragged * (WORD_BYTES - 1)) // chip.exchange_bytes_per_cycle)
        port = n_parts * (words + chip.fragment_cycles) - chip.fragment_cycles
        rates = self.rates(chip)
        scattered = rates.row + n_parts * (n_bytes * rates.long_even + rates.ragged)
        inside = ragged * (chip.copy_launch_cycles + -(-scattered // UNITS))
        return chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles + port + inside

    def own_part_cycles(self, chip: ChipSpec, n_bytes: Any) -> Any:
        """Return the cycles in which every core copies a part of its own."""
        rates = self.rates(chip)
        return chip.copy_launch_cycles + -(-(rates.row + n_bytes * rates.copy_8) // UNITS)

    @property
    def digest(self) -> str:
        """Return a text that differs whenever a number differs."""
        return sha256(repr(self).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def exchange_costs() -> ExchangeCosts:
    """Return the fitted coefficients that come with T10."""
    found = json.loads((files("t10.cost") / "data" / DATA_FILE).read_text(encoding="utf-8"))
    return ExchangeCosts(**{each.name: float(found[each.name]) for each in fields(ExchangeCosts)})
