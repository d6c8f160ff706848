"""Narrowing to f16 as the tile does: what is finite in f32 beyond the range becomes the largest, infinities stay.

No f16 instruction of the tile makes an infinity of finite numbers (FP_CTL.NANOO is off); the plan simulator follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from t10.core.arrays import Array

LARGEST = np.finfo(np.float16).max


def narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return values converted to a type; on the way to f16 finite ones stay finite."""
    with np.errstate(all="ignore"):
        result = values.astype(dtype, copy=False)
    return _clipped(result, values) if dtype == np.float16 and values.dtype != dtype else result


def clipped(result: Array, operation: Callable[..., Array], operands: Sequence[Array]) -> Array:
    """Return an operation's result of f16, without infinities that it has only because f16 is narrow."""
    if result.dtype != np.float16 or not np.isinf(result).any():
        return result
    wide = [x.astype(np.float32) if x.dtype == np.float16 else x for x in operands]
    with np.errstate(all="ignore"):
        return _clipped(result, operation(*wide))


def _clipped(result: Array, wide: Array) -> Array:
    if wide.dtype.kind == "b" or not np.isinf(result).any():
        return result
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(wide.astype(np.float32))
    return np.where(np.isinf(result) & is_finite, np.copysign(LARGEST, result), result)
