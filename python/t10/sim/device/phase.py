"""What one exchange phase takes: a schedule of its transfers, and copies inside tiles before and after it.

```
[gather what is not whole words]  sync  set-up  latency  transfers  [copies inside tiles, scatter, constants]
```

A tile waits for others at the synchronisation only: its copies begin when its own transfers end.

The model and its assumptions are described in docs/device-simulator.md; its numbers come from the chip's file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from t10.chip import ChipSpec, FloorPlan
from t10.core.arrays import Ints
from t10.core.device import CopyKind, Pattern
from t10.sim.device._device import schedule
from t10.sim.device.exchange import LoadedCopy

EIGHTHS = 8
"""Routes over the chip are counted in eighths of a cycle."""

NO_PLACES = np.zeros((0, 2), np.int64)


@dataclass(frozen=True, slots=True)
class ExchangeModel:
    """How phases are timed.

    `has_elements`: a tile that reads and writes one memory element does one after the other. `has_floor_plan`: latency
    by the distance of the tiles instead of the chip file's constants for neighbours and for arbitrary patterns.
    """

    chip: ChipSpec
    has_elements: bool = True
    has_floor_plan: bool = False

    @property
    def rates(self) -> list[int]:
        """Return the numbers of the native scheduler."""
        chip = self.chip
        return [
            *chip.exchange_rate,
            chip.fragment_cycles,
            chip.copy_bytes_per_cycle,
            chip.largest_transfer_words,
            chip.element_bytes if self.has_elements else 0,
            chip.interleaved_base - chip.memory_base,
            chip.pair_rate,
            chip.least_paired_words,
            chip.copy_launch_cycles,
        ]


@dataclass(frozen=True, slots=True, eq=False)
class PhaseTime:
    """A timed exchange phase.

    `transfer_cycles` from the first transfer's begin to the last one's end; `bound_cycles` what the busiest port needs
    at least; `copy_cycles` that copies inside tiles add before and after. `n_bytes` cross tiles, `max_bytes` is the
    most of any tile, `fragments` the most any receives. `busy_cycles` (tiles,) at work; `inside_cycles` (tiles, 2) of
    copies before and after, launches left out.
    """

    cycles: int
    transfer_cycles: int
    bound_cycles: int
    copy_cycles: int
    n_transfers: int
    fragments: int
    n_bytes: int
    max_bytes: int
    busy_cycles: Ints
    inside_cycles: Ints


@dataclass(slots=True)
class Relayouts:
    """Relayouts without work between them: from the first on that crosses tiles they share one exchange phase."""

    model: ExchangeModel
    has_begun: bool = False

    def end(self) -> None:
        """Tiles work: what comes then is another phase."""
        self.has_begun = False

    def time(self, kind: CopyKind, alone: PhaseTime) -> PhaseTime:
        """Return what the next copy adds that takes `alone` by itself: later ones no synchronisation and latency."""
        if kind != "relayout" or not alone.n_transfers:
            return alone
        if not self.has_begun:
            self.has_begun = True
            return alone
        chip = self.model.chip
        latency = _latency(self.model, is_neighbour=False)
        begin = chip.sync_cycles + chip.setup_cycles + latency - chip.fragment_cycles
        transfer = alone.transfer_cycles + chip.fragment_cycles
        return replace(alone, cycles=alone.cycles - begin, transfer_cycles=transfer)


def phase_time(loaded: LoadedCopy, model: ExchangeModel, n_tiles: int) -> PhaseTime:
    """Return what one execution of a copy takes."""
    is_shift = loaded.copy.kind == "shift"
    return pattern_time(
        loaded.pattern,
        model,
        n_tiles,
        source_offsets=loaded.source_offsets,
        target_offset=loaded.target_offset,
        is_neighbour=is_shift,
    )


def pattern_time(
    pattern: Pattern,
    model: ExchangeModel,
    n_tiles: int,
    *,
    source_offsets: Ints,
    target_offset: int,
    is_neighbour: bool,
) -> PhaseTime:
    """Return what an exchange phase takes whose sources and target lie at these offsets of every tile's memory.

    `is_neighbour`: its latency is that of a shift along rings.
    """
    chip = model.chip
    table = np.zeros((n_tiles, 5), np.int64)
    places = floor_plan(chip.floor_plan, n_tiles) if model.has_floor_plan else NO_PLACES
    last, bound, n_transfers, fragments, n_bytes, max_bytes = schedule(
        pattern.runs,
        pattern.fills,
        source_offsets,
        target_offset,
        model.rates,
        places,
        round(chip.floor_plan.row_cycles * EIGHTHS),
        round(chip.floor_plan.column_cycles * EIGHTHS),
        table,
    )
    # The first fragment's control is part of the set-up.
    first = chip.fragment_cycles if n_transfers else 0
    copies = np.where(table[:, [0, 3]] > 0, table[:, [0, 3]] + chip.copy_launch_cycles, 0)
    done = np.where(copies[:, 1] > 0, table[:, 4] + copies[:, 1], 0).max(initial=last)
    copy_cycles = int(copies[:, 0].max(initial=0) + done - last)
    cycles = copy_cycles
    if n_transfers:
        cycles += (
            chip.sync_cycles + chip.setup_cycles + _latency(model, is_neighbour=is_neighbour) + last - first
        )
    return PhaseTime(
        cycles=cycles,
        transfer_cycles=last - first,
        bound_cycles=bound - first,
        copy_cycles=copy_cycles,
        n_transfers=n_transfers,
        fragments=fragments,
        n_bytes=n_bytes,
        max_bytes=max_bytes,
        busy_cycles=copies.sum(axis=1) + np.maximum(table[:, 1], table[:, 2]),
        inside_cycles=table[:, [0, 3]],
    )


def _latency(model: ExchangeModel, *, is_neighbour: bool) -> int:
    if model.has_floor_plan:
        return model.chip.floor_plan.nearest_cycles
    return model.chip.latency_neighbour_cycles if is_neighbour else model.chip.latency_any_cycles


def floor_plan(plan: FloorPlan, n_tiles: int) -> Ints:
    """Return (row, column) of every tile, (n_tiles, 2): rows of tiles in blocks, every second block upside down.

    Source: timing reference §3, floor plan of a 1472-tile chip; smaller chips are its first tiles.
    """
    pair = np.arange(n_tiles, dtype=np.int64) // plan.tiles_per_row
    block, row = np.divmod(pair, plan.rows)
    row = np.where(block % 2 == 1, plan.rows - 1 - row, row)
    return np.ascontiguousarray(np.stack([row, block // 2], axis=1))
