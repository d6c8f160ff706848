"""What a task takes on one tile: its codelet, assembled, executed instruction by instruction on made-up data."""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from t10.codelets.compile import compile_task
from t10.core.codelet import Codelet, Compiled, Pointer, Scratch
from t10.core.dtypes import numpy_dtype, size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import ADDRESS_BITS, ALIGNMENT_BYTES, IPU_MEMORY, OVERREAD_BYTES
from t10.emit.link import assembled, stack_bytes
from t10.isa.image import Image
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
KEPT_MACHINES = 64


def cycles_of(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task on one tile, its launch left out; None where what it touches does not fit a tile.

    Operands lie in memory elements of their own in the interleaved region, at offsets of less than 16 bytes in them.
    Raises `UnsupportedOpError` for what no codelet computes.
    """
    addresses = _addresses(task)
    if addresses is None:
        return None
    compiled = compile_task(task)
    scratch = _scratch(compiled, addresses.pop())
    if scratch is None:
        return None
    if offsets_bytes:
        addresses = [address + more for address, more in zip(addresses, offsets_bytes, strict=True)]
    machine, image = _machine(compiled.codelet)
    memory = machine.memory(0)
    for number, (operand, address) in enumerate(zip(task.inputs, addresses, strict=False)):
        _fill(memory, task, operand, address, number)
    words = [_word(word, addresses, scratch) for word in compiled.words]
    at = STATE - MEMORY.base
    memory[at : at + 4 * len(words)] = np.frombuffer(b"".join(words), np.uint8)
    return machine.run_vertex(0, image.symbols[compiled.codelet.entry], STATE, compiled.codelet.kind)


def codelet_of(task: Task) -> Compiled:
    """Return the code that computes a task."""
    return compile_task(task)


@lru_cache(maxsize=KEPT_MACHINES)
def _machine(codelet: Codelet) -> tuple[Machine, Image]:
    """Return a tile with a codelet's code in it."""
    image = assembled((codelet,), MEMORY)
    machine = Machine(1, image, MEMORY)
    worker = codelet.stack_bytes if codelet.kind == "multi" else 0
    machine.set_options(
        stack_top=STACK_TOP, worker_stack_bytes=-(-worker // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    )
    return machine, image


def _addresses(task: Task) -> list[int] | None:
    """Return where every operand lies, pairs of memory elements of its own, as many as it takes, and where they end."""
    result: list[int] = []
    address = MEMORY.interleaved_base
    for operand in task.operands:
        span = _span(task, operand) * size_bytes(operand.dtype) + OVERREAD_BYTES
        result.append(address)
        address += -(-span // MEMORY.interleaved_bytes) * MEMORY.interleaved_bytes
    return [*result, address] if address <= MEMORY.end else None


def _scratch(compiled: Compiled, behind: int) -> int | None:
    """Return where a codelet's scratch lies: below the stacks, or `behind` the operands where that is too little."""
    stacks = stack_bytes((compiled.codelet,))
    if SCRATCH + compiled.scratch_bytes + stacks <= STACK_TOP:
        return SCRATCH
    return behind if behind + compiled.scratch_bytes <= MEMORY.end else None


def _span(task: Task, operand: TaskOperand) -> int:
    """Return the elements from an operand's first to its last."""
    return 1 + sum(s * (n - 1) for s, n in zip(operand.strides, task.extents, strict=True))


def _fill(memory: NDArray[np.uint8], task: Task, operand: TaskOperand, address: int, number: int) -> None:
    """Put values into an operand: small numbers, and indices of which every part of a selected axis has its share."""
    n = _span(task, operand)
    kind = numpy_dtype(operand.dtype)
    values = np.arange(n) * 7 + number
    if kind.kind == "f":
        data = ((values % 13) / 8 + 0.25).astype(kind)
    elif kind.kind == "b":
        data = (values % 2).astype(kind)
    else:
        largest = max((task.extents[s.axis] for s in task.selectors), default=16)
        data = (values % largest).astype(kind)
    at = address - MEMORY.base
    memory[at : at + data.nbytes] = data.view(np.uint8)


def _word(word: object, addresses: list[int], scratch: int) -> bytes:
    """Return the four bytes of a word."""
    if isinstance(word, Pointer):
        return struct.pack("<I", addresses[word.operand] + word.offset_bytes)
    if isinstance(word, Scratch):
        return struct.pack("<I", scratch + word.offset_bytes)
    if isinstance(word, float):
        return struct.pack("<f", word)
    assert isinstance(word, int)
    return struct.pack("<I", word & 0xFFFFFFFF)
