"""Arrays that the host hands to a simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.device import HostTensor
from t10.core.dtypes import numpy_dtype
from t10.core.graph import TensorValue
from t10.errors import InputError


def checked_array(
    tensor: TensorValue | HostTensor, arrays: Mapping[str, NDArray[Any]], what: str
) -> NDArray[Any]:
    """Return the array of a tensor; raises `InputError` unless it is given, of the tensor's shape and element type."""
    if tensor.name not in arrays:
        given = ", ".join(sorted(arrays)) or "none"
        raise InputError(f"{what} '{tensor.name}' is missing (given: {given})")
    array = np.asarray(arrays[tensor.name])
    expected = numpy_dtype(tensor.host_dtype if isinstance(tensor, TensorValue) else tensor.dtype)
    if array.shape != tensor.shape or array.dtype != expected:
        raise InputError(
            f"{what} '{tensor.name}' is {array.dtype} of shape {array.shape}, "
            f"expected {expected} of shape {tensor.shape}"
        )
    return array
