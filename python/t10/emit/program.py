"""A device program as values: what the `ipu` dialect writes down.

All tiles run the same program in lock step. A `Variable` is one piece of memory per tile at one address; a `ComputeSet`
runs one vertex per tile; a `Copy` is one exchange between tiles. `Step`s give their order:

```
Copy(relayout a)  Copy(setup b)  Execute(zero c)
Repeat(S - 1) { Execute(matmul)  Copy(shift b) }  Execute(matmul)
Copy(reduce c)  Execute(combine c)  Execute(epilogue c)
```

Source: T10 §4.4: the three device interfaces are allocate (`Variable`), compute (`ComputeSet`) and shift (`Copy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VertexKind = Literal["fill", "sub_task", "combine", "epilogue"]
CopyKind = Literal["relayout", "setup", "shift", "reduce"]
VariableRole = Literal["input", "output", "weight", "activation", "partial", "buffer"]


@dataclass(frozen=True, slots=True)
class Variable:
    """Memory of tiles `0 .. n_tiles - 1`: `shape` elements of `dtype` at `address_bytes` on each of them."""

    name: str
    role: VariableRole
    dtype: str
    shape: tuple[int, ...]
    n_tiles: int
    address_bytes: int


@dataclass(frozen=True, slots=True)
class ComputeSet:
    """One vertex on each of the first `n_tiles` tiles.

    `operator` is what it computes for; `box` the sub-task's extent per axis of that operator (empty for vertices that
    run over their variables); `fields` name the variables the vertex reads, the last one is what it writes; `cycles`
    is the modelled time of the slowest tile.
    """

    name: str
    operator: str
    kind: VertexKind
    n_tiles: int
    box: tuple[int, ...]
    fields: tuple[str, ...]
    cycles: int


@dataclass(frozen=True, slots=True)
class Copy:
    """One logical exchange for `operator`.

    `bytes` is the most that any tile receives, `rounds` how often the shift buffer is filled, `cycles` modelled.
    `axis` and `direction` (+1, -1) are those of a shift; `axis` is -1 for the other kinds.
    """

    name: str
    operator: str
    kind: CopyKind
    sources: tuple[str, ...]
    target: str
    bytes: int
    cycles: int
    rounds: int = 1
    axis: int = -1
    direction: int = 1


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
class DeviceProgram:
    """A whole model for one chip."""

    chip: str
    n_tiles: int
    variables: tuple[Variable, ...]
    compute_sets: tuple[ComputeSet, ...]
    copies: tuple[Copy, ...]
    operators: tuple[OperatorProgram, ...]
