"""The structure of a codelet: everything its text depends on; the numbers are words of the vertex.

A codelet runs passes one after another, one for whole blocks and one for what is left over along the reduced axis, the
columns, or both:

```
for every pass:
    for the levels that move the output (groups, further columns and rows, blocks of columns):
        for the levels that are reduced (window positions, blocks of the reduced axis):
            load a block of weights
            six workers: all rows through the engine
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from t10.codelets.matrix.engine import Engine
from t10.codelets.matrix.stream import Access, Kit

N_WORKERS = 6
Load = Literal["rows64", "rows128", "whole64", "whole128"]
"""How a block of weights is loaded: channel by channel or in one go, 8 or 16 bytes at a time."""


@dataclass(frozen=True, slots=True)
class PassKind:
    """The structure of a pass: `outs` levels that move the output, `sums` that are reduced, whichever are left of both.

    `begins` tells that its first block of a sum begins from zero; `sums_on` that further blocks add to it.
    """

    kit: Kit
    outs: int
    sums: int
    begins: bool
    load: Load
    begin_access: Access
    sum_access: Access

    @property
    def levels(self) -> int:
        """Return the number of levels."""
        return self.outs + self.sums

    @property
    def adds(self) -> bool:
        """Return whether any block adds to what the output holds."""
        return not self.begins or self.sums > 0

    @property
    def name(self) -> str:
        """Return the pass as a part of the codelet's name."""
        begin = f"_{self.begin_access}" if self.begins else ""
        add = f"_add_{self.sum_access}" if self.adds else ""
        return f"k{self.kit.name}_{self.outs}{self.sums}_{self.load}{begin}{add}"


@dataclass(frozen=True, slots=True)
class Structure:
    """What the text of a codelet depends on.

    `has_segments` where rows are not evenly spaced; `has_few` where a loop may have fewer rows than the pipeline takes.
    """

    engine: Engine
    has_segments: bool
    has_few: bool
    passes: tuple[PassKind, ...]

    @property
    def name(self) -> str:
        """Return the codelet's name."""
        rows = ("few" if self.has_few else "") + ("segments" if self.has_segments else "rows")
        return "_".join(("Matrix", self.engine.name, rows, *(p.name for p in self.passes)))

    def words(self) -> tuple[str, ...]:
        """Return the names of the vertex's words in order."""
        names = ["x", "w", "out", "w_row"]
        for worker in range(N_WORKERS + 1 if self.has_segments else N_WORKERS):
            names += [f"x_first{worker}", f"out_first{worker}", f"rows{worker}"]
            if self.has_segments:
                names += [f"first_rows{worker}", f"x_next{worker}", f"out_next{worker}"]
        names += ["x_row", "out_row"]
        for number, kind in enumerate(self.passes):
            names += [f"{name}{number}" for name in ("pace", "x_jump", "out_jump", "x_at", "w_at", "out_at")]
            for level in range(kind.levels):
                names += [f"{name}{number}_{level}" for name in ("count", "x_step", "w_step", "out_step")]
        return tuple(names)

    def word(self, name: str) -> int:
        """Return the number of a word."""
        return self.words().index(name)
