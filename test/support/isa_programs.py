"""Short programs on one simulated tile: assemble, put data, run, look."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

from t10.core.codelet import CodeletKind
from t10.core.tile import IPU_MEMORY, TileMemory
from t10.isa.assembler import assemble
from t10.isa.tile import Machine, Registers, Trap

STATE = 0x5C000
Array = NDArray[Any]


class Bench:
    """One tile with a program in it. The first label of the program is where workers or the supervisor begin."""

    def __init__(self, text: str, memory: TileMemory = IPU_MEMORY, *, is_counting: bool = False) -> None:
        """Assemble the program, aligned to 8 bytes."""
        self.machine = Machine(1, assemble(".align 8\n" + text), memory, is_counting=is_counting)
        self.memory = self.machine.memory(0)

    def put(self, address: int, data: Array) -> None:
        """Write an array to an address."""
        raw = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        self.memory[address - IPU_MEMORY.base : address - IPU_MEMORY.base + len(raw)] = raw

    def get(self, address: int, count: int, dtype: DTypeLike) -> Array:
        """Return a copy of what is at an address."""
        n_bytes = count * np.dtype(dtype).itemsize
        return self.memory[address - IPU_MEMORY.base : address - IPU_MEMORY.base + n_bytes].view(dtype).copy()

    def run(self, *state: int, label: str | None = None, kind: CodeletKind = "multi") -> int:
        """Run with words of state; return the cycles."""
        self.put(STATE, np.array(state, np.uint32))
        symbols = self.machine.image.symbols
        entry = symbols[label] if label else min(symbols.values())
        return self.machine.run_vertex(0, entry, STATE, kind)

    def worker(self, number: int = 0) -> Registers:
        """Return a worker's registers."""
        return self.machine.registers(0, number)

    def trap(self, *state: int, kind: CodeletKind = "multi") -> Trap:
        """Run and return the trap it ends with."""
        with pytest.raises(Trap) as caught:
            self.run(*state, kind=kind)
        return caught.value


def slots(cycles: int) -> int:
    """Return the issue slots of the longest worker of a `multi` vertex."""
    assert (cycles - 12) % 6 == 0
    return (cycles - 12) // 6
