"""Cycles counted from code: a codelet alone in a tile's memory, and a vertex of it whose operands lie beyond.

Counting executes only what decides where control goes: no floats, and loops that come back as they were at once. Where
code does not branch on data, it gives the cycles of a run.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from t10.codelets.image import assembled, stack_bytes
from t10.core.codelet import ENTRY_PREFIX, Codelet, Compiled, Pointer, Scratch, Word
from t10.core.dtypes import size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import (
    ADDRESS_BITS,
    ALIGNMENT_BYTES,
    IPU_MEMORY,
    OVERREAD_BYTES,
    WIDE_BYTES,
    TileMemory,
)
from t10.isa.assembler import assembled_code
from t10.isa.image import DATA
from t10.isa.tile import Machine

CODE_BYTES = 0x8000
MEMORY = replace(
    IPU_MEMORY, interleaved_base=IPU_MEMORY.base + 3 * IPU_MEMORY.element_bytes, end=1 << ADDRESS_BITS
)
"""The tile that codelets are measured on: they take as long wherever memory begins and ends.

It has room for all operands of the largest sub-task in elements of their own.
"""
STATE = MEMORY.base + CODE_BYTES
SCRATCH = STATE + 0x1000
STACK_TOP = MEMORY.interleaved_base - OVERREAD_BYTES
CODE_MEMORY = replace(MEMORY, end=MEMORY.interleaved_base)
"""Code, state, scratch and stacks of it: an address beyond is an operand's, and what is read there is data."""
_SHARED = np.zeros((1, CODE_MEMORY.size_bytes), np.uint8)
"""The memory of counters, which count one after another, but of those with data beside their code."""
KEPT_COUNTERS = 4096
KEPT_COUNTS = 1 << 14
SLOW = 1 << 62
"""More cycles than anything takes."""


@lru_cache(maxsize=KEPT_COUNTS)
def counted(codelet: Codelet, words: bytes) -> int | None:
    """Return the cycles of a vertex, None where its code reads what it works on to decide how to go on."""
    machine, entry = _counter(codelet)
    return machine.count(entry, STATE, words, codelet.kind)


@lru_cache(maxsize=KEPT_COUNTERS)
def _counter(codelet: Codelet) -> tuple[Machine, int]:
    """Return a tile that counts a codelet's cycles and has no memory for operands, and the code's address."""
    return tile_of(codelet, CODE_MEMORY, is_counting=True)


def tile_of(codelet: Codelet, memory: TileMemory, *, is_counting: bool) -> tuple[Machine, int]:
    """Return a tile with a codelet's code in it, and the code's address."""
    nameless = _nameless(codelet)
    image = (assembled_code(nameless.assembly, MEMORY) if is_counting else None) or assembled(
        (nameless,), MEMORY
    )
    is_shared = is_counting and not np.any(image.words[:, 0] == DATA)
    machine = Machine(1, image, memory, _SHARED if is_shared else None, is_counting=is_counting)
    worker = codelet.stack_bytes if codelet.kind == "multi" else 0
    machine.set_options(
        stack_top=STACK_TOP, worker_stack_bytes=-(-worker // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    )
    return machine, image.symbols[ENTRY_PREFIX]


def _nameless(codelet: Codelet) -> Codelet:
    """Return a codelet whose labels are those of others: the assembler knows lines that it has seen before."""
    text = codelet.assembly.replace(codelet.entry, ENTRY_PREFIX).replace(f".L_{codelet.name}_", ".L_")
    return replace(codelet, name="", assembly=text)


def addresses(task: Task) -> list[int]:
    """Return where every operand lies, pairs of memory elements of its own, as many as it takes, and where they end."""
    result = [MEMORY.interleaved_base]
    for operand in task.operands:
        n_bytes = span(task, operand) * size_bytes(operand.dtype) + OVERREAD_BYTES
        result.append(result[-1] + -(-n_bytes // MEMORY.interleaved_bytes) * MEMORY.interleaved_bytes)
    return result


def span(task: Task, operand: TaskOperand) -> int:
    """Return the elements from an operand's first to its last."""
    return 1 + sum([s * (n - 1) for s, n in zip(operand.strides, task.extents, strict=True) if s])


def scratch(compiled: Compiled, behind: int) -> int:
    """Return where a codelet's scratch lies: below the stacks, or `behind` the operands where that is too little."""
    stacks = stack_bytes((compiled.codelet,))
    return SCRATCH if SCRATCH + compiled.scratch_bytes + stacks <= STACK_TOP else behind


def words(compiled: Compiled, addresses: Sequence[int], scratch: int) -> bytes:
    """Return the words of a vertex."""
    found = [
        word & 0xFFFFFFFF if type(word) is int else _word(word, addresses, scratch) for word in compiled.words
    ]
    return struct.pack(f"<{len(found)}I", *found)


def _word(word: Word, addresses: Sequence[int], scratch: int) -> int:
    """Return the bits of a word."""
    if isinstance(word, Pointer):
        return addresses[word.operand] + word.offset_bytes & 0xFFFFFFFF
    if isinstance(word, Scratch):
        return scratch + word.offset_bytes & 0xFFFFFFFF
    if isinstance(word, int):
        return word & 0xFFFFFFFF
    return int.from_bytes(struct.pack("<f", word), "little")


def least_counted(task: Task, ways: Iterable[Compiled]) -> Compiled | None:
    """Return the way to compute a task that takes the fewest cycles, the first of equals; None of none."""
    found = tuple(ways)
    if len(found) < 2:
        return found[0] if found else None
    *places, behind = _lying(task)
    return min(found, key=lambda way: _cycles_at(way, places, behind))


def cycles_where_it_lies(task: Task, compiled: Compiled) -> int:
    """Return the cycles of a task whose operands are as little aligned as it says.

    What branches on data counts as slow.
    """
    *places, behind = _lying(task)
    return _cycles_at(compiled, places, behind)


def _lying(task: Task) -> list[int]:
    """Return `addresses` of operands that are as little aligned as the task says."""
    *places, behind = addresses(task)
    at = [place + each.align_bytes % WIDE_BYTES for place, each in zip(places, task.operands, strict=True)]
    return [*at, behind]


def _cycles_at(compiled: Compiled, places: Sequence[int], behind: int) -> int:
    cycles = counted(compiled.codelet, words(compiled, places, scratch(compiled, behind)))
    return SLOW if cycles is None else cycles
