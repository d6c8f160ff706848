"""Tables of integers in a side file, equal ones once, and numbers per tile as C++ expressions."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.device import PerTile

MAGIC = b"T10TABLE"
MOST_INLINE = 12
"""Numbers that are written in the program's text; longer lists go to the file."""

Ints = NDArray[np.int32]


class Tables:
    """Collects tables; `add` returns a table's number, the same for equal contents."""

    def __init__(self) -> None:
        """Begin without tables."""
        self.arrays: list[Ints] = []
        self.number_by_digest: dict[bytes, int] = {}
        self.expressions: dict[tuple[int, ...], str] = {}
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

    def span(self, values: NDArray[Any]) -> str:
        """Return the C++ expression of a table."""
        return f"b.table({self.add(values)})"

    def shared_span(
        self, values: NDArray[Any], kind: str = "", make: Callable[[NDArray[Any]], NDArray[Any]] | None = None
    ) -> str:
        """Return the C++ expression of the table that `make` makes of an array that must not change any more.

        The same array with the same `kind` of table is looked at once.
        """
        key = (id(values), kind)
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = (values, self.add(make(values) if make else values))
        return f"b.table({found[1]})"

    def per_tile(self, values: PerTile, is_bits: bool = False) -> str:
        """Return a number per tile as a C++ expression: a literal, steps, a short list, or a table."""
        if isinstance(values, int):
            return f"{values:#x}" if is_bits else literal(values)
        known = self.expressions.get(values)
        if known is None:
            known = self.expressions[values] = self._list(values)
        return known

    def _list(self, values: tuple[int, ...]) -> str:
        array = np.array(values, np.int64)
        differences = np.diff(array)
        if not len(differences) or (differences == differences[0]).all():
            step = int(differences[0]) if len(differences) else 0
            return f"steps({values[0]}, {step})" if step else literal(values[0])
        if len(values) <= MOST_INLINE:
            return f"{{{', '.join(map(literal, values))}}}"
        return self.span((array & 0xFFFFFFFF).astype(np.uint32).view(np.int32))

    def tiles(self, tiles: Sequence[int]) -> str:
        """Return a list of tiles as a C++ expression."""
        array = np.array(tiles, np.int64)
        steps = np.diff(array)
        if not len(steps) or (steps == steps[0]).all():
            step = int(steps[0]) if len(steps) else 1
            return (
                f"tiles({tiles[0]}, {len(tiles)})"
                if step == 1
                else f"tiles({tiles[0]}, {len(tiles)}, {step})"
            )
        if len(tiles) <= MOST_INLINE:
            return f"tiles({{{', '.join(map(str, tiles))}}})"
        return f"tiles({self.span(array)})"

    def write(self, path: Path) -> None:
        """Write all tables: magic, how many, where each begins and the last ends (in integers), then the integers."""
        starts = np.cumsum([0, *(array.size for array in self.arrays)], dtype=np.uint64)
        with path.open("wb") as file:
            file.write(MAGIC + struct.pack("<Q", len(self.arrays)) + starts.astype("<u8").tobytes())
            for array in self.arrays:
                file.write(np.ascontiguousarray(array, "<i4").data)


def literal(value: int) -> str:
    """Return a number as a C++ literal; bits beyond 31 are written in hexadecimal."""
    return str(value) if -(2**31) < value < 2**31 else f"{value & 0xFFFFFFFF:#x}"
