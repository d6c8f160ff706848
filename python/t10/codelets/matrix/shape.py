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
from t10.codelets.matrix.stream import STEPPING, Access, Kit

N_WORKERS = 6
FRAME_INPUT, FRAME_OUTPUT, FRAME_STATE, FRAME_SOURCE, FRAME_TARGET, FRAME_LINES = range(6)
"""Words of the supervisor's frame: addresses of input, output and the vertex's words; what is copied, where to, how."""
FIRST_COUNTER = 6
SHARE_WORDS = 6
LINE_WORDS = ("lines", "planes", "line_step", "plane_step", "element_step", "groups", "pitch")
"""Words that describe the lines of an operand to copy (see `copying`)."""
Width = Literal[8, 16]


@dataclass(frozen=True, slots=True)
class Load:
    """How a block of weights is loaded: `width_bytes` at a time, channel by channel.

    `skip_words` words of 8 bytes lie between one channel's words and the next one's: they are loaded as well and
    overwritten; None where setting the address anew is faster.
    """

    width_bytes: Width
    skip_words: int | None

    @property
    def name(self) -> str:
        """Return the way as a part of names."""
        way = (
            "rows"
            if self.skip_words is None
            else "whole"
            if not self.skip_words
            else f"skip{self.skip_words}_"
        )
        return f"{way}{8 * self.width_bytes}"


@dataclass(frozen=True, slots=True)
class Stage:
    """Which inputs are copied into scratch memory: the streaming one once, weights for every block of columns.

    `rest` are the elements of a line's last, partial word; `zero_words` words of zeros follow.
    """

    x: bool
    w: bool
    rest: int
    zero_words: int

    @property
    def name(self) -> str:
        """Return the stage as a part of names."""
        return f"copy{'x' if self.x else ''}{'w' if self.w else ''}{self.rest}{self.zero_words}"


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
    def accesses(self) -> frozenset[Access]:
        """Return the accesses of its row loops."""
        begin = (self.begin_access,) if self.begins else ()
        return frozenset(begin + ((self.sum_access,) if self.adds else ()))

    @property
    def has_pace(self) -> bool:
        """Return whether a row loop uses packed addresses."""
        return bool(self.accesses - STEPPING)

    @property
    def is_by_words(self) -> bool:
        """Return whether the output is accessed by 32-bit words."""
        return "word" in self.accesses

    def words(self, number: int) -> list[str]:
        """Return the names of the words of the pass of this number."""
        names = [f"pace{number}"] if self.has_pace else []
        if number:
            names += [f"{name}{number}" for name in ("x_at", "w_at", "out_at")]
        for level in range(self.levels):
            steps = ("x_step", "w_step", "out_step") if level < self.outs else ("x_step", "w_step")
            names += [f"{name}{number}_{level}" for name in ("count", *steps)]
        return names

    @property
    def name(self) -> str:
        """Return the pass as a part of the codelet's name."""
        begin = f"_{self.begin_access}" if self.begins else ""
        add = f"_add_{self.sum_access}" if self.adds else ""
        return f"k{self.kit.name}_{self.outs}{self.sums}_{self.load.name}{begin}{add}"


@dataclass(frozen=True, slots=True)
class Structure:
    """What the text of a codelet depends on.

    `has_segments` where rows are not evenly spaced; `has_few` where a loop may have fewer rows than the pipeline takes.
    """

    engine: Engine
    has_segments: bool
    has_few: bool
    passes: tuple[PassKind, ...]
    stage: Stage | None = None

    @property
    def copies_x(self) -> bool:
        """Return whether the streaming input is copied first."""
        return self.stage is not None and self.stage.x

    @property
    def copies_w(self) -> bool:
        """Return whether weights are copied for every block of columns."""
        return self.stage is not None and self.stage.w

    @property
    def name(self) -> str:
        """Return the codelet's name."""
        rows = ("few" if self.has_few else "") + ("segments" if self.has_segments else "rows")
        stage = (self.stage.name,) if self.stage else ()
        return "_".join(("Matrix", self.engine.name, *stage, rows, *(p.name for p in self.passes)))

    def words(self) -> tuple[str, ...]:
        """Return the names of the vertex's words in order."""
        names = ["x", "w", "out", "w_row", "share", "rest", "x_row", "out_row"]
        if self.has_segments:
            names += ["unit", "reciprocal", "segment_rows", "x_segment", "out_segment"]
        if self.stage:
            names += ["scratch", "w_copy_at"] if self.stage.w else ["scratch"]
            names += [f"x_{name}" for name in LINE_WORDS] if self.stage.x else []
        for number, kind in enumerate(self.passes):
            names += kind.words(number)
            names += [f"w_{name}{number}" for name in (*LINE_WORDS, "within")] if self.copies_w else []
            if self.has_segments and self.needs_jumps(number):
                names += [f"x_jump{number}", f"out_jump{number}"]
        return tuple(names)

    def needs_jumps(self, number: int) -> bool:
        """Return whether a row loop of a pass steps plain pointers."""
        return self.has_few or bool(self.passes[number].accesses & {"packed", *STEPPING})

    @property
    def first_share(self) -> int:
        """Return the word of the supervisor's frame where the workers' shares of segments begin."""
        return FIRST_COUNTER + max(kind.levels for kind in self.passes)

    @property
    def stack_bytes(self) -> int:
        """Return the bytes of the supervisor's frame."""
        words = self.first_share + (N_WORKERS * SHARE_WORDS if self.has_segments else 0)
        return -(-words // 2) * 8

    def word(self, name: str) -> int:
        """Return the number of a word."""
        return self.words().index(name)
