"""The element that changes nothing when it is combined."""

from __future__ import annotations

import numpy as np

from t10.core.dtypes import numpy_dtype
from t10.core.expression import Combine


def neutral_value(combine: Combine, dtype: str) -> float | int | bool:
    """Return the neutral element of a combination on an MLIR element type."""
    kind = numpy_dtype(dtype)
    if combine in ("max", "min", "maxnum", "minnum"):
        if kind.kind == "f":
            return float("-inf") if combine in ("max", "maxnum") else float("inf")
        if kind.kind == "b":
            return combine == "min"
        limits = np.iinfo(kind)
        return int(limits.min if combine == "max" else limits.max)
    if combine == "and":
        return True if kind.kind == "b" else -1
    one = combine == "prod"
    return bool(one) if kind.kind == "b" else float(one) if kind.kind == "f" else int(one)
