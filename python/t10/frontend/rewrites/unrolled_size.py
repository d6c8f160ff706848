"""How many nodes a body becomes once all that is nested in it is written out, without writing it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onnx import numpy_helper

from t10.frontend.rewrites.site import Facts, Shape
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import constant_tensor

_PASSED_ON = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep the value of a number."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known of the names that a graph sees: constants, static shapes."""

    constants: Mapping[str, Any]
    shapes: Mapping[str, Shape]


def unrolled_nodes(graph: Any, facts: Facts) -> int:
    """Return how many nodes a body becomes at least; loops of which data decide the end count as one step."""
    return _n_nodes(graph, _Scope(facts.constants, facts.shapes))


def _n_nodes(graph: Any, outer: _Scope) -> int:
    scope = _inside(graph, outer)
    return max(1, sum(_n_nodes_of(node, scope) for node in graph.node))


def _n_nodes_of(node: Any, scope: _Scope) -> int:
    graphs = {
        attribute.name: _n_nodes(attribute.g, scope)
        for attribute in node.attribute
        if attribute.HasField("g")
    }
    if node.op_type == "If" and graphs:
        taken = _number(scope, node.input[0])
        branch = "then_branch" if taken else "else_branch"
        # A condition that is made in a loop may be constant in each of its steps: one branch is taken then.
        return min(graphs.values()) if taken is None else graphs.get(branch, 1)
    steps = {"Loop": _loop_steps, "Scan": _scan_steps}.get(node.op_type)
    return 1 if steps is None or "body" not in graphs else max(1, steps(node, scope) * graphs["body"])


def _loop_steps(node: Any, scope: _Scope) -> int:
    body = next(attribute.g for attribute in node.attribute if attribute.name == "body")
    count, condition = (*node.input, "", "")[:2]
    trips = _number(scope, count)
    if trips is None or len(body.input) < 2 or not body.output:
        return 1
    starts = _number(scope, condition) if condition else 1
    return trips if starts and goes_on(body, scope.constants) else 1


def _scan_steps(node: Any, scope: _Scope) -> int:
    options = {attribute.name: attribute for attribute in node.attribute}
    n_scanned = options["num_scan_inputs"].i if "num_scan_inputs" in options else 0
    if not 0 < n_scanned <= len(node.input):
        return 1
    axes = list(options["scan_input_axes"].ints) if "scan_input_axes" in options else [0]
    shape = scope.shapes.get(node.input[len(node.input) - n_scanned], ())
    return shape[axes[0]] if axes and -len(shape) <= axes[0] < len(shape) else 1


def _number(scope: _Scope, name: str) -> int | None:
    """Return the value of a constant of one element, None of anything else."""
    tensor = scope.constants.get(name)
    if tensor is None:
        return None
    values = numpy_helper.to_array(tensor)
    return int(values.reshape(())) if values.size == 1 and values.dtype.kind in "iub" else None


def _inside(graph: Any, outer: _Scope) -> _Scope:
    """Return what the nodes of a graph see: its own names hide those of the graph around it."""
    constants, shapes = dict(outer.constants), dict(outer.shapes)
    made = [name for node in graph.node for name in node.output]
    for name in (*(value.name for value in graph.input), *made):
        constants.pop(name, None)
        shapes.pop(name, None)
    for value in (*graph.input, *graph.value_info):
        kind = value.type.tensor_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    constants |= {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
            constants[node.output[0]] = constant_tensor(node)
        elif node.op_type in _PASSED_ON and _number(_Scope(constants, {}), node.input[0]) is not None:
            constants[node.output[0]] = constants[node.input[0]]
    shapes |= {name: tuple(tensor.dims) for name, tensor in constants.items()}
    return _Scope(constants, shapes)


def goes_on(body: Any, outer: Mapping[str, Any]) -> bool:
    """Return whether the condition a body makes is the one it got, or true: a constant of its own or from outside."""
    name, given = body.output[0].name, body.input[1].name
    constants = {**outer, **{tensor.name: tensor for tensor in body.initializer}}
    for _ in range(len(body.node) + 1):
        if name == given:
            return True
        maker = next((node for node in body.node if name in node.output), None)
        if maker is None:
            return name in constants and bool(numpy_helper.to_array(constants[name]).reshape(()))
        if maker.op_type == "Constant":
            value = next((attribute.t for attribute in maker.attribute if attribute.name == "value"), None)
            return value is not None and bool(numpy_helper.to_array(value).reshape(()))
        if maker.op_type not in ("Identity", "Cast"):
            return False
        name = maker.input[0]
    return False
