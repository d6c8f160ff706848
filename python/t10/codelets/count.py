"""What a task takes on one tile: its code is counted, or executed on made-up data where it branches on data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from t10.codelets.compile import compile_task
from t10.codelets.counter import MEMORY, STATE, addresses, counted, scratch, span, tile_of, words
from t10.core.codelet import Codelet
from t10.core.dtypes import numpy_dtype
from t10.core.scalar import ScalarFunction
from t10.core.task import Task, TaskOperand
from t10.isa.tile import Machine

KEPT_MACHINES = 64
Hits = Literal["all", "some", "none"]
"""Which indices of look-ups find their rows: code takes longest where all do, and least where none do."""


def cycles_of(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task on one tile, its launch left out; None where what it touches does not fit a tile.

    Operands lie in memory elements of their own in the interleaved region, at offsets of less than 16 bytes in them.
    Raises `UnsupportedOpError` for what no codelet computes.
    """
    placed = _placed(task, offsets_bytes)
    if placed is None:
        return None
    cycles = counted(placed.codelet, placed.words)
    return _run(task, placed) if cycles is None else cycles


def counted_cycles(task: Task, offsets_bytes: tuple[int, ...] = ()) -> int | None:
    """Return the cycles of a task as `cycles_of` does, None where only a run can tell: code branches on data."""
    placed = _placed(task, offsets_bytes)
    return None if placed is None else counted(placed.codelet, placed.words)


def run_cycles(task: Task, offsets_bytes: tuple[int, ...] = (), hits: Hits = "all") -> int | None:
    """Return the cycles of a task as `cycles_of` does, from a run of every instruction."""
    placed = _placed(task, offsets_bytes)
    return None if placed is None else _run(task, placed, hits)


@dataclass(frozen=True, slots=True)
class _Placed:
    """A task as code, the addresses of its operands, and the words of its vertex."""

    codelet: Codelet
    addresses: tuple[int, ...]
    words: bytes


def _placed(task: Task, offsets_bytes: tuple[int, ...]) -> _Placed | None:
    """Return a task where it lies; None where it does not fit a tile."""
    *places, behind = addresses(task)
    if behind > MEMORY.end:
        return None
    compiled = compile_task(task)
    at = scratch(compiled, behind)
    if at == behind and behind + compiled.scratch_bytes > MEMORY.end:
        return None
    if offsets_bytes:
        places = [address + more for address, more in zip(places, offsets_bytes, strict=True)]
    return _Placed(compiled.codelet, tuple(places), words(compiled, places, at))


def _run(task: Task, placed: _Placed, hits: Hits = "all") -> int:
    """Return the cycles of a vertex that works on made-up data."""
    codelet = placed.codelet
    machine, entry = _machine(codelet)
    memory = machine.memory(0)
    with _running:
        for number, (operand, address) in enumerate(zip(task.inputs, placed.addresses, strict=False)):
            _fill(memory, task, operand, address, number, hits)
        at = STATE - MEMORY.base
        memory[at : at + len(placed.words)] = np.frombuffer(placed.words, np.uint8)
        return machine.run_vertex(0, entry, STATE, codelet.kind)


_running = Lock()
"""Machines that run have memories that threads would fill at once; a count holds the interpreter's lock."""


@lru_cache(maxsize=KEPT_MACHINES)
def _machine(codelet: Codelet) -> tuple[Machine, int]:
    """Return a tile that runs a codelet, and the code's address."""
    return tile_of(codelet, MEMORY, is_counting=False)


def _fill(
    memory: NDArray[np.uint8], task: Task, operand: TaskOperand, address: int, number: int, hits: Hits
) -> None:
    """Put values into an operand: small numbers, and indices spread over the selected axes or behind them."""
    n = span(task, operand)
    kind = numpy_dtype(operand.dtype)
    values = np.arange(n) * 7 + number
    if kind.kind == "f":
        data = ((values % 13) / 8 + 0.25).astype(kind)
    elif kind.kind == "b":
        data = (values % 2).astype(kind)
    else:
        axes = _looked_up(task, number)
        largest = max((task.extents[axis] for axis in axes), default=16)
        first = max((task.origin[axis] for axis in axes if task.origin), default=0)
        last = 2 * largest if hits == "some" else largest
        data = (first + values % last + (largest if hits == "none" else 0)).astype(kind)
    at = address - MEMORY.base
    memory[at : at + data.nbytes] = data.view(np.uint8)


def _looked_up(task: Task, number: int) -> list[int]:
    """Return the axes along which rows are looked up by what an input holds."""

    def reads(index: ScalarFunction) -> bool:
        return number == index.result or any(number in op.operands for op in index.ops)

    return [each.axis for each in task.selectors if reads(each.index)]
