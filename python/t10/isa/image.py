"""What the assembler makes and the simulator runs: instructions at addresses. There is no binary encoding."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

MOST_OPERANDS = 8
SOLO, MAIN, AUX, SECOND, DATA = range(5)
"""Kinds of words: an instruction alone; halves of a bundle, main first; second word of a two-word instruction; data."""


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Assembled code: one row of `words` (n, 10) int32 per four bytes from `base_address` on.

    Its columns are kind, form and `operand0` to `operand7`. The form numbers `t10.isa.INSTRUCTIONS`; operands are
    register numbers (the lowest of a group) or immediate values (labels as absolute addresses); for DATA the word's
    value stands in `operand0`. `symbols` are addresses by name, `sizes` bytes by name (`.size`), `stack_bytes` those
    of DEF_STACK_USAGE; `lines` (n,) the source line of every word (from 1, 0 for none), for traces, and `text` all
    source lines. Of several files linked together, `text` holds the lines of all, and `files` tells how many of them
    stand before each file's.
    """

    base_address: int
    words: NDArray[np.int32]
    symbols: dict[str, int]
    sizes: dict[str, int]
    lines: NDArray[np.int32]
    text: tuple[str, ...] = ()
    stack_bytes: dict[str, int] = field(default_factory=dict[str, int])
    files: tuple[tuple[str, int], ...] = ()

    def place_in_source(self, line: int) -> str:
        """Return a line of the source for people: its number, in its file where there are several, and its text."""
        source = self.text[line - 1].strip() if 0 < line <= len(self.text) else ""
        name, before = next(((name, n) for name, n in reversed(self.files) if n < line), ("", 0))
        where = f"{name}:{line - before}" if name and line else f"line {line}"
        return f"{where}: {source}" if source else where

    @property
    def size_bytes(self) -> int:
        """Return the bytes it occupies."""
        return 4 * len(self.words)
