"""The structure of a codelet: everything its text depends on; the numbers are words of the vertex.

A codelet runs one pass over whole blocks, and another one over what is left of the inner axis where it is no multiple
of a block:

```
for every pass:
    for the levels that move the output (groups, further columns and rows, blocks of columns):
        for the levels that are reduced (window positions, blocks of the inner axis):
            load a block of weights
            six workers: all rows through the engine
```

Left-over blocks are whole ones that reach back over the one before. Along the inner axis the weights of what was summed
already are zero. Along the columns a sum that begins from zero gives the same again, one that adds has zero weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from t10.codelets.matrix.engine import BLOCK_WORDS, Engine
from t10.codelets.matrix.stream import STEPPING, Access, Kit
from t10.core.tile import N_WORKERS

(FRAME_INPUT, FRAME_OUTPUT, FRAME_STATE, FRAME_ADDS, FRAME_OPENING, FRAME_SOURCE, FRAME_TARGET, FRAME_LINES,
 FRAME_KEPT) = range(9)  # fmt: skip
"""Words of the supervisor's frame: addresses of input, output and the vertex's words; whether sums begin by adding, and
the workers' entry for that; what is copied, where to, how; registers kept for the caller (two)."""
FRAME_FIRST = FRAME_ADDS
"""Where the first partials lie behind the output, in bytes, of sums that begin with a row of them."""
FIRST_COUNTER = FRAME_KEPT + 2
SHARE_WORDS = 6
ROUNDING_SHARE_WORDS = SHARE_WORDS + 1
"""Words of a worker's share of segments; one more where sums have room of their own."""
LINE_WORDS = (
    "lines", "planes", "line_step", "plane_step", "element_step", "groups", "left", "zeros", "pitch",
)  # fmt: skip
"""Words that describe the lines of an operand to copy (see `copying`)."""
Width = Literal[8, 16]
STRUCTURES = 64


@dataclass(frozen=True, slots=True)
class Load:
    """How a block of weights is loaded: `width_bytes` at a time, channel by channel, words `first` to `last` of each.

    `skip_words` words of 8 bytes lie between one channel's words and the next one's: they are loaded as well and
    overwritten; None where setting the address anew is faster.
    """

    width_bytes: Width
    skip_words: int | None
    first: int
    last: int

    @property
    def n_words(self) -> int:
        """Return the words loaded per channel."""
        return self.last - self.first

    @property
    def name(self) -> str:
        """Return the way as a part of names."""
        part = "" if self.n_words == BLOCK_WORDS else f"{self.first}{self.last}_"
        skip = self.skip_words
        way = "rows" if skip is None else f"skip{skip}_" if skip else "whole"
        return f"{way}{part}{8 * self.width_bytes}"


@dataclass(frozen=True, slots=True)
class Stage:
    """Which inputs are copied into scratch memory: the streaming one once, weights for every block of columns.

    `in_runs` where elements of a line are contiguous in all that is copied.
    """

    x: bool
    w: bool
    in_runs: bool

    @property
    def name(self) -> str:
        """Return the stage as a part of names."""
        return f"copy{'x' if self.x else ''}{'w' if self.w else ''}{'_runs' if self.in_runs else ''}"


@dataclass(frozen=True, slots=True)
class PassKind:
    """The structure of a pass: `outs` levels that move the output, `sums` that are reduced."""

    outs: int
    sums: int
    load: Load

    @property
    def levels(self) -> int:
        """Return the number of levels."""
        return self.outs + self.sums

    def words(self, number: int) -> list[str]:
        """Return the names of the words of the pass of this number."""
        names = [f"{name}{number}" for name in ("x_at", "w_at")] if number else []
        for level in range(self.levels):
            steps = ("x_step", "w_step", "out_step") if level < self.outs else ("x_step", "w_step")
            names += [f"{name}{number}_{level}" for name in ("count", *steps)]
        return names

    @property
    def name(self) -> str:
        """Return the pass as a part of the codelet's name."""
        return f"{self.outs}{self.sums}_{self.load.name}"


