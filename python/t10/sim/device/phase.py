"""What one exchange phase takes: a schedule of its transfers, and copies inside tiles before and after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.chip import ChipSpec
from t10.sim.device.exchange import LoadedCopy

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PhaseTime:
    """A timed exchange phase: elapsed cycles, bytes that cross tiles, and cycles at work per tile."""

    cycles: int
    n_bytes: int
    max_bytes: int
    busy_cycles: Ints


def phase_time(loaded: LoadedCopy, chip: ChipSpec, n_tiles: int) -> PhaseTime:
    """Return what one execution of a copy takes."""
    runs = loaded.pattern.runs.astype(np.int64)
    n_bytes, count = runs[:, 5] * runs[:, 6], runs[:, 6]
    is_local = runs[:, 1] == runs[:, 3]
    received = np.bincount(runs[~is_local, 3], n_bytes[~is_local], n_tiles).astype(np.int64)
    fragments = np.bincount(runs[~is_local, 3], count[~is_local], n_tiles).astype(np.int64)
    local = np.bincount(runs[is_local, 3], n_bytes[is_local], n_tiles).astype(np.int64)
    fills = loaded.pattern.fills.astype(np.int64)
    local += np.bincount(fills[:, 0], fills[:, 2] * fills[:, 3], n_tiles).astype(np.int64)
    exchange = -(-received // chip.exchange_bytes_per_cycle) + chip.fragment_cycles * np.maximum(
        fragments - 1, 0
    )
    inside = np.where(local > 0, chip.copy_launch_cycles + -(-local // chip.copy_bytes_per_cycle), 0)
    cycles = int(inside.max(initial=0))
    if received.any():
        latency = chip.latency_neighbour_cycles if loaded.copy.kind == "shift" else chip.latency_any_cycles
        cycles += chip.sync_cycles + chip.setup_cycles + latency + int(exchange.max())
    return PhaseTime(cycles, int(received.sum()), int(received.max(initial=0)), exchange + inside)
