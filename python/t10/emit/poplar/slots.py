"""Where the elements of a host tensor lie in a variable, as a short table: three nested loops with common steps.

`t10_slots.hpp` reads these tables. Variables hold rows of tensors cut up regularly, so the difference between one slot
and the next, one run and the next, and one row of runs and the next is nearly always the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVELS = 3
DENSE, NESTED = 0, 1
MOST_SAMPLES = 1 << 20

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Loops over slots: where each begins, and the counts of the levels so far (n, levels)."""

    slots: Ints
    elements: Ints
    counts: Ints


def slot_table(elements: NDArray[np.int32], *, is_output: bool = False) -> NDArray[np.int32]:
    """Return the table of `elements` (tiles, slots); of an output, every element's first slot only."""
    flat = elements.reshape(-1)
    slots = np.flatnonzero(flat >= 0)
    chosen = flat[slots].astype(np.int64)
    if is_output:
        _, first = np.unique(chosen, return_index=True)
        if len(first) != len(chosen):
            first.sort()
            slots, chosen = slots[first], chosen[first]
    runs = _Runs(slots, chosen, np.empty((len(slots), 0), np.int64))
    slot_steps: list[int] = []
    element_steps: list[int] = []
    for _ in range(LEVELS):
        runs, slot_step, element_step = _fold(runs)
        slot_steps.append(slot_step)
        element_steps.append(element_step)
    rows = np.column_stack([runs.slots, runs.elements, runs.counts])
    if rows.size + 2 * LEVELS >= flat.size and not is_output:
        return np.concatenate([np.array([DENSE], np.int32), flat])
    return np.concatenate([[NESTED, *slot_steps, *element_steps], rows.reshape(-1)]).astype(np.int32)


def _fold(runs: _Runs) -> tuple[_Runs, int, int]:
    """Return neighbours at the most frequent distance, and of the same counts, joined, and that distance."""
    n = len(runs.slots)
    if n < 2:
        return _Runs(runs.slots, runs.elements, np.column_stack([runs.counts, np.ones(n, np.int64)])), 0, 0
    slot_steps, element_steps = np.diff(runs.slots), np.diff(runs.elements)
    is_alike = (runs.counts[1:] == runs.counts[:-1]).all(1)
    slot_step, element_step = _most_frequent(slot_steps[is_alike], element_steps[is_alike])
    is_joined = is_alike & (slot_steps == slot_step) & (element_steps == element_step)
    begins = np.flatnonzero(np.concatenate([[True], ~is_joined]))
    lengths = np.diff(np.append(begins, n))
    counts = np.column_stack([runs.counts[begins], lengths])
    return _Runs(runs.slots[begins], runs.elements[begins], counts), slot_step, element_step


def _most_frequent(slot_steps: Ints, element_steps: Ints) -> tuple[int, int]:
    """Return the pair of steps that occurs most often among the first million, the smaller of equals."""
    if not len(slot_steps):
        return 0, 0
    pairs = (slot_steps[:MOST_SAMPLES] << 32) + element_steps[:MOST_SAMPLES]
    values, counts = np.unique(pairs, return_counts=True)
    best = int(values[np.argmax(counts)])
    element_step = ((best & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
    return (best - element_step) >> 32, element_step
