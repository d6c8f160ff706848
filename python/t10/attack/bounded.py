"""What a model whose results have bounds must give: ONNX Runtime's results, brought to the extents that were said.

Rows behind the last valid one are zeros, rows beyond the bound are cut off, and an output per bound counts the valid
ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from t10.arrays import Arrays
from t10.core.graph import Graph
from t10.errors import InputError
from t10.frontend.bounds import COUNT
from t10.frontend.names import fresh, value_names
from t10.reference import OnnxRuntime

_AXES = {"NonZero": 1, "NonMaxSuppression": 0, "Unique": 0, "Loop": 0}
"""The axis of data-dependent extent, by operator; others have an attribute, or flatten what they are given."""


@dataclass(frozen=True, slots=True)
class Due:
    """What outputs must be for some inputs, and by name of a bound how many rows the model made."""

    outputs: Arrays
    made: dict[str, int] = field(default_factory=dict[str, int])

    def cut_off(self, bounds: Mapping[str, int]) -> str:
        """Return the first bound that keeps fewer rows than there are, in words; empty if all rows are kept."""
        for name, n in self.made.items():
            if n > bounds[name]:
                return f"the model made {n:,} rows, --bound {name}={bounds[name]} keeps {bounds[name]:,}"
        return ""


def bounded(model: OnnxRuntime, inputs: Arrays, bounds: Mapping[str, int], graph: Graph) -> Due:
    """Return the outputs of `graph` as ONNX Runtime's of the model, and counts up to `bounds`.

    Raises `InputError` for a bound of what is no node of the model's own graph, as of an If's: nothing counts it there.
    """
    model = _limited(model, bounds)
    values = model.values(inputs)
    made = {name: _count(model.model, values, name) for name in bounds}
    counts = {f"{name}{COUNT}": np.asarray(min(n, bounds[name]), np.int32) for name, n in made.items()}
    known = {**values, **counts}
    outputs = {o.name: _fitted(known[o.name], o.shape) for o in graph.signature[1] if o.name in known}
    return Due(outputs, made)


def _limited(runtime: OnnxRuntime, bounds: Mapping[str, int]) -> OnnxRuntime:
    """Return the model with Loops of at most as many steps as their bounds say, the last output a row for each."""
    model = onnx.ModelProto.FromString(runtime.model.SerializeToString())
    graph, has_loops = model.graph, False
    for node in graph.node:
        bound = next((bounds[name] for name in (node.name, *node.output) if name in bounds), None)
        if node.op_type == "Loop" and bound is not None:
            body = next(each.g for each in node.attribute if each.name == "body")
            _limit(body, bound, set(value_names(graph)))
            node.output.extend([""] * (len(body.output) - 2 - len(node.output)))
            node.output.append(fresh(f"{node.output[0]}.steps", set(value_names(graph))))
            has_loops = True
    return OnnxRuntime(model, runtime.path, runtime.fixed) if has_loops else runtime


def _limit(body: Any, bound: int, taken: set[str]) -> None:
    """Let the body of a Loop end it behind so many steps, and return the number of each."""
    taken |= set(value_names(body))
    step, last, step_row, has_next, on = (
        body.input[0].name,
        *(fresh(f"bounded.{word}", taken) for word in ("last", "step", "next", "on")),
    )
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    body.initializer.append(onnx.numpy_helper.from_array(np.array(bound - 1), last))
    body.node.extend(
        [
            make("Less", [step, last], [has_next]),
            make("And", [body.output[0].name, has_next], [on]),
            make("Identity", [step], [step_row]),
        ]
    )
    body.output[0].CopyFrom(value(on, onnx.TensorProto.BOOL, None))
    body.output.append(value(step_row, onnx.TensorProto.INT64, []))


def _count(model: Any, values: Arrays, name: str) -> int:
    for node in model.graph.node:
        if name in (node.name, *node.output):
            x = values[node.output[-1 if node.op_type == "Loop" else 0]]
            axis = _AXES.get(node.op_type)
            if axis is None:
                stated = next((a.i for a in node.attribute if a.name == "axis"), None)
                axis = (
                    0 if stated is None and node.op_type == "Compress" else -1 if stated is None else stated
                )
            return x.shape[axis]
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
