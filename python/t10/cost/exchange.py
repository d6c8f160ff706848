"""What an IPU's exchange phases take: work inside cores beside what the chip's file says, and phases in closed form.

The exchange charges these rates (docs/device-simulator.md). Relayouts and set-ups are scheduled (`t10.core.loads`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from t10.chip import ChipSpec
from t10.core.loads import UNITS, Loads, MoveRates

WORD_BYTES = 4
LEAST_WITHIN = 8
"""Bytes of whole words that travel apart from what is around them (`core/word_parts.h`)."""


def exchange_rates(chip: ChipSpec) -> MoveRates:
    """Return the rates at which loads are counted on a chip."""
    n_bytes, n_cycles = chip.exchange_rate
    return MoveRates(
        exchange_bytes=n_bytes,
        exchange_cycles=n_cycles,
        fragment_cycles=chip.fragment_cycles,
        largest_words=chip.largest_transfer_words,
        copy_8=UNITS // 8 * max(8 // chip.copy_bytes_per_cycle, 1),
        copy_4=UNITS // 2,
        copy_2=UNITS * 3 // 4,
        copy_1=UNITS * 3 // 2,
        short_even=UNITS,
        short_odd=UNITS * 2,
        long_even=UNITS * 3 // 4,
        long_odd=UNITS * 3 // 2,
        row=UNITS * 4,
        ragged=UNITS * 4,
        paired_bytes_per_cycle=chip.pair_rate,
        least_paired_words=chip.least_paired_words,
        launch_cycles=chip.copy_launch_cycles,
    )


def phase_cycles(chip: ChipSpec, loads: Loads, *, is_neighbour: bool = False, is_joined: bool = False) -> int:
    """Return the cycles of a phase with these loads, work inside cores included; `is_neighbour`: along rings.

    Where it `is_joined` to transfers that end just before, it has begun with these: no core waits for others again.
    """
    total = 0
    if is_joined:
        total += loads.port_cycles
    elif loads.port_cycles:
        # The first fragment's control is part of the set-up.
        latency = chip.latency_neighbour_cycles if is_neighbour else chip.latency_any_cycles
        total += chip.sync_cycles + chip.setup_cycles + latency
        total += loads.port_cycles - chip.fragment_cycles
    return total + loads.gather_cycles + loads.settle_cycles


def parts_cycles(
    chip: ChipSpec,
    n_bytes: Any,
    n_parts: Any,
    n_sent: Any = 0,
    n_own: Any = 0,
    fewer_bytes: Any = 0,
    n_paired: Any = 0,
) -> Any:
    """Return the cycles of a phase in which every core takes `n_parts` parts of `n_bytes` from others.

    Arrays, or what records formulas; what is behind the last whole word of a part is scattered. A core whose memory
    elements are shared sends its `n_sent` parts while it takes nothing. It copies `n_own` parts of its own, one
    or none. One core may take `fewer_bytes` a part, among the last ones. `n_paired` of the parts are taken by both
    cores of pairs.
    """
    words = np.maximum(part_port_cycles(chip, n_bytes), part_port_cycles(chip, fewer_bytes))
    port = (n_parts + n_sent) * (words + chip.fragment_cycles) - chip.fragment_cycles
    if chip.pair_rate:
        is_long = n_bytes >= chip.least_paired_words * WORD_BYTES
        saved = chip.port_cycles(n_bytes) + n_bytes // -chip.pair_rate
        port = port - n_paired * np.where(is_long, saved, 0)
    inside = [inside_cycles(chip, each, n_parts, n_own) for each in (n_bytes, fewer_bytes)]
    return chip.sync_cycles + chip.setup_cycles + chip.latency_any_cycles + port + np.maximum(*inside)


def part_port_cycles(chip: ChipSpec, n_bytes: Any) -> Any:
    """Return the cycles in which a part passes a port, the control of all its fragments but the first included.

    A word may hold bytes of no part. What is behind whole words is a fragment, and where a transfer may not be as long
    as the part, each further one.
    """
    ragged = np.minimum(n_bytes % WORD_BYTES, 1)
    whole = n_bytes + ragged * (WORD_BYTES - 1)
    words = chip.port_cycles(whole)
    words = words + chip.fragment_cycles * ragged * np.minimum(n_bytes // LEAST_WITHIN, 1)
    largest_bytes = chip.largest_transfer_words * WORD_BYTES
    if chip.shift_buffer_bytes + WORD_BYTES <= largest_bytes:
        # Parts fit the shift buffer: none is longer. Formulas stay short.
        return words
    return words + chip.fragment_cycles * (-(-whole // largest_bytes) - 1)


def inside_cycles(chip: ChipSpec, n_bytes: Any, n_parts: Any, n_own: Any) -> Any:
    """Return the cycles in which a core scatters what is no whole word of parts and copies its own; 0 for nothing."""
    rates = exchange_rates(chip)
    ragged: Any = np.minimum(n_bytes % WORD_BYTES, 1)
    per_byte: Any = np.where(n_bytes % 2 == 1, rates.short_odd, rates.short_even)
    within: Any = n_bytes // WORD_BYTES * np.minimum(n_bytes // LEAST_WITHIN, 1)
    piece: Any = (n_bytes - within * WORD_BYTES) * per_byte + rates.ragged
    # Parts of a word lie side by side: every second begins inside 8 bytes.
    per_copied = np.where(n_bytes == WORD_BYTES, rates.copy_4, rates.copy_8)
    copied: Any = rates.row + n_bytes * per_copied + ragged * rates.ragged
    # Less than a word is not copied: it is scattered with the others.
    own = piece + np.minimum(n_bytes // WORD_BYTES, 1) * (copied - piece)
    units: Any = ragged * (rates.row + n_parts * piece) + np.minimum(n_bytes, 1) * n_own * own
    return np.minimum(units, 1) * chip.copy_launch_cycles + -(-units // UNITS)


def shifted_part_cycles(chip: ChipSpec, n_bytes: Any) -> Any:
    """Return the least cycles in which every core copies what a shift brought to where it belongs."""
    rates = exchange_rates(chip)
    return chip.copy_launch_cycles + -(-(rates.row + n_bytes * min(rates.copy_8, rates.copy_4)) // UNITS)


def further_part_cycles(chip: ChipSpec, n_parts: Any) -> Any:
    """Return the least cycles in which further parts of a shift are copied, each by itself, bytes left out."""
    return n_parts * chip.copy_launch_cycles + n_parts * exchange_rates(chip).row // UNITS
