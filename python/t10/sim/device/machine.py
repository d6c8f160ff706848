"""`TileMachine`: what executes vertices; `instruction_machine` makes the one that does so by instructions."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import CodeletKind
from t10.core.device import DeviceProgram
from t10.errors import VerifyError
from t10.isa.constants import TMEM_BASE
from t10.isa.image import Image
from t10.isa.tile import Machine

STACK_ALIGNMENT_BYTES = 8


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


def instruction_machine(program: DeviceProgram, image: Image, *, watch_writes: bool = False) -> Machine:
    """Return the instruction-set simulator with the program's code, memories and stacks.

    `watch_writes` makes it a trap that two workers write into one word. Raises `VerifyError` where the program's memory
    does not begin where a tile's does or a codelet has no symbol.
    """
    memory = program.memory
    if memory.base != TMEM_BASE:
        raise VerifyError(
            f"the program's memory begins at {memory.base:#x}, that of a tile at {TMEM_BASE:#x}"
        )
    shape = (program.n_tiles, memory.end - memory.base)
    machine = Machine(program.n_tiles, image, shape[1], small_pages(shape))
    worker = max((codelet.stack_bytes for codelet in program.codelets if codelet.kind == "multi"), default=0)
    machine.set_options(
        watch_writes=watch_writes,
        stack_top=memory.exchange // STACK_ALIGNMENT_BYTES * STACK_ALIGNMENT_BYTES,
        worker_stack_bytes=-(-worker // STACK_ALIGNMENT_BYTES) * STACK_ALIGNMENT_BYTES,
    )
    return machine
