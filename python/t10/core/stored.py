"""Arrays of the host put as cores store them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.graph import TensorValue
from t10.core.orders import Order


def as_stored(given: Mapping[str, NDArray[Any]], values: Iterable[TensorValue]) -> dict[str, NDArray[Any]]:
    """Return inputs or weights as the host has them as cores store them, those that are in no `values` as they are.

    Parts are put behind one another, dims are padded and put in order. Arrays mapped from files stay mapped unless
    something is joined or padded: they are views, read where they are used.
    """
    stored = dict(given)
    for value in values:
        if value.parts is not None and all(name in given for name in value.parts.names):
            pieces = [stored.pop(name) for name in value.parts.names]
            stored[value.name] = np.concatenate(pieces, axis=value.parts.axis)
        if value.padding and value.name in stored:
            stored[value.name] = np.pad(stored[value.name], [(0, more) for more in value.padding])
        if value.order and value.name in stored:
            stored[value.name] = turned(stored[value.name].reshape(value.split_shape), value.order)
    return stored


def turned(value: NDArray[Any], order: Order) -> NDArray[Any]:
    """Return an array with its dims in an order; one that is mapped from a file stays a view of it."""
    result = value.transpose(order)
    return result if isinstance(value, np.memmap) else np.ascontiguousarray(result)
