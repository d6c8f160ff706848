"""Small device programs by hand, and a machine that runs their vertices as Python functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import Codelet, CodeletKind, Field
from t10.core.device import (
    ComputeSet,
    Copy,
    CopyKind,
    DeviceProgram,
    Exchange,
    Execute,
    HostPiece,
    HostTensor,
    MemoryMap,
    OperatorProgram,
    Pattern,
    Reference,
    Repeat,
    Variable,
    VertexGroup,
)
from t10.errors import SimTrap
from t10.isa.image import Image

BASE, DATA, END = 0x4C000, 0x80000, 0xE8000
N_TILES, N = 4, 6
CYCLES = 100
VertexFunction = Callable[[NDArray[np.uint8], NDArray[np.uint32]], int]
NO_FILLS = np.zeros((0, 5), np.int32)
NO_VALUES = np.zeros(0, np.int32)
MEMORY = MemoryMap(
    base=BASE,
    code=BASE,
    state=0x5C000,
    scratch=0x60000,
    stack=0x62000,
    exchange=0x64000,
    free=0x66000,
    data=0x70000,
    end=END,
)


@dataclass
class PythonMachine:
    """Runs vertices whose code is a Python function by entry address: (memory, words) to cycles."""

    n_tiles: int
    functions: dict[int, VertexFunction]
    memories: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    trace: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        self.memories = [np.zeros(END - BASE, np.uint8) for _ in range(self.n_tiles)]

    def memory(self, tile: int) -> NDArray[np.uint8]:
        return self.memories[tile]

    def set_trace(self, write: Callable[[str], None] | None) -> None:
        self.trace = write

    def run_vertices(
        self,
        tiles: NDArray[np.int32],
        entries: NDArray[np.int64],
        states: NDArray[np.int64],
        kind: CodeletKind,
    ) -> NDArray[np.int64]:
        assert kind in ("multi", "supervisor")
        cycles: list[int] = []
        for tile, entry, state in zip(tiles, entries, states, strict=True):
            memory = self.memories[int(tile)]
            words = memory[int(state) - BASE :][:64].view(np.uint32)
            try:
                cycles.append(self.functions[int(entry)](memory, words) + int(tile))
            except ZeroDivisionError as error:
                raise SimTrap(f"no such instruction on tile {int(tile)}") from error
        return np.array(cycles, np.int64)


def floats(memory: NDArray[np.uint8], address: np.uint32, n: int) -> NDArray[np.float32]:
    """Return n f32 elements at an address of a tile."""
    return memory[int(address) - BASE :][: 4 * n].view(np.float32)


def add(memory: NDArray[np.uint8], words: NDArray[np.uint32]) -> int:
    """out[i] += in[i]; words: in, out, n."""
    n = int(words[2])
    floats(memory, words[1], n)[:] += floats(memory, words[0], n)
    return CYCLES


ADD = Codelet(
    "Add",
    "multi",
    (Field("x", "in", "f32"), Field("y", "inout", "f32"), Field("n", "u32")),
    assembly="",
    cpp_reference="",
    summary="y += x",
)
IMAGE = Image(BASE, np.zeros((0, 10), np.int32), {ADD.entry: BASE}, {}, np.zeros(0, np.int32))


def run_row(
    source_tile: int, target_tile: int, n_bytes: int, source: int = 0, at: int = 0, to: int = 0
) -> list[int]:
    """Return a row of a pattern: one contiguous piece."""
    return [source, source_tile, at, target_tile, to, n_bytes, 1, 0, 0]


def pattern(key: str, rows: list[list[int]]) -> Pattern:
    """Return a pattern of runs."""
    return Pattern(key, np.array(rows, np.int32).reshape(-1, 9), NO_FILLS, NO_VALUES)


def copy(name: str, kind: CopyKind, source: str, target: str, key: str) -> Copy:
    """Return a copy of one source."""
    return Copy(name, "ring", kind, (source,), target, "f32", key, 4 * N, 250)


def host(name: str, variable: str, shape: tuple[int, ...]) -> HostTensor:
    """Return a host tensor that lies tile after tile in a variable."""
    elements = np.arange(N_TILES * N, dtype=np.int32).reshape(N_TILES, N)
    return HostTensor(name, "f32", shape, (HostPiece(variable, elements),))


def ring_program() -> DeviceProgram:
    """Return the sum over a ring: every tile ends with the sum of all tiles' vectors of N elements.

    x moves round the ring through a buffer, N_TILES - 1 times; y adds what comes.
    """
    ring = [run_row((tile + 1) % N_TILES, tile, 4 * N) for tile in range(N_TILES)]
    stay = [run_row(tile, tile, 4 * N) for tile in range(N_TILES)]
    words = (Reference("x", 0), Reference("y", 0), N)
    group = VertexGroup("Add", tuple(range(N_TILES)), words, 0x5C000, CYCLES)
    steps = (
        Exchange("start"),
        Repeat(N_TILES - 1, (Exchange("shift"), Exchange("copy_out"), Execute("add"))),
    )
    return DeviceProgram(
        name="ring",
        chip="test-4",
        n_tiles=N_TILES,
        memory=MEMORY,
        variables=(
            Variable("x", "input", "f32", (N,), N_TILES, DATA),
            Variable("y", "output", "f32", (N,), N_TILES, DATA + 64),
            Variable("buffer", "buffer", "f32", (N,), N_TILES, 0x70000),
        ),
        codelets=(ADD,),
        compute_sets=(ComputeSet("add", "ring", "sub_task", (group,), CYCLES + 40),),
        patterns=(pattern("ring", ring), pattern("stay", stay)),
        copies=(
            copy("start", "relayout", "x", "y", "stay"),
            copy("shift", "shift", "x", "buffer", "ring"),
            copy("copy_out", "copy_out", "buffer", "x", "stay"),
        ),
        operators=(OperatorProgram("ring", steps),),
        weights=(),
        inputs=(host("in", "x", (N_TILES, N)),),
        outputs=(host("out", "y", (N_TILES, N)),),
    )