@dataclass(frozen=True, slots=True)
class Structure:
    """What the text of a codelet depends on.

    `begin` and `add` are the accesses of the row loops that begin from zero and that add, None where there is none;
    where there are both, a word tells how sums begin. `has_segments` where rows are not evenly spaced; `has_few` where
    a loop may have fewer rows than the pipeline takes; `overlaps` where the last block of columns reaches back;
    `is_wide` where loops that add load the first partials 16 bytes at a time; `end` is the access of the loop that
    rounds sums of several blocks, which begin and are added to in a place of their own; `has_first` where sums begin
    with a row of partials, which are brought into scratch memory.
    """

    engine: Engine
    kit: Kit
    has_segments: bool
    has_few: bool
    overlaps: bool
    begin: Access | None
    add: Access | None
    passes: tuple[PassKind, ...]
    stage: Stage | None = None
    is_wide: bool = False
    end: Access | None = None
    has_first: bool = False

    @property
    def accesses(self) -> frozenset[Access]:
        """Return the accesses of the row loops."""
        return frozenset(access for access in (self.begin, self.add, self.end) if access is not None)

    @property
    def has_both(self) -> bool:
        """Return whether sums may begin from zero or by adding, as a word tells."""
        return (
            self.begin is not None
            and self.add is not None
            and not self.engine.rounding
            and not self.has_first
        )

    @property
    def has_pace(self) -> bool:
        """Return whether a row loop uses packed addresses."""
        return bool(self.accesses - STEPPING)

    @property
    def is_by_words(self) -> bool:
        """Return whether the output is accessed by 32-bit words."""
        return "word" in self.accesses

    @property
    def needs_jumps(self) -> bool:
        """Return whether a row loop steps plain pointers."""
        return self.has_few or bool(self.accesses & {"packed", *STEPPING})

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
        parts = ["Matrix", self.engine.name, f"k{self.kit.name}", rows]
        parts += [self.stage.name] if self.stage else []
        parts += [f"{'first' if self.has_first else 'begin'}_{self.begin}"] if self.begin else []
        parts += [f"add_{'wide_' if self.is_wide else ''}{self.add}"] if self.add else []
        parts += [f"end_{'wide_' if self.is_wide else ''}{self.end}"] if self.end else []
        parts += [kind.name for kind in self.passes]
        return "_".join([*parts, "overlap"] if self.overlaps else parts)

    def words(self) -> tuple[str, ...]:
        """Return the names of the vertex's words in order."""
        names = ["x", "w", "out", "w_row", "share", "rest", "x_row", "out_row"]
        names += ["pace"] if self.has_pace else []
        names += ["adds"] if self.has_both else []
        names += ["sums"] if self.engine.rounding else []
        names += ["first", "first_room", "first_share", "first_rest"] if self.has_first else []
        names += ["out_back"] if self.overlaps else []
        if self.has_segments:
            names += ["unit", "reciprocal", "segment_rows", "x_segment", "out_segment"]
            names += ["x_jump", "out_jump"] if self.needs_jumps else []
        if self.stage:
            names += ["scratch", "w_copy_at"] if self.stage.w else ["scratch"]
            names += ["w_skip"] if self.stage.w and self.overlaps else []
            names += [f"x_{name}" for name in LINE_WORDS] if self.stage.x else []
            names += [f"w_{name}" for name in LINE_WORDS] if self.stage.w else []
        for number, kind in enumerate(self.passes):
            names += kind.words(number)
            names += [f"w_back{number}", f"load_at{number}"] if self.overlaps else []
            names += [f"w_within{number}"] if self.copies_w and number else []
        return tuple(names)

    @property
    def first_share(self) -> int:
        """Return the word of the supervisor's frame where the workers' shares of segments begin."""
        return FIRST_COUNTER + max(kind.levels for kind in self.passes)

    @property
    def share_words(self) -> int:
        """Return the words of a worker's share of segments."""
        return ROUNDING_SHARE_WORDS if self.engine.rounding else SHARE_WORDS

    @property
    def stack_bytes(self) -> int:
        """Return the bytes of the supervisor's frame."""
        words = self.first_share + (N_WORKERS * self.share_words if self.has_segments else 0)
        return -(-words // 2) * 8

    def sets_addresses(self, kind: PassKind) -> bool:
        """Return whether the weights of every channel of a pass are loaded by an address of their own, from the first.

        The address then goes on from channel to channel, and from a block's last one to the next block.
        """
        is_one = self.kit.columns(self.engine) == 1
        return not self.overlaps and kind.load.skip_words is None and not is_one

    def channels_ahead(self, kind: PassKind, level: int) -> int:
        """Return by how many channels the address of weights is ahead when it moves on at a level of a pass.

        In the innermost level it stands at the last channel; after it at the second one of what would come next.
        """
        if not self.sets_addresses(kind):
            return 0
        if level == kind.levels - 1:
            return self.kit.columns(self.engine) - 1
        is_anew = self.copies_w and level < kind.outs
        return int(level == kind.levels - 2 and not is_anew)

    def word(self, name: str) -> int:
        """Return the number of a word."""
        return _places(self)[name]


@lru_cache(maxsize=STRUCTURES)
def _places(structure: Structure) -> dict[str, int]:
    """Return the numbers of a structure's words."""
    return {name: place for place, name in enumerate(structure.words())}
