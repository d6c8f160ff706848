"""How far results may be from their references, by element type: the one place that says it."""

from __future__ import annotations

from collections.abc import Iterable

from t10.core.dtypes import is_float

RELATIVE = {"f16": 5e-3, "f32": 1e-4, "f64": 1e-4}
"""Most error of a floating-point type, relative to the largest element of a result; `f64` may be computed in f32."""


def tolerance(dtype: str) -> float:
    """Return the most error of results of an element type; integers and booleans must be equal."""
    return RELATIVE[dtype] if is_float(dtype) else 0.0


def loosest(dtypes: Iterable[str]) -> float:
    """Return the tolerance of what is computed from values of these types: that of the least precise one."""
    return max((tolerance(dtype) for dtype in dtypes), default=0.0)
