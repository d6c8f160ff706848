"""Types of the native module `t10.isa._simulator` (source: `_simulator.cpp`); `t10.isa.tile` is the face to use."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

class Machine:
    """Tiles that run code."""

    def __init__(
        self,
        base: int,
        words: NDArray[np.int32],
        lines: NDArray[np.int32],
        memory: NDArray[np.uint8],
        shape: tuple[int, int, int, int, int],
        counts: bool,
    ) -> None:
        """Take an image's words (n, 10) and lines (n,), and the memory (tiles, bytes), which is used in place.

        `shape` is the address of the memory's first byte, that after its last, that of the interleaved region, the
        bytes of a memory element, and the number of workers. One that `counts` runs only what decides how many cycles
        there are: to branch on data is a trap. Raises ValueError for words that no assembler makes.
        """

    def run_vertices(
        self,
        tiles: NDArray[np.int32],
        entries: NDArray[np.uint32],
        states: NDArray[np.uint32],
        is_supervisor: bool,
        cycles: NDArray[np.int64],
    ) -> int:
        """Run one vertex per row, fill in `cycles`; return how many ended well, `trap` tells why the next did not."""

    def count(self, entry: int, state: int, words: bytes, is_supervisor: bool) -> int:
        """Write a vertex's words to tile 0 and return the cycles of a run of it; -1 where that traps.

        It holds the interpreter's lock, so threads may share a machine that counts. Raises ValueError for words outside
        the memory.
        """

    def registers(self, tile: int, worker: int) -> tuple[int, ...]:
        """Return m0..m15, a0..a15 and AACC[0..31] as bits; worker -1 is the supervisor."""

    def set_register(self, tile: int, worker: int, number: int, value: int) -> None:
        """Set register `number` of that order; raises ValueError for one without storage."""

    def trap(self) -> tuple[str, str, int, int, int, int, int, int] | None:
        """Return cause, message, address, pc, line, tile, worker and cycle of what stopped the last run."""

    def set_options(
        self,
        cycle_limit: int,
        round_robin: bool,
        watch_writes: bool,
        stack_top: int,
        worker_stack_bytes: int,
    ) -> None:
        """Set how vertices are run."""

    def set_trace(self, write: Callable[[str], None] | None) -> None:
        """Call `write` with a line for every bundle from now on, or no longer."""

    def slots(self) -> int:
        """Return the issue slots of all workers and supervisors so far."""

def n_forms() -> int:
    """Return the number of instruction forms the module was built with."""
