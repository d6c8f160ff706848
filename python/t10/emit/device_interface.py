"""The interface between the compute-shift level and a chip: allocate, compute, shift (T10 §4.4).

```
operator_body (core.program)   Arrive  Fill  SubTask  Shift  Reduce  Epilogue
   │ emit.lower, nest, ...     which cores do what on which bytes, per statement
   ▼
DeviceInterface                variable          execute             exchange
                               (allocate)        (compute)           (shift)
   ▼
emit.builder.Builder           variables         jobs                patterns, copies
   │ emit.link                 addresses         codelets, vertices                        -> DeviceProgram of an IPU
```

Nothing above the interface knows workers, memory elements or instructions. docs/backends.md shows how to write another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from t10.core.device import CopyKind, Exchange, Execute, Pattern, VariableRole, VertexKind

if TYPE_CHECKING:
    from t10.core.vertex_nest import VertexNest, Work


class DeviceInterface(ABC):
    """What a backend implements. Cores are numbered from 0; what is added under an equal name or content is one."""

    __slots__ = ()

    @abstractmethod
    def variable(
        self,
        name: str,
        role: VariableRole,
        dtype: str,
        shape: tuple[int, ...],
        n_tiles: int,
        comment: str = "",
    ) -> str:
        """Allocate: `shape` elements of `dtype` on each of the first `n_tiles` cores, under a name, which is returned.

        The plan says at which times the buffer of that name is live, and places it.
        """

    @abstractmethod
    def execute(
        self, operator: str, kind: VertexKind, nest: VertexNest, work: Work, cycles: int, comment: str = ""
    ) -> Execute:
        """Compute: every core of `work` runs the loop nest on its box; returns the step. No core touches another.

        `cycles` is the modelled time. Raises `UnsupportedOpError` for a nest that no core can compute.
        """

    @abstractmethod
    def exchange(
        self,
        operator: str,
        kind: CopyKind,
        what: str,
        sources: tuple[str, ...],
        target: str,
        pattern: Pattern,
        cycles: int,
        comment: str = "",
    ) -> Exchange:
        """Shift: all cores exchange bytes of `sources` into `target` as `pattern` says; returns the step.

        `what` tells phases of one operator and kind apart; `cycles` is the modelled time.
        """
