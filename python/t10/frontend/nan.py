"""Weights that are not numbers: one NaN makes NaN of all that is computed from it, so it is told before planning.

Infinities are fine: masks are made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import release
from t10.errors import InputError

CHECKED_MAPPED_BYTES = 256 << 20
"""How much is looked at of weights that are mapped from files: what is beyond is read when it is used, not before."""

_CHUNK = 1 << 22
_LARGEST_BITS = {"float16": 0x7C00, "bfloat16": 0x7F80}
"""The bits of infinity by type: a NaN has larger ones, its sign left out."""


def refuse_nan(weights: Mapping[str, NDArray[Any]], source: str) -> None:
    """Raise `InputError` for the first weight that holds a NaN, saying how many and where the first is."""
    mapped = 0
    for name, values in weights.items():
        mapped += values.nbytes if isinstance(values, np.memmap) else 0
        if mapped > CHECKED_MAPPED_BYTES and isinstance(values, np.memmap):
            continue
        is_wrong = has_nan(values)
        release(values)
        if is_wrong:
            wide = (
                np.asarray(values, np.float32) if values.dtype.name in _LARGEST_BITS else np.asarray(values)
            )
            places = np.argwhere(np.isnan(wide))
            first = "x".join(str(i) for i in places[0])
            raise InputError(
                f"{source}: weight {name!r} holds {len(places)} NaN among {values.size} elements, the first at {first}",
                hint="what is computed from it is NaN too; check how the model was made",
            )


def has_nan(values: NDArray[Any]) -> bool:
    """Return whether floating-point values hold a NaN; other types hold none."""
    infinity = _LARGEST_BITS.get(values.dtype.name)
    if infinity is None and values.dtype.kind != "f":
        return False
    flat = values.reshape(-1)
    for first in range(0, flat.size, _CHUNK):
        chunk = flat[first : first + _CHUNK]
        if infinity is not None:
            if int((chunk.view(np.uint16) & np.uint16(0x7FFF)).max()) > infinity:
                return True
        elif np.isnan(np.min(chunk)):
            return True
    return False
