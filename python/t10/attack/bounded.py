"""What a model whose results have bounds must give: ONNX Runtime's results, brought to the extents that were said.

Rows behind the last valid one are zeros, rows beyond the bound are cut off, and an output per bound counts the valid
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.core.graph import Graph
from t10.errors import InputError
from t10.frontend.bounds import COUNT
from t10.reference import OnnxRuntime

_AXES = {"NonZero": 1, "NonMaxSuppression": 0, "Unique": 0}
"""The axis of data-dependent extent, by operator; others have an attribute, or flatten what they are given."""


def bounded(model: OnnxRuntime, inputs: Arrays, bounds: Mapping[str, int], graph: Graph) -> Arrays:
    """Return the outputs of `graph` as ONNX Runtime's of the model, and counts up to `bounds`.

    Raises `InputError` for a bound of what is no node of the model's own graph, as of an If's: nothing counts it there.
    """
    values = model.values(inputs)
    counts = {f"{name}{COUNT}": _count(model.model, values, name, bound) for name, bound in bounds.items()}
    known = {**values, **counts}
    return {o.name: _fitted(known[o.name], o.shape) for o in graph.signature[1] if o.name in known}


def _count(model: Any, values: Arrays, name: str, bound: int) -> NDArray[Any]:
    for node in model.graph.node:
        if name in (node.name, *node.output):
            x = values[node.output[0]]
            axis = _AXES.get(node.op_type)
            if axis is None:
                stated = next((a.i for a in node.attribute if a.name == "axis"), None)
                axis = (
                    0 if stated is None and node.op_type == "Compress" else -1 if stated is None else stated
                )
            return np.asarray(min(x.shape[axis], bound), np.int32)
    raise InputError(
        f"--bound {name}: nothing to compare its count with: it is no node of the model's own graph",
        hint="compile it and compare what `t10 run` gives",
    )


def _fitted(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array with extents of `shape`: cut off, or filled with zeros."""
    if x.ndim != len(shape) or x.shape == shape:
        return x
    result = np.zeros(shape, x.dtype)
    common = tuple(slice(min(pair)) for pair in zip(x.shape, shape, strict=True))
    result[common] = x[common]
    return result
