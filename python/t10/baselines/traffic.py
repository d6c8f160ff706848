"""What a phase takes in which cores load tiles from shares, or store tiles into them: the prices of our relayouts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from t10.baselines.tiles import Pieces
from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.loads import Loads, MoveRates, core_loads, phase_loads
from t10.core.movement import LoadCosts
from t10.cost import CostModel

Exchange = Literal["multicast", "unicast", "no fragments"]
"""`multicast`: what several cores want is sent once, as for our plans. `unicast`: to each by itself. `no fragments`: as
`multicast`, but that pieces come in many runs costs nothing: what the system could hope for at best."""

SCHEDULED_PIECES = 200_000
"""Phases of more runs are not scheduled: their busiest port counts, which is never above a schedule."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One exchange phase: its modelled cycles, the bytes that all cores take, the most and the fragments of one."""

    cycles: int = 0
    total_bytes: int = 0
    largest_bytes: int = 0
    fragments: int = 0


def runs_of(
    pieces: Pieces,
    cores: Ints,
    item_bytes: int,
    first_slot: int,
    first_source: int,
    *,
    is_store: bool = False,
) -> Ints:
    """Return rows of (source, core and byte there, core and byte here, bytes), without constants."""
    moved = pieces.sources >= 0
    tile = np.stack(
        (cores[pieces.tiles], pieces.slots * item_bytes + first_slot), axis=1
    )  # core and byte of the tile
    share = np.stack((pieces.cores, pieces.there * item_bytes), axis=1)
    source = (pieces.sources + first_source)[:, None]
    n_bytes = (pieces.lengths * item_bytes)[:, None]
    columns = (source, tile, share, n_bytes) if is_store else (source, share, tile, n_bytes)
    return np.concatenate(columns, axis=1)[moved]


def priced(
    runs: list[Ints],
    chip: ChipSpec,
    cost: CostModel,
    exchange: Exchange,
    *,
    whole_bytes: int = 0,
) -> Phase:
    """Return what a phase of these runs takes.

    With `whole_bytes`, those of all tensors that it reads, it is only estimated: by its busiest ports, as if everything
    were wanted equally often.
    """
    rows = np.concatenate(runs) if runs else np.zeros((0, 6), np.int64)
    if not len(rows):
        return Phase()
    rows = rows[np.lexsort((rows[:, 4], rows[:, 3]))]
    moves = rows[:, 1] != rows[:, 3]
    received = np.bincount(rows[moves, 3], rows[moves, 5], chip.n_cores).astype(np.int64)
    n_runs = np.bincount(rows[moves, 3], minlength=chip.n_cores)
    phase = Phase(0, int(received.sum()), int(received.max()), int(n_runs.max()))
    rates = cost.move_rates if isinstance(cost, LoadCosts) else None
    if rates is None or not isinstance(cost, LoadCosts):
        copied = np.bincount(rows[~moves, 3], rows[~moves, 5], chip.n_cores)
        cycles = cost.exchange_cycles(phase.largest_bytes, phase.fragments, neighbour=False)
        return replace(phase, cycles=cycles + cost.copy_cycles(int(copied.max())))
    if exchange == "no fragments":
        rates = replace(rates, fragment_cycles=0)
    if whole_bytes:
        copies = 1.0 if exchange == "unicast" else max(phase.total_bytes / whole_bytes, 1.0)
        sent, taken = (_port(rows[moves], end, rates, chip.n_cores) for end in (1, 3))
        return replace(phase, cycles=cost.move_cycles(Loads(max(taken, int(sent / copies)))))
    narrow, fills = np.ascontiguousarray(rows, np.int32), np.zeros((0, 4), np.int32)
    if exchange != "unicast" and len(rows) <= SCHEDULED_PIECES:
        loads = phase_loads(narrow, fills, chip.n_cores, 1, rates)
    else:
        units, sent, taken, behind = core_loads(narrow, fills, chip.n_cores, 1, rates).T
        port = max(int(sent.max()), int(taken.max()))
        if exchange == "unicast":
            port = max(_port(rows[moves], end, rates, chip.n_cores) for end in (1, 3))
        launched = np.vectorize(rates.launched, otypes=[np.int64])
        done = int(np.where(behind > 0, np.maximum(sent, taken) + launched(behind), 0).max(initial=port))
        loads = Loads(port, rates.launched(int(units.max())), done - port)
    return replace(phase, cycles=cost.move_cycles(loads))


def _port(rows: Ints, end: int, rates: MoveRates, n_cores: int) -> int:
    """Return the cycles of the busiest sender (1) or receiver (3) where every run is sent to the one core it is for."""
    cycles = -(-rows[:, 5] * rates.exchange_cycles // rates.exchange_bytes) + rates.fragment_cycles
    return int(np.bincount(rows[:, end], cycles, n_cores).max(initial=0))
