"""`TileMachine`: what executes vertices; `instruction_machine` makes the one that does so by instructions."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import CodeletKind
from t10.core.device import DeviceProgram
from t10.core.tile import ALIGNMENT_BYTES, TileMemory
from t10.errors import VerifyError
from t10.isa.image import Image
from t10.isa.tile import Machine


class TileMachine(Protocol):
    """Tiles with memories of their own that run one vertex each."""

    def memory(self, tile: int) -> NDArray[np.uint8]:
        """Return the memory of a tile, writable: the same bytes on every call."""
        ...

    def run_vertices(
        self,
        tiles: NDArray[np.int32],
        entries: NDArray[Any],
        states: NDArray[Any],
        kind: CodeletKind,
    ) -> NDArray[np.int64]:
        """Run one vertex per tile from its entry address with its state's address; return the cycles of each.

        Raises `SimTrap` where an instruction cannot be executed.
        """
        ...

    def set_trace(self, write: Callable[[str], None] | None) -> None:
        """Call `write` with a line for every bundle from now on, or no longer."""
        ...


def small_pages(shape: tuple[int, int]) -> NDArray[np.uint8]:
    """Return zeros, (tiles, bytes), whose memory comes in small pages as it is used.

    numpy asks for huge pages: then every tile that is touched anywhere costs megabytes.
    """
    return np.frombuffer(mmap.mmap(-1, max(shape[0] * shape[1], 1)), np.uint8)[: shape[0] * shape[1]].reshape(
        shape
    )


def instruction_machine(
    program: DeviceProgram, image: Image, tile: TileMemory, *, watch_writes: bool = False
) -> Machine:
    """Return the instruction-set simulator with the program's code, memories and stacks.

    `watch_writes` makes it a trap that two workers write into one word. Raises `VerifyError` where the program's memory
    is not that of a tile or a codelet has no symbol.
    """
    memory = program.memory
    if (memory.base, memory.end) != (tile.base, tile.end):
        raise VerifyError(
            f"the program's memory begins at {memory.base:#x} and ends at {memory.end:#x}, that of a tile of its chip "
            f"begins at {tile.base:#x} and ends at {tile.end:#x}"
        )
    machine = Machine(program.n_tiles, image, tile, small_pages((program.n_tiles, tile.size_bytes)))
    worker = max((codelet.stack_bytes for codelet in program.codelets if codelet.kind == "multi"), default=0)
    machine.set_options(
        watch_writes=watch_writes,
        stack_top=memory.exchange // ALIGNMENT_BYTES * ALIGNMENT_BYTES,
        worker_stack_bytes=-(-worker // ALIGNMENT_BYTES) * ALIGNMENT_BYTES,
    )
    return machine
