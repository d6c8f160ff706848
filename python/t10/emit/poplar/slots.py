"""Where the elements of a host tensor lie in a variable, as a short table: three nested loops with common steps.

`t10_slots.hpp` reads these tables. Variables hold rows of tensors cut up regularly, so the difference between one slot
and the next, one run and the next, and one row of runs and the next is nearly always the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.arrays import Ints, first_of_each
from t10.core.device import DeviceProgram, HostPiece
from t10.emit.poplar.tables import Tables
from t10.errors import InputError

LEVELS = 3
DENSE, NESTED = 0, 1
MOST_SAMPLES = 1 << 20
PART_SLOTS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Loops over slots: where each begins, and the counts of the levels so far (n, levels)."""

    slots: Ints
    elements: Ints
    counts: Ints


Slots = Mapping[str, int]
"""Slots of a tile, by variable."""


def slots_by_variable(program: DeviceProgram) -> Slots:
    """Return how many slots a tile has of every variable."""
    return {variable.name: prod(variable.shape) for variable in program.variables}


def slots_of(piece: HostPiece, tables: Tables, slots: Slots, *, is_output: bool) -> int:
    """Return the number of the slot table of a piece; slots that it leaves out hold nothing of the tensor."""
    n_slots = slots.get(piece.variable, 0)
    make = partial(slot_table, is_output=is_output, n_slots=n_slots)
    return tables.shared(piece.elements, f"slots:{is_output}:{n_slots}", make)


def slot_table(
    elements: NDArray[np.int32], *, is_output: bool = False, n_slots: int = 0
) -> NDArray[np.int32]:
    """Return the table of `elements` (tiles, slots) in rows of at least `n_slots`; of an output, first slots only."""
    missing = max(0, n_slots - elements.shape[-1])
    if missing:
        elements = np.pad(elements, ((0, 0), (0, missing)), constant_values=-1)
    flat = np.ascontiguousarray(elements, np.int32).reshape(-1)
    if is_output:
        flat = _first_slots(flat)
    runs, element_step = _neighbours(flat)
    slot_steps, element_steps = [1], [element_step]
    for _ in range(1, LEVELS):
        runs, slot_step, element_step = _fold(runs)
        slot_steps.append(slot_step)
        element_steps.append(element_step)
    rows = np.column_stack([runs.slots, runs.elements, runs.counts])
    if rows.size + 2 * LEVELS >= flat.size:
        return np.concatenate([np.array([DENSE], np.int32), flat])
    return np.concatenate([[NESTED, *slot_steps, *element_steps], rows.reshape(-1)]).astype(np.int32)


def _first_slots(flat: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the elements of all slots with -1 where an earlier slot holds the same."""
    held = np.flatnonzero(flat >= 0)
    first = held[first_of_each(flat[held])]
    result = np.full_like(flat, -1)
    result[first] = flat[first]
    return result


def _neighbours(flat: NDArray[np.int32]) -> tuple[_Runs, int]:
    """Return runs of slots next to each other whose elements are the most frequent step apart, and that step."""
    sample = flat[:MOST_SAMPLES]
    is_held = sample >= 0
    values, counts = np.unique(np.diff(sample)[is_held[1:] & is_held[:-1]], return_counts=True)
    step = int(values[np.argmax(counts)]) if len(values) else 1
    begins, ends = [np.flatnonzero(is_held[:1])], [np.zeros(0, np.int64)]
    # Parts that stay in the cache: a variable may have hundreds of millions of slots.
    for first in range(0, len(flat), PART_SLOTS):
        part = flat[first : first + PART_SLOTS + 1]
        is_held = part >= 0
        is_apart = np.diff(part) != step
        is_apart |= ~is_held[1:]
        is_apart |= ~is_held[:-1]
        begins.append(np.flatnonzero(is_apart & is_held[1:]) + (first + 1))
        ends.append(np.flatnonzero(is_apart & is_held[:-1]) + first)
    ends.append(np.flatnonzero(flat[-1:] >= 0) + (len(flat) - 1))
    slots = np.concatenate(begins)
    lengths = np.concatenate(ends) - slots + 1
    return _Runs(slots, flat[slots].astype(np.int64), lengths[:, None]), step


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


def elements_of(
    table: NDArray[np.int32], n_tiles: int, n_slots: int | None, n_elements: int
) -> NDArray[np.int32]:
    """Return which element lies in every slot, (tiles, slots), -1 for none: the inverse of `slot_table`.

    With `n_slots` None a tile has one per element of the tensor. Raises `InputError` for a table that is malformed or
    names slots or elements that do not exist.
    """
    n_slots = n_elements if n_slots is None else n_slots
    result = np.full(n_tiles * n_slots, -1, np.int32)
    if len(table) and table[0] == DENSE:
        held = table[1:]
        if len(held) > len(result):
            raise InputError(f"names {len(held):,} slots (there are {len(result):,})")
        _check_range(held, -1, n_elements, "elements")
        result[: len(held)] = held
        return result.reshape(n_tiles, n_slots)
    steps, rows = table[1 : 1 + 2 * LEVELS].astype(np.int64), table[1 + 2 * LEVELS :].astype(np.int64)
    if len(steps) < 2 * LEVELS or table[0] != NESTED or len(rows) % (2 + LEVELS):
        raise InputError("is no slot table")
    rows = rows.reshape(-1, 2 + LEVELS)
    counts = rows[:, 2:]
    if (counts < 1).any() or float(counts.prod(axis=1, dtype=np.float64).sum()) > len(result):
        raise InputError(f"names more slots than there are ({len(result):,}), or none")
    loops, which = np.unique(counts, axis=0, return_inverse=True)
    for number, extents in enumerate(loops):
        shape = tuple(int(extent) for extent in extents)
        at = np.array(np.unravel_index(np.arange(prod(shape)), shape), np.int64)
        slots_at, elements_at = steps[:LEVELS] @ at, steps[LEVELS:] @ at
        mine = rows[which.reshape(-1) == number]
        # Parts that stay in the cache, as above.
        per_part = max(PART_SLOTS // len(slots_at), 1)
        for first in range(0, len(mine), per_part):
            part = mine[first : first + per_part]
            slots, elements = part[:, :1] + slots_at, part[:, 1:2] + elements_at
            _check_range(slots, 0, len(result), "slots")
            _check_range(elements, 0, n_elements, "elements")
            result[slots] = elements
    return result.reshape(n_tiles, n_slots)


def _check_range(numbers: NDArray[Any], least: int, end: int, what: str) -> None:
    """Raise `InputError` for a number below `least` or from `end` on."""
    if numbers.size and not least <= int(numbers.min()) <= int(numbers.max()) < max(end, least + 1):
        raise InputError(f"names {what} that do not exist (there are {end:,})")
