"""Element types: their MLIR names, sizes in bytes and numpy equivalents."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.errors import UnsupportedOpError

NUMPY_BY_DTYPE: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "ui8": np.dtype(np.uint8),
    "ui16": np.dtype(np.uint16),
    "ui32": np.dtype(np.uint32),
    "ui64": np.dtype(np.uint64),
    "index": np.dtype(np.int64),
}
"""numpy type of every element type that can be planned; `bf16` and 8-bit floats have none and are refused."""
_ADDED = 2
"""What `isbuiltin` is of types that are not numpy's own."""
_SIZES = {name: kind.itemsize for name, kind in NUMPY_BY_DTYPE.items()}


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the numpy type of an MLIR element type name; raises `UnsupportedOpError` for types without one."""
    found = NUMPY_BY_DTYPE.get(dtype)
    if found is None:
        supported = ", ".join(NUMPY_BY_DTYPE)
        raise UnsupportedOpError(
            f"element type {dtype} is not supported (expected one of {supported})",
            hint="convert the model to f32 or f16 first",
        )
    return found


def in_numpys_types(array: NDArray[Any], wanted: np.dtype[Any]) -> NDArray[Any]:
    """Return values of a type that others added to numpy (float8, int4) in a type that holds them all.

    That is `wanted` if it does, otherwise f32. Values of numpy's own types are returned as they are.
    """
    if array.dtype.isbuiltin != _ADDED:
        return array
    wide = array.astype(np.float32)
    if wanted.kind not in "fiu":
        return wide
    with np.errstate(over="ignore", invalid="ignore"):
        fitting = wide.astype(wanted)
    return fitting if np.array_equal(fitting.astype(np.float32), wide, equal_nan=True) else wide


def size_bytes(dtype: str) -> int:
    """Return the size of one element in bytes."""
    found = _SIZES.get(dtype)
    return numpy_dtype(dtype).itemsize if found is None else found


def is_float(dtype: str) -> bool:
    """Return whether the element type is a floating-point type."""
    return numpy_dtype(dtype).kind == "f"
