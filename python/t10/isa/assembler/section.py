"""Sections: words and bytes gathered until their addresses are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from t10.isa.assembler.instruction import ZEROS, Row
from t10.isa.assembler.lines import Line, Problem
from t10.isa.image import DATA

WORD_BYTES: Final = 4
MOST_BYTES: Final = 1 << 21
"""More than a tile's memory: a bound for hostile `.space` and `.rept`."""


@dataclass(slots=True)
class Section:
    """A section: `rows` are its words, `origins` their lines; `partial` bytes of a word that is not full yet.

    A section that is not needed is left out, and nothing in it is looked at.
    """

    name: str
    index: int
    is_code: bool
    is_placed: bool
    alignment: int = WORD_BYTES
    rows: list[Row] = field(default_factory=list[Row])
    origins: list[Line] = field(default_factory=list[Line])
    partial: bytearray = field(default_factory=bytearray)
    is_needed: bool = True

    @property
    def is_in_image(self) -> bool:
        """Return whether the image holds it."""
        return self.is_placed and self.is_needed

    @property
    def n_bytes(self) -> int:
        """Return its length so far."""
        return WORD_BYTES * len(self.rows) + len(self.partial)

    def put_bytes(self, data: bytes, line: Line) -> None:
        """Append bytes."""
        if self.n_bytes + len(data) > MOST_BYTES:
            raise Problem(f"section {self.name} grows beyond {MOST_BYTES:,} bytes")
        self.partial += data
        whole = len(self.partial) // WORD_BYTES * WORD_BYTES
        for start in range(0, whole, WORD_BYTES):
            value = int.from_bytes(self.partial[start : start + WORD_BYTES], "little", signed=True)
            self.rows.append(data_row(value))
            self.origins.append(line)
        del self.partial[:whole]

    def align(self, n_bytes: int, filler: Row, line: Line) -> None:
        """Go on at a multiple of `n_bytes`, over instructions `filler` in code, over zeros in data."""
        self.alignment = max(self.alignment, n_bytes)
        if self.partial or not self.is_code:
            bound = min(n_bytes, WORD_BYTES) if self.is_code else n_bytes
            self.put_bytes(bytes(-self.n_bytes % bound), line)
        while self.n_bytes % n_bytes and not self.partial:
            self.rows.append(filler)
            self.origins.append(line)

    def finish(self, line: Line) -> None:
        """Fill the last word up with zeros."""
        if self.partial:
            self.put_bytes(bytes(-len(self.partial) % WORD_BYTES), line)

    def patch(self, offset: int, data: bytes) -> None:
        """Write bytes over what was put at `offset`."""
        for position, byte in enumerate(data, offset):
            row = self.rows[position // WORD_BYTES]
            word = bytearray(row[2].to_bytes(WORD_BYTES, "little", signed=True))
            word[position % WORD_BYTES] = byte
            self.rows[position // WORD_BYTES] = data_row(int.from_bytes(word, "little", signed=True))


def data_row(value: int) -> Row:
    """Return a word of data."""
    return (DATA, 0, value, *ZEROS[1:])  # pyright: ignore[reportReturnType] - ten numbers


def make_section(name: str, flags: str | None, index: int) -> Section:
    """Return an empty section; without flags, its name tells whether it holds code and is placed in memory."""
    if flags is None:
        is_code = name.split(".")[1:2] == ["text"]
        is_placed = is_code or name.split(".")[1:2] in (["data"], ["rodata"], ["bss"])
        return Section(name, index, is_code, is_placed)
    return Section(name, index, "x" in flags, "a" in flags)
