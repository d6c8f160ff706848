"""Tiles that execute assembled code: `Machine` runs vertices instruction by instruction.

Timing: a worker takes 6 cycles per issue slot; launching six workers and waiting for them takes 6 + 6 cycles around the
longest of them. Supervisor code: 1 cycle per instruction, an operand is there 6 cycles after the instruction that made
it was issued, a taken branch takes 6 (ISA reference §16).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import CodeletKind
from t10.core.tile import IPU_MEMORY, N_WORKERS, TileMemory
from t10.errors import InputError, SimTrap
from t10.isa._simulator import Machine as _NativeMachine
from t10.isa._simulator import n_forms
from t10.isa.image import Image
from t10.isa.instructions import INSTRUCTIONS

DEFAULT_CYCLE_LIMIT = 2_000_000_000


class Trap(SimTrap):
    """An instruction could not be executed. `cause` is the hardware's name for it where there is one."""

    cause: str
    address: int
    pc: int
    line: int
    tile: int
    worker: int
    cycle: int
    vertex: int


@dataclass(frozen=True, slots=True)
class Registers:
    """Registers of a worker or supervisor as 32-bit patterns: MRF (16), ARF (16), accumulators (32)."""

    m: tuple[int, ...]
    a: tuple[int, ...]
    accumulators: tuple[int, ...]


class Machine:
    """`n_tiles` tiles with the same code and memories of their own.

    `memory` is the map of every tile's memory. `bytes_of_tiles` may be given, uint8 (n_tiles, bytes), and is then used
    in place. Registers, accumulators and weights hold
    NaN patterns until code sets them, and keep their values from one vertex to the next, as on the chip.
    """

    def __init__(
        self,
        n_tiles: int,
        image: Image,
        memory: TileMemory = IPU_MEMORY,
        bytes_of_tiles: NDArray[np.uint8] | None = None,
        *,
        is_counting: bool = False,
    ) -> None:
        """Load the image; raises `InputError` where it was made for other records or does not fit the memory."""
        if n_forms() != len(INSTRUCTIONS):
            raise InputError(
                f"the simulator was built for {n_forms()} instruction forms, there are {len(INSTRUCTIONS)}",
                hint="build the native modules again",
            )
        end = image.base_address + image.size_bytes
        if image.base_address < memory.base or end > memory.end:
            raise InputError(
                f"code at 0x{image.base_address:x}..0x{end:x} is outside the memory of {memory.size_bytes} bytes"
            )
        self.image = image
        self.n_tiles = n_tiles
        shape = (n_tiles, memory.size_bytes)
        self.memories = np.zeros(shape, np.uint8) if bytes_of_tiles is None else bytes_of_tiles
        if self.memories.shape != shape:
            raise InputError(f"memory has shape {self.memories.shape}, not {shape}")
        words = np.ascontiguousarray(image.words, np.int32)
        lines = np.ascontiguousarray(image.lines, np.int32)
        self._native = _NativeMachine(
            image.base_address,
            words,
            lines,
            self.memories,
            (memory.base, memory.end, memory.interleaved_base, memory.element_bytes, N_WORKERS),
            is_counting,
        )
        self.set_options()

    def memory(self, tile: int) -> NDArray[np.uint8]:
        """Return the memory of a tile, writable: byte 0 is at its map's `base`."""
        return self.memories[tile]

    def set_options(
        self,
        *,
        cycle_limit: int = DEFAULT_CYCLE_LIMIT,
        round_robin: bool = False,
        watch_writes: bool = False,
        stack_top: int = 0,
        worker_stack_bytes: int = 0,
    ) -> None:
        """Set how vertices run from now on.

        A vertex that takes more cycles than the limit is a trap. `round_robin`: workers take turns, a bundle each,
        instead of running one after another: the same results unless one reads what another writes. `watch_writes`:
        two workers writing into one 32-bit word is a trap. Stacks grow down: worker w's from `stack_top - w *
        worker_stack_bytes` (`$mworker_base`), the supervisor's from below all of those (`$sp`).
        """
        self._native.set_options(cycle_limit, round_robin, watch_writes, stack_top, worker_stack_bytes)

    def set_trace(self, write: Callable[[str], None] | None) -> None:
        """Call `write` with one line per bundle: cycle, tile, context (`w0`..`w5`, `s0`), address, instruction."""
        self._native.set_trace(write)

    def run_vertex(self, tile: int, entry: int, state: int, kind: CodeletKind = "multi") -> int:
        """Run a vertex and return its cycles; raises `Trap`. See `run_vertices`."""
        return int(self.run_vertices([tile], [entry], [state], kind)[0])

    def count(self, entry: int, state: int, words: bytes, kind: CodeletKind = "multi") -> int | None:
        """Return the cycles of a vertex of tile 0 whose `words` are written to `state` first; None where it traps.

        Threads may share a machine whose vertices are only counted.
        """
        cycles = self._native.count(entry, state, words, kind == "supervisor")
        return None if cycles < 0 else cycles

    def run_vertices(
        self,
        tiles: NDArray[np.int32] | Sequence[int],
        entries: NDArray[np.int64] | Sequence[int],
        states: NDArray[np.int64] | Sequence[int],
        kind: CodeletKind = "multi",
    ) -> NDArray[np.int64]:
        """Run one vertex per row, in order, and return the cycles of each.

        `multi`: six workers start at the entry with the state's address in `$mvertex_base`; `supervisor`: called with
        it in `$m0`. Raises `Trap` at the first instruction that cannot be executed; vertices before it are done.
        """
        at = np.ascontiguousarray(tiles, np.int32)
        cycles = np.zeros(len(at), np.int64)
        done = self._native.run_vertices(
            at,
            np.ascontiguousarray(entries, np.uint32),
            np.ascontiguousarray(states, np.uint32),
            kind == "supervisor",
            cycles,
        )
        if done < len(at):
            raise self._trap(done)
        return cycles

    def registers(self, tile: int, worker: int = -1) -> Registers:
        """Return the registers of a worker, or of the supervisor for -1."""
        values = self._native.registers(tile, worker)
        return Registers(values[:16], values[16:32], values[32:])

    def set_register(self, tile: int, worker: int, name: str, value: int) -> None:
        """Set `m0`..`m11`, `a0`..`a7`, accumulator `acc0`..`acc31` or `tas` to a 32-bit pattern."""
        kind = name.rstrip("0123456789")
        number = {"m": 0, "a": 16, "acc": 32, "tas": 64}[kind] + int(name[len(kind) :] or "0")
        self._native.set_register(tile, worker, number, value)

    @property
    def slots(self) -> int:
        """Return the issue slots used so far, of all workers and supervisors."""
        return self._native.slots()

    def _trap(self, vertex: int) -> Trap:
        """Return the native trap as an exception."""
        found = self._native.trap()
        assert found is not None
        cause, message, address, pc, line, tile, worker, cycle = found
        who = f"worker {worker}" if worker >= 0 else "supervisor"
        trap = Trap(
            f"{cause}: {message}",
            location=f"tile {tile} {who} pc 0x{pc:x} cycle {cycle} {self.image.place_in_source(line)}",
        )
        trap.cause, trap.address, trap.pc, trap.line = cause, address, pc, line
        trap.tile, trap.worker, trap.cycle, trap.vertex = tile, worker, cycle, vertex
        return trap
