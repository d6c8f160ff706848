"""Element types: what Poplar calls them, what they are in C++, and their bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from t10.core.dtypes import numpy_dtype
from t10.core.scalar import parse_constant
from t10.errors import UnsupportedOpError


@dataclass(frozen=True, slots=True)
class PoplarType:
    """An element type: Poplar's name, the element type of a vertex field, and the type its C++ body works with.

    Poplar has no 64-bit integers on tiles: an element is `parts` Poplar elements, the low word first.
    """

    poplar: str
    field: str
    body: str
    size_bytes: int
    parts: int = 1


TYPES: dict[str, PoplarType] = {
    "f16": PoplarType("HALF", "half", "half", 2),
    "f32": PoplarType("FLOAT", "float", "float", 4),
    "i1": PoplarType("UNSIGNED_CHAR", "unsigned char", "unsigned char", 1),
    "i8": PoplarType("SIGNED_CHAR", "signed char", "signed char", 1),
    "ui8": PoplarType("UNSIGNED_CHAR", "unsigned char", "unsigned char", 1),
    "i16": PoplarType("SHORT", "short", "short", 2),
    "ui16": PoplarType("UNSIGNED_SHORT", "unsigned short", "unsigned short", 2),
    "i32": PoplarType("INT", "int", "int", 4),
    "ui32": PoplarType("UNSIGNED_INT", "unsigned", "unsigned", 4),
    "i64": PoplarType("INT", "int", "long long", 8, 2),
    "ui64": PoplarType("INT", "int", "unsigned long long", 8, 2),
    "index": PoplarType("INT", "int", "long long", 8, 2),
}
SCRATCH = TYPES["ui8"]


def poplar_type(dtype: str) -> PoplarType:
    """Return the type of an MLIR element type name; raises `UnsupportedOpError` for types no tile computes with."""
    found = TYPES.get(dtype)
    if found is None:
        raise UnsupportedOpError(
            f"element type {dtype} has no place on a tile (expected one of {', '.join(TYPES)})"
        )
    return found


def constant_bits(text: str, dtype: str) -> int:
    """Return the bits of one element of `dtype` that holds a constant, spelled as in `ScalarOp.attribute`."""
    of_type = numpy_dtype(dtype)
    value = parse_constant(text)
    if of_type.kind in "iu":
        return int(value) & ((1 << 8 * of_type.itemsize) - 1)
    return int.from_bytes(np.array(value).astype(of_type).tobytes(), "little")
