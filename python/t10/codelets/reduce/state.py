"""A vertex's state under construction: fields and their words, added when code first needs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from t10.codelets.assembly import Assembly
from t10.codelets.reduce.numbers import Numbers
from t10.core.codelet import Codelet, Compiled, Field, FieldKind, Pointer, Scratch

Number = Callable[[Numbers], int]
"""What a word is for a task; it depends on nothing else."""


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """The code of all tasks of one structure, and what its words are."""

    codelet: Codelet
    words: tuple[Pointer | Scratch | Number, ...]
    scratch_bytes: int

    def compiled(self, numbers: Numbers) -> Compiled:
        """Return a task of these numbers as code."""
        words = (word(numbers) if callable(word) else word for word in self.words)
        return Compiled(self.codelet, tuple(words), self.scratch_bytes)


class State:
    """Fields in the order in which they were asked for, and a word for each."""

    def __init__(self) -> None:
        """Begin with an empty state."""
        self._fields: dict[str, Field] = {}
        self._words: list[Pointer | Scratch | Number] = []

    @property
    def fields(self) -> tuple[Field, ...]:
        """Return the fields."""
        return tuple(self._fields.values())

    @property
    def words(self) -> tuple[Pointer | Scratch | Number, ...]:
        """Return the words."""
        return tuple(self._words)

    def pointer(
        self,
        name: str,
        kind: FieldKind,
        word: Pointer | Scratch,
        dtype: str = "",
        align_bytes: int = 4,
        *,
        is_interleaved: bool = False,
    ) -> None:
        """Add a pointer."""
        self._fields[name] = Field(name, kind, dtype, align_bytes, is_interleaved)
        self._words.append(word)

    def number(self, name: str, value: Number, kind: FieldKind = "u32") -> int:
        """Return the place of a number's word, adding it where it is new."""
        if name not in self._fields:
            self._fields[name] = Field(name, kind)
            self._words.append(value)
        return self.place(name)

    def place(self, name: str) -> int:
        """Return the place of a field's word."""
        return list(self._fields).index(name)

    def has(self, name: str) -> bool:
        """Return whether there is such a field."""
        return name in self._fields

    def load(self, text: Assembly, register: str, name: str) -> None:
        """Write the load of a field into a register."""
        text.op(f"ld32 {register}, $mvertex_base, $mzero, {self.place(name)}", name)
