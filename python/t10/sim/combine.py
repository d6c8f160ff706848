"""How contributions are combined: the numpy operation of each kind and its neutral element by element type."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Array
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, Combine
from t10.sim.narrow import clipped


def larger(a: Array, b: Array) -> Array:
    """Return IEEE 754-2019's maximum: a NaN where one is a NaN, and +0 above -0, which numpy leaves open."""
    result = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, result) if result.dtype.kind == "f" else result


def smaller(a: Array, b: Array) -> Array:
    """Return IEEE 754-2019's minimum: a NaN where one is a NaN, and -0 below +0."""
    return -larger(-a, -b) if np.result_type(a, b).kind == "f" else np.minimum(a, b)


UFUNC: dict[Combine, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "maxnum": np.fmax,
    "minnum": np.fmin,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


LARGEST: frozenset[Combine] = frozenset(("max", "maxnum"))
EXTREMES: frozenset[Combine] = frozenset(("max", "min", "maxnum", "minnum"))


def _but_nan(found: Array, first: Array, second: Array) -> Array:
    """Return the other value where one is a NaN."""
    return np.where(np.isnan(first), second, np.where(np.isnan(second), first, found))


def neutral(combine: Combine, dtype: str) -> Array:
    """Return the element that changes nothing, as a zero-dimensional array of `dtype`."""
    kind = numpy_dtype(dtype)
    if combine in EXTREMES:
        if kind.kind == "f":
            value: float | int = -np.inf if combine in LARGEST else np.inf
        elif kind.kind == "b":
            value = 0 if combine == "max" else 1
        else:
            limits = np.iinfo(kind)
            value = int(limits.min if combine == "max" else limits.max)
        return np.array(value, kind)
    if combine == "and":
        return np.invert(np.zeros((), kind))
    return np.array(1 if combine == "prod" else 0, kind)


def combine_arrays(combine: Combine, first: Array, second: Array) -> Array:
    """Return the combination of two arrays of one type, rounded to it."""
    with np.errstate(all="ignore"):
        if combine in EXTREMES:
            found = (larger if combine in LARGEST else smaller)(first, second)
            return found if combine in ("max", "min") else _but_nan(found, first, second)
        return clipped(UFUNC[combine](first, second), UFUNC[combine], (first, second))


def reduce_axes(combine: Combine, values: Array, axes: AxisSizes) -> Array:
    """Return `values` combined over array axes `axes`, which keep extent 1; sums of f16 are kept in f32 meanwhile."""
    if not axes:
        return values
    with np.errstate(all="ignore"):
        if combine == "sum" and values.dtype == np.float16:
            return np.add.reduce(values, axis=axes, keepdims=True, dtype=np.float32)
        result = UFUNC[combine].reduce(values, axis=axes, keepdims=True, dtype=values.dtype)
        if combine in ("maxnum", "minnum"):
            # Of NaNs alone the neutral element is left.
            lowest = np.array(-np.inf if combine in LARGEST else np.inf, result.dtype)
            result = np.where(np.isnan(result), lowest, result)
    return _with_signs_of_zeros(combine, values, result, axes) if values.dtype.kind == "f" else result


def _with_signs_of_zeros(combine: Combine, values: Array, result: Array, axes: AxisSizes) -> Array:
    """Return maxima of floats with +0, minima with -0, wherever there is one among zeros; other results as they are."""
    if combine not in EXTREMES or not (result == 0).any():
        return result
    wanted = np.signbit(values) == (combine not in LARGEST)
    has_it: Array = ((values == 0) & wanted).any(axis=axes, keepdims=True)
    zero: Array = np.array(0.0 if combine in LARGEST else -0.0, values.dtype)
    return np.where(result == 0, np.where(has_it, zero, -zero), result)
