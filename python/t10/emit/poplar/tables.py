"""Tables of integers in a side file, equal ones once, and numbers per tile as C++ expressions."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.device import PerTile
from t10.errors import InputError

MAGIC = b"T10TABLE"
WORD_BYTES = 8
"""Of the numbers before the tables."""
MOST_INLINE = 12
"""Numbers that are written in the program's text; longer lists go to the file."""

Ints = NDArray[np.int32]
Compact = int | tuple[int, ...] | dict[str, int]
"""Numbers in their shortest form, as program.json states them; C++ expressions are made from it."""


class Tables:
    """Collects tables; `add` returns a table's number, the same for equal contents."""

    def __init__(self) -> None:
        """Begin without tables."""
        self.arrays: list[Ints] = []
        self.number_by_digest: dict[bytes, int] = {}
        self.forms: dict[tuple[int, ...], Compact] = {}
        # The same array is asked about once per layer of a model: kept here, so that no other takes its identity.
        self.known: dict[tuple[int, str], tuple[NDArray[Any], int]] = {}

    def add(self, values: NDArray[Any]) -> int:
        """Return the number of a table with these values, row by row."""
        array = np.ascontiguousarray(values, np.int32).reshape(-1)
        digest = hashlib.blake2b(
            array.tobytes() if array.size < MOST_INLINE else array.data, digest_size=16
        ).digest()
        number = self.number_by_digest.setdefault(digest, len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(array)
        return number

    def shared(
        self, values: NDArray[Any], kind: str = "", make: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    ) -> int:
        """Return the number of the table that `make` makes of an array that must not change any more.

        The same array with the same `kind` of table is looked at once.
        """
        key = (id(values), kind)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = (values, self.add(make(values) if make else values))
        return found[1]

    def compact(self, values: PerTile) -> Compact:
        """Return a number per tile in its shortest form: one number, steps, a short list, or a table."""
        if isinstance(values, int):
            return values
        known = self.forms.get(values)
        if known is None:
            known = self.forms[values] = self._form(values)
        return known

    def _form(self, values: tuple[int, ...]) -> Compact:
        array = np.array(values, np.int64)
        differences = np.diff(array)
        if not len(differences) or (differences == differences[0]).all():
            step = int(differences[0]) if len(differences) else 0
            return {"first": values[0], "step": step} if step else values[0]
        if len(values) <= MOST_INLINE:
            return values
        return {"table": self.add((array & 0xFFFFFFFF).astype(np.uint32).view(np.int32))}

    def per_tile(self, values: PerTile, is_bits: bool = False) -> str:
        """Return a number per tile as a C++ expression."""
        if is_bits and isinstance(values, int):
            return f"{values:#x}"
        form = self.compact(values)
        if isinstance(form, int):
            return literal(form)
        if isinstance(form, tuple):
            return f"{{{', '.join(map(literal, form))}}}"
        return table(form["table"]) if "table" in form else f"steps({form['first']}, {form['step']})"

    def compact_tiles(self, tiles: Sequence[int]) -> tuple[int, ...] | dict[str, int]:
        """Return a list of tiles in its shortest form: steps, a short list, or a table."""
        array = np.array(tiles, np.int64)
        steps = np.diff(array)
        if not len(steps) or (steps == steps[0]).all():
            return {"first": tiles[0], "count": len(tiles), "step": int(steps[0]) if len(steps) else 1}
        return tuple(tiles) if len(tiles) <= MOST_INLINE else {"table": self.add(array)}

    def tiles(self, tiles: Sequence[int]) -> str:
        """Return a list of tiles as a C++ expression."""
        form = self.compact_tiles(tiles)
        if isinstance(form, tuple):
            return f"tiles({{{', '.join(map(str, form))}}})"
        if "table" in form:
            return f"tiles({table(form['table'])})"
        tail = "" if form["step"] == 1 else f", {form['step']}"
        return f"tiles({form['first']}, {form['count']}{tail})"

    def write(self, path: Path) -> None:
        """Write all tables: magic, how many, where each begins and the last ends (in integers), then the integers."""
        starts = np.cumsum([0, *(array.size for array in self.arrays)], dtype=np.uint64)
        with path.open("wb") as file:
            file.write(MAGIC + struct.pack("<Q", len(self.arrays)) + starts.astype("<u8").tobytes())
            for array in self.arrays:
                file.write(np.ascontiguousarray(array, "<i4").data)


def read_tables(path: Path) -> list[Ints]:
    """Return the tables of a file, mapped; raises `InputError` where it does not hold what `Tables.write` writes."""
    try:
        if path.stat().st_size < len(MAGIC) + WORD_BYTES:
            raise InputError(f"{path} holds no tables")
        mapped = np.asarray(np.memmap(path, np.uint8, "r"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    head, n_bytes = len(MAGIC) + WORD_BYTES, mapped.size
    n_tables = int(mapped[len(MAGIC) : head].view("<u8")[0])
    data = head + WORD_BYTES * (n_tables + 1)
    if bytes(mapped[: len(MAGIC)]) != MAGIC or data > n_bytes:
        raise InputError(f"{path} holds no tables")
    starts = mapped[head:data].view("<u8").astype(np.int64)
    if starts[0] or (np.diff(starts) < 0).any() or data + 4 * int(starts[-1]) != n_bytes:
        raise InputError(f"{path} is damaged: its {n_tables} tables do not fill its {n_bytes:,} bytes")
    numbers = mapped[data:].view("<i4")
    return [numbers[first:last] for first, last in pairwise(starts.tolist())]


def table(number: int) -> str:
    """Return the C++ expression of a table."""
    return f"b.table({number})"


def literal(value: int) -> str:
    """Return a number as a C++ literal; bits beyond 31 are written in hexadecimal."""
    return str(value) if -(2**31) < value < 2**31 else f"{value & 0xFFFFFFFF:#x}"
