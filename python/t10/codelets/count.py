"""What a task takes on one tile: its codelet, assembled, and counted or executed on made-up data.

Counting executes only what decides where control goes: no floats, and loops that come back as they were at once. It
gives the cycles of a run wherever code does not branch on data; there the codelet is run.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from t10.codelets.compile import compile_task
from t10.codelets.image import assembled, stack_bytes
from t10.core.codelet import Codelet, Compiled, Pointer, Scratch
from t10.core.dtypes import numpy_dtype, size_bytes
from t10.core.task import Task, TaskOperand
from t10.core.tile import ADDRESS_BITS, ALIGNMENT_BYTES, IPU_MEMORY, OVERREAD_BYTES, TileMemory
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
KEPT_MACHINES = 64
KEPT_COUNTERS = 1024


def cycles_of(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task on one tile, its launch left out; None where what it touches does not fit a tile.

    Operands lie in memory elements of their own in the interleaved region, at offsets of less than 16 bytes in them.
    Raises `UnsupportedOpError` for what no codelet computes.
    """
    placed = _placed(task, offsets_bytes)
    if placed is None:
        return None
    counted = _counted(placed)
    return _run(task, placed) if counted is None else counted


def counted_cycles(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task as `cycles_of` does, None where only a run can tell: code branches on data."""
    placed = _placed(task, offsets_bytes)
    return None if placed is None else _counted(placed)


def run_cycles(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task as `cycles_of` does, from a run of every instruction."""
    placed = _placed(task, offsets_bytes)
    return None if placed is None else _run(task, placed)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A task as code, the addresses of its operands, and the words of its vertex."""

    codelet: Codelet
    addresses: tuple[int, ...]
    state: bytes


def _placed(task: Task, offsets_bytes: tuple[int, ...]) -> _Placed | None:
    """Return a task where it lies; None where it does not fit a tile."""
    addresses = _addresses(task)
    if addresses is None:
        return None
    compiled = compile_task(task)
    scratch = _scratch(compiled, addresses.pop())
    if scratch is None:
        return None
    if offsets_bytes:
        addresses = [address + more for address, more in zip(addresses, offsets_bytes, strict=True)]
    return _Placed(compiled.codelet, tuple(addresses), _state(compiled, addresses, scratch))


def _counted(placed: _Placed) -> int | None:
    """Return the cycles of a vertex, None where its code reads what it works on to decide how to go on."""
    codelet = placed.codelet
    machine, entry = _counter(codelet)
    return machine.count(entry, STATE, placed.state, codelet.kind)


def _run(task: Task, placed: _Placed) -> int:
    """Return the cycles of a vertex that works on made-up data."""
    codelet = placed.codelet
    machine, entry = _machine(codelet)
    memory = machine.memory(0)
    with _running:
        for number, (operand, address) in enumerate(zip(task.inputs, placed.addresses, strict=False)):
            _fill(memory, task, operand, address, number)
        at = STATE - MEMORY.base
        memory[at : at + len(placed.state)] = np.frombuffer(placed.state, np.uint8)
        return machine.run_vertex(0, entry, STATE, codelet.kind)


_running = Lock()
"""Machines that run have memories that threads would fill at once; a count holds the interpreter's lock."""


def codelet_of(task: Task) -> Compiled:
    """Return the code that computes a task."""
    return compile_task(task)


@lru_cache(maxsize=KEPT_MACHINES)
def _machine(codelet: Codelet) -> tuple[Machine, int]:
    """Return a tile with a codelet's code in it, and the code's address."""
    return _tile(codelet, MEMORY, is_counting=False)


@lru_cache(maxsize=KEPT_COUNTERS)
def _counter(codelet: Codelet) -> tuple[Machine, int]:
    """Return a tile that counts a codelet's cycles and has no memory for operands, and the code's address."""
    return _tile(codelet, CODE_MEMORY, is_counting=True)


def _tile(codelet: Codelet, memory: TileMemory, *, is_counting: bool) -> tuple[Machine, int]:
    image = assembled((codelet,), MEMORY)
    machine = Machine(1, image, memory, is_counting=is_counting)
    worker = codelet.stack_bytes if codelet.kind == "multi" else 0
    machine.set_options(
        stack_top=STACK_TOP, worker_stack_bytes=-(-worker // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    )
    return machine, image.symbols[codelet.entry]


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


def _state(compiled: Compiled, addresses: list[int], scratch: int) -> bytes:
    """Return the words of a vertex."""
    words: list[int] = []
    for word in compiled.words:
        if isinstance(word, int):
            words.append(word & 0xFFFFFFFF)
        elif isinstance(word, Pointer):
            words.append(addresses[word.operand] + word.offset_bytes)
        elif isinstance(word, Scratch):
            words.append(scratch + word.offset_bytes)
        else:
            words.append(int.from_bytes(struct.pack("<f", word), "little"))
    return struct.pack(f"<{len(words)}I", *words)
