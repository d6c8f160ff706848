"""Unsigned inputs and outputs: a plan has integers without a sign, its operators say how they are read.

as_planned({"x": uint8 array}, ("x",))    # the same bits as int8, as the plan holds them
as_declared({"y": int8 array}, ("y",))    # the same bits as uint8, as the model declares them
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.graph import TensorValue

Arrays = dict[str, NDArray[Any]]


def as_planned(arrays: Mapping[str, NDArray[Any]], unsigned: Collection[str]) -> Arrays:
    """Return arrays with the same bits, those named in `unsigned` as signed integers."""
    return {name: _viewed(array, "i") if name in unsigned else array for name, array in arrays.items()}


def as_declared(arrays: Mapping[str, NDArray[Any]], unsigned: Collection[str]) -> Arrays:
    """Return arrays with the same bits, those named in `unsigned` as unsigned integers."""
    return {name: _viewed(array, "u") if name in unsigned else array for name, array in arrays.items()}


def declared(value: TensorValue, unsigned: Collection[str]) -> TensorValue:
    """Return a value of a plan with the type that the model declares."""
    is_signless = value.name in unsigned and value.dtype.startswith("i")
    return replace(value, dtype=f"u{value.dtype}") if is_signless else value


def _viewed(array: NDArray[Any], kind: str) -> NDArray[Any]:
    if array.dtype.kind not in "iu":
        return array
    return array.view(np.dtype(f"{kind}{array.dtype.itemsize}"))
