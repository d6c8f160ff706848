"""A device program: variables on tiles, vertices, exchanges and their order. What is emitted and what is executed.

All tiles run the same program in lock step:

```
Exchange(relayout a)  Exchange(setup b)  Execute(fill c)
Repeat(S - 1) { Execute(matmul)  Exchange(shift b)  Exchange(copy_out b) }  Execute(matmul)
Exchange(reduce c)  Execute(combine c)  Execute(epilogue c)
```

Source: T10 §4.4: the three device interfaces are allocate (`Variable`), compute (`ComputeSet`) and shift (`Copy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from t10.core.codelet import Codelet

VertexKind = Literal["fill", "sub_task", "combine", "epilogue"]
CopyKind = Literal["relayout", "setup", "shift", "copy_out", "reduce"]
VariableRole = Literal["input", "output", "weight", "activation", "partial", "buffer", "scratch"]

MOST_TRIPS = 1 << 20
"""Of a `Repeat`."""

PerTile = int | tuple[int, ...]
"""A number that all tiles of a group share, or one per tile in the group's order."""

RUN_COLUMNS = ("source", "source_tile", "source_offset", "target_tile", "target_offset", "n_bytes", "count",
               "source_step", "target_step")  # fmt: skip
"""Columns of `Pattern.runs`: number of the source variable, tile and byte offset in it on both sides, bytes of one
piece, how many pieces, and byte distances between them. A piece is at least one element long."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Memory of tiles `0 .. n_tiles - 1`: `shape` elements of `dtype` at `address_bytes` of the tile's address space.

    `comment` says which rTensor it is, for people.
    """

    name: str
    role: VariableRole
    dtype: str
    shape: tuple[int, ...]
    n_tiles: int
    address_bytes: int
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A word that points into a variable: its name and the byte offset, which may differ from tile to tile."""

    variable: str
    offset_bytes: PerTile


@dataclass(frozen=True, slots=True)
class VertexGroup:
    """The same codelet on `tiles` (ascending), one vertex each.

    `words` has one entry per field of the codelet: a number per tile or a reference; f32 fields hold their bits.
    `state_address_bytes` is where the vertices' words lie, the same on all tiles; `cycles` is the modelled time.
    """

    codelet: str
    tiles: tuple[int, ...]
    words: tuple[PerTile | Reference, ...]
    state_address_bytes: int
    cycles: int = 0


@dataclass(frozen=True, slots=True)
class ComputeSet:
    """Vertices that run at once, at most one per tile. `operator` is what they compute for."""

    name: str
    operator: str
    kind: VertexKind
    groups: tuple[VertexGroup, ...]
    cycles: int
    comment: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """Who sends what to whom: `runs` (n, 9) int32, columns `RUN_COLUMNS`, sorted by target tile, then target offset.

    `fills` (n, 5) int32 writes constants: target tile, offset, bytes of one piece, count, step; `fill_values` (n,) are
    indices into `constants`, spelled as in `ScalarOp.attribute`. What a tile takes from itself is an ordinary run.
    `key` is a digest of all that: patterns with one key are equal.
    """

    key: str
    runs: NDArray[np.int32]
    fills: NDArray[np.int32]
    fill_values: NDArray[np.int32]
    constants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """One exchange phase for `operator`: `pattern` (a key) applied to variables. No byte is both read and written.

    `received_bytes` is the most that any tile takes from others; `cycles` modelled; `dtype` the type of the elements.
    """

    name: str
    operator: str
    kind: CopyKind
    sources: tuple[str, ...]
    target: str
    dtype: str
    pattern: str
    received_bytes: int
    cycles: int
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a compute set by name."""

    compute_set: str


@dataclass(frozen=True, slots=True)
class Exchange:
    """Run a copy by name."""

    copy: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run `body` `count` times."""

    count: int
    body: tuple[Step, ...]


Step = Execute | Exchange | Repeat


@dataclass(frozen=True, slots=True)
class OperatorProgram:
    """The steps of one operator, under its name."""

    operator: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class HostTensor:
    """What crosses the host's link: tensor `name` of `shape` elements of `dtype`, and the variables it lies in.

    An input or weight is written to every slot that its one piece names. An output is read from the first slot that
    holds an element; it may have several pieces.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: tuple[HostPiece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostPiece:
    """Part of a host tensor: which of its elements lie in the slots of a variable.

    `elements` (tiles, slots) int32 holds row-major element numbers, -1 for slots that hold `fill` (inputs, weights) or
    nothing of it (outputs). An output's piece without a variable has constants: elements (1, n) that are `fill`.
    Pieces of equal content share the array.
    """

    variable: str
    elements: NDArray[np.int32]
    fill: str = "0"


@dataclass(frozen=True, slots=True)
class MemoryMap:
    """Where the regions of every tile's memory begin, as addresses in this order; `end` is that of the memory.

    `state` holds the words of vertices, `scratch` what codelets ask for, `stack` the supervisor's and the workers'
    stacks, `exchange` the estimated code of exchanges, `data` all variables. What is left before `data` is free.
    """

    base: int
    code: int
    state: int
    scratch: int
    stack: int
    exchange: int
    free: int
    data: int
    end: int

    @property
    def program_bytes(self) -> int:
        """Return the bytes of everything but data: what the `reserved_bytes` of a plan must cover."""
        return self.free - self.base

    @property
    def regions(self) -> tuple[tuple[str, int, int], ...]:
        """Return (name, address, bytes) of every region."""
        names = ("code", "state", "scratch", "stack", "exchange", "free", "data")
        starts = [getattr(self, name) for name in names]
        return tuple(
            (name, start, after - start)
            for name, start, after in zip(names, starts, [*starts[1:], self.end], strict=True)
        )


@dataclass(frozen=True, slots=True)
class DeviceProgram:
    """A whole model for one chip."""

    name: str
    chip: str
    n_tiles: int
    memory: MemoryMap
    variables: tuple[Variable, ...]
    codelets: tuple[Codelet, ...]
    compute_sets: tuple[ComputeSet, ...]
    patterns: tuple[Pattern, ...]
    copies: tuple[Copy, ...]
    operators: tuple[OperatorProgram, ...]
    weights: tuple[HostTensor, ...]
    inputs: tuple[HostTensor, ...]
    outputs: tuple[HostTensor, ...]
    graph_comment: str = ""
    attributes: tuple[tuple[str, Any], ...] = ()
