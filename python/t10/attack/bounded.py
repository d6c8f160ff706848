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
from t10.frontend.unsupported import title_of
from t10.reference import OnnxRuntime

_AXES = {"NonZero": 1, "NonMaxSuppression": 0, "Unique": 0, "Loop": 0}
"""The axis of data-dependent extent, by operator; others have an attribute, or flatten what they are given."""


@dataclass(frozen=True, slots=True)
class Due:
    """What outputs must be for some inputs, and by name of a bound how many rows the model made."""

    outputs: Arrays
    made: dict[str, int] = field(default_factory=dict[str, int])
    unfinished: frozenset[str] = frozenset()
    """Names of bounds behind whose last step a Loop would take another one."""

    def cut_off(self, bounds: Mapping[str, int]) -> str:
        """Return the first bound that keeps fewer rows or steps than there are, in words; empty if all are kept."""
        for name, n in self.made.items():
            if n > bounds[name]:
                return f"the model made {n:,} rows, --bound {name}={bounds[name]} keeps {bounds[name]:,}"
            if name in self.unfinished:
                return f"--bound {name}={bounds[name]} ends a Loop that takes more steps"
        return ""


def bounded(model: OnnxRuntime, inputs: Arrays, bounds: Mapping[str, int], graph: Graph) -> Due:
    """Return the outputs of `graph` as ONNX Runtime's of the model, and counts up to `bounds`.

    Raises `InputError` for a bound of what is no node of the model's own graph, as of an If's: nothing counts it there.
    """
    model = _limited(model, bounds)
    values = {**model.fixed, **inputs, **model.values(inputs)}
    made = {name: _count(model.model, values, name) for name in bounds}
    counts = {f"{name}{COUNT}": np.asarray(min(n, bounds[name]), np.int32) for name, n in made.items()}
    known = {**values, **counts}
    outputs = {o.name: _fitted(known[o.name], o.shape) for o in graph.signature[1] if o.name in known}
    unfinished = frozenset(name for name, n in made.items() if _goes_on(model.model, values, name, n))
    return Due(outputs, made, unfinished)


def _limited(runtime: OnnxRuntime, bounds: Mapping[str, int]) -> OnnxRuntime:
    """Return the model with Loops of at most as many steps as their bounds say.

    Their last two outputs have a row for each step: its number, and whether the body would take another one.
    """
    model = onnx.ModelProto.FromString(runtime.model.SerializeToString())
    graph, has_loops = model.graph, False
    for node in graph.node:
        bound = next((bounds[name] for name in (node.name, *node.output) if name in bounds), None)
        if node.op_type == "Loop" and bound is not None:
            body = next(each.g for each in node.attribute if each.name == "body")
            _limit(body, bound, set(value_names(graph)))
            node.output.extend([""] * (len(body.output) - 3 - len(node.output)))
            taken = set(value_names(graph))
            node.output.extend(fresh(f"{title_of(node)}.{word}", taken) for word in ("steps", "goes"))
            has_loops = True
    return OnnxRuntime(model, runtime.path, runtime.fixed) if has_loops else runtime


def _limit(body: Any, bound: int, taken: set[str]) -> None:
    """Let the body of a Loop end it behind so many steps; return the number of each, and what the body decided."""
    taken |= set(value_names(body))
    step, last, step_row, has_next, on, goes_row = (
        body.input[0].name,
        *(fresh(f"bounded.{word}", taken) for word in ("last", "step", "next", "on", "goes")),
    )
    make, value = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    body.initializer.append(onnx.numpy_helper.from_array(np.array(bound - 1), last))
    body.node.extend(
        [
            make("Less", [step, last], [has_next]),
            make("And", [body.output[0].name, has_next], [on]),
            make("Identity", [step], [step_row]),
            make("Identity", [body.output[0].name], [goes_row]),
        ]
    )
    body.output[0].CopyFrom(value(on, onnx.TensorProto.BOOL, None))
    body.output.append(value(step_row, onnx.TensorProto.INT64, []))
    body.output.append(value(goes_row, onnx.TensorProto.BOOL, None))


def _count(model: Any, values: Arrays, name: str) -> int:
    for node in model.graph.node:
        if name in (node.name, *node.output):
            x = values[node.output[-2 if node.op_type == "Loop" else 0]]
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


def _goes_on(model: Any, values: Arrays, name: str, n_steps: int) -> bool:
    """Return whether the node is a Loop that would take another step than those it took."""
    loops = (n for n in model.graph.node if n.op_type == "Loop" and name in (n.name, *n.output))
    node = next(loops, None)
    if node is None or not n_steps or not values[node.output[-1]].reshape(-1)[-1]:
        return False
    trips = values.get(node.input[0])
    if trips is None:
        initial = (each for each in model.graph.initializer if each.name == node.input[0])
        trips = next(map(onnx.numpy_helper.to_array, initial), None)
    return trips is None or int(trips.reshape(())) > n_steps


def _fitted(x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array with extents of `shape`: cut off, or filled with zeros."""
    if x.ndim != len(shape) or x.shape == shape:
        return x
    result = np.zeros(shape, x.dtype)
    common = tuple(slice(min(pair)) for pair in zip(x.shape, shape, strict=True))
    result[common] = x[common]
    return result
