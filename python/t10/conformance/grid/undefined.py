"""Where ONNX leaves a result undefined: engines agree there, whatever the references give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.conformance.grid.cases import GridCase, numpy_type
from t10.conformance.grid.values import integer_limits, is_float

Mask = NDArray[np.bool_]

_WAVES = ("Sin", "Cos", "Tan")
_LARGEST_ANGLE = 2.0**17
_LONGEST_QUOTIENT = 2.0**24


def undefined(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """Return the elements of the results that are undefined, None where all are defined."""
    rule = _RULES.get(case.structure.operator)
    return None if rule is None else rule(case, inputs)


def may_be_nan(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """Return where a tile gives NaN rather than a number that it cannot compute: angles and quotients too large."""
    x = inputs.get("x0")
    if x is None or not is_float(x.dtype) or case.structure.operator not in (*_WAVES, "Mod"):
        return None
    if case.structure.operator in _WAVES:
        return np.abs(x.astype(np.float64)) >= _LARGEST_ANGLE
    with np.errstate(all="ignore"):
        return np.abs(x.astype(np.float64) / inputs["x1"].astype(np.float64)) >= _LONGEST_QUOTIENT


def _cast(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """A float beyond the range of an integer, and NaN."""
    x, result = inputs["x0"], case.result or case.types.get("T2", "")
    info = integer_limits(numpy_type(result))
    if not is_float(x.dtype) or info is None:
        return None
    with np.errstate(all="ignore"):
        wide = np.trunc(x.astype(np.float64))
    return ~((wide >= float(info.min)) & (wide < float(info.max) + (1.0 if info.max < 2**53 else 0.0)))


def _quotient(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """An integer divided by 0, and the least divided by -1."""
    del case
    x, y = np.broadcast_arrays(inputs["x0"], inputs["x1"])
    if x.dtype.kind not in "iu":
        return None
    overflows = (x == np.iinfo(x.dtype).min) & (y == -1) if x.dtype.kind == "i" else np.zeros(x.shape, bool)
    return (y == 0) | overflows


def _shift(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask:
    """A shift by the width of the type or more, or by a negative number."""
    del case
    x, y = np.broadcast_arrays(inputs["x0"], inputs["x1"])
    return (y < 0) | (y >= 8 * x.dtype.itemsize)


def _power(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """Where the power of an integer does not fit its type."""
    del case
    x, y = np.broadcast_arrays(inputs["x0"], inputs["x1"])
    if x.dtype.kind not in "iu":
        return None
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.float64), y.astype(np.float64))
        info = np.iinfo(x.dtype)
        return ~((np.abs(exact) < min(2.0**53, float(info.max))) & (exact >= float(info.min)) & (y >= 0))


def _zeros(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """The sign of a maximum or minimum of zeros of both signs: ONNX and both references leave it to their order."""
    values = np.broadcast_arrays(*inputs.values())
    if not is_float(values[0].dtype):
        return None
    best = np.maximum if case.structure.operator == "Max" else np.minimum
    with np.errstate(all="ignore"):
        return np.asarray(best.reduce([each.astype(np.float64) for each in values]) == 0)


def _quantized(case: GridCase, inputs: Mapping[str, NDArray[Any]]) -> Mask | None:
    """A quotient beyond 32 bits or f16, of which the reference makes the least integer, and NaN; engines saturate."""
    del case
    x, scale = inputs["x0"].astype(np.float64), inputs.get("x1")
    if scale is None:
        return None
    most = float(np.finfo(np.float16).max) if inputs["x0"].dtype == np.float16 else 2.0**31
    with np.errstate(all="ignore"):
        return ~(np.abs(x / scale.astype(np.float64).min()) < most)


_RULES: dict[str, Callable[[GridCase, Mapping[str, NDArray[Any]]], Mask | None]] = {
    "Cast": _cast,
    "CastLike": _cast,
    "Div": _quotient,
    "Mod": _quotient,
    "BitShift": _shift,
    "Pow": _power,
    "QuantizeLinear": _quantized,
    "Max": _zeros,
    "Min": _zeros,
}
