"""The numbers of the grid: extremes of a type, its full range, small numbers, and small ones with a few specials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

ValueClass = Literal["extreme", "full", "small", "sparse"]
VALUE_CLASSES: tuple[ValueClass, ...] = ("extreme", "full", "small", "sparse")

POSITIVE = frozenset({"x_scale", "y_scale", "a_scale", "b_scale", "w_scale", "input_var", "var"})
"""Inputs that are positive by their meaning: scales and variances."""

_ml_dtypes: Any = ml_dtypes  # typed in part only
_SMALL_INTEGER = 9
_POWERS = (31, 63, 24, 11, 16)
"""Where words end, and the integers that f32 and f16 hold exactly."""


def is_float(dtype: np.dtype[Any]) -> bool:
    """Return whether a type is one of floating point, those of ml_dtypes included."""
    return dtype.kind == "f" or dtype == np.dtype(ml_dtypes.bfloat16)


def integer_limits(dtype: np.dtype[Any]) -> Any:
    """Return the least and greatest number of a type of integers, those of ml_dtypes included; None of any other."""
    try:
        return _ml_dtypes.iinfo(dtype)
    except ValueError:
        return None


def held_in(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type in which T10 hands numbers of a type over: integers of few bits in bytes, any other as it is."""
    info = integer_limits(dtype)
    if info is None or dtype.kind in "iu":
        return dtype
    return np.dtype(np.int8 if info.min < 0 else np.uint8)


@dataclass(frozen=True, slots=True)
class FloatLimits:
    """The largest, the least normal and the least number of a type, and the distances of 1 to its neighbours."""

    largest: float
    normal: float
    least: float
    above_one: float
    below_one: float


def float_limits(dtype: np.dtype[Any]) -> FloatLimits:
    """Return the limits of a type of floating point."""
    info = _ml_dtypes.finfo(dtype)
    numbers = (info.max, info.smallest_normal, info.smallest_subnormal, info.eps, info.epsneg)
    return FloatLimits(*map(float, numbers))


def specials(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the extreme values of a type, each once."""
    if dtype == np.bool_:
        return np.array([False, True])
    info = integer_limits(dtype)
    if info is not None:
        found = [0, 1, 2, 3, info.max, info.min, info.max - 1, info.min + 1, info.max // 2, 7, 100]
        found += [-1, -2, -7] if info.min < 0 else [info.max - 7]
        found += [s * (1 << p) + d for p in (31, 63, 32, 24, 16, 15, 8, 7) for s in (1, -1) for d in (0, -1)]
        kept = dict.fromkeys(value for value in found if info.min <= value <= info.max)
        return np.array(list(kept), dtype)
    limits = float_limits(dtype)
    largest, normal, least = limits.largest, limits.normal, limits.least
    ones = [
        0.0,
        largest,
        normal,
        least,
        normal - least,
        1.0,
        0.5,
        1.5,
        2.5,
        3.0,
        1.0 - limits.below_one,
        88.5,
    ]
    ones += [np.inf, 0.75, 10.5, 1e-3, 1e4] + [float(1 << p) for p in _POWERS]
    with np.errstate(over="ignore"):
        both = np.array([*ones, *(-x for x in ones), np.nan]).astype(dtype)
    bits = both.view(f"u{dtype.itemsize}")
    return both[np.sort(np.unique(bits, return_index=True)[1])]


def draw(
    dtype: np.dtype[Any], shape: tuple[int, ...], kind: ValueClass, seed: tuple[int, ...], number: int
) -> NDArray[Any]:
    """Return values of a class; `number` is the input's, so that of two inputs every pair of extremes meets."""
    rng, n = np.random.default_rng((*seed, number)), int(np.prod(shape))
    if kind == "extreme":
        values = specials(dtype)
        places = np.arange(n) if number == 0 else np.arange(n) // len(values) + number * np.arange(n)
        return values[places % len(values)].reshape(shape)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype.kind in "iu" and kind == "full":
        return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
    info = integer_limits(dtype)
    if info is not None:
        # Of a few bits there may be no more than these.
        low = max(-_SMALL_INTEGER, int(info.min))
        return rng.integers(low, min(_SMALL_INTEGER, int(info.max)) + 1, shape).astype(dtype)
    if kind == "full":
        bits = np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).reshape(shape).copy()
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(bits.astype(np.float64)), bits, dtype.type(1)).astype(dtype)
    found = (rng.standard_normal(shape) * 2).astype(dtype)
    if kind == "sparse" and n:
        places = rng.choice(n, max(1, n // 16), replace=False)
        found.flat[places] = np.array([np.inf, np.nan, -np.inf, 0.0, -0.0]).astype(dtype)[
            (np.arange(len(places)) + number) % 5
        ]
    return found


def positive(values: NDArray[Any]) -> NDArray[Any]:
    """Return values that may be scales or variances: between 1/16 and 4."""
    found = np.nan_to_num(np.abs(values.astype(np.float64)), nan=1.0, posinf=2.0)
    return np.clip(found, 1 / 16 if is_float(values.dtype) else 1, 4).astype(values.dtype)
