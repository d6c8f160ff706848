"""How many nodes a loop becomes once it and all that is nested in it is written out, without writing it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from t10.frontend.read_names import names_read
from t10.frontend.rewrites.scalars import Number, number_made
from t10.frontend.rewrites.site import Facts, Shape
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import constant_tensor

MOST_NODES = 20_000
"""What would be unrolled into more nodes, nested loops included, is left as it is, and refused by name."""

_NODE = 5
"""What a node weighs."""
_LIGHT = ("Constant", "Identity")
"""Operators of which nothing is left behind a loop that is written out: they weigh 1, for the time that they take."""
_MOST = MOST_NODES * _NODE


def most_steps(body: Any, facts: Facts) -> int:
    """Return how many steps are too many, whatever data decide; loops of which they decide the end count as nothing."""
    return _MOST // max(1, _Walk(facts).through(body, _scope_of(body, facts), {}).weight) + 1


def unrolled_nodes(node: Any, facts: Facts, n_steps: int, *, is_masked: bool = False) -> int:
    """Return how many nodes so many steps of a Loop or Scan become at least, and no exact number above `MOST_NODES`.

    Of a loop that is masked all steps are written, also behind one that ends it.
    """
    body = body_of(node)
    walk, scope = _Walk(facts), _scope_of(body, facts)
    if node.op_type == "Loop":
        return -(-walk.steps(node, scope, n_steps, is_masked=is_masked).weight // _NODE)
    return -(-n_steps * max(1, walk.through(body, scope, {}).weight) // _NODE)


def body_of(node: Any) -> Any:
    """Return the graph that a Loop or Scan runs in every step."""
    return next(attribute.g for attribute in node.attribute if attribute.name == "body")


@dataclass(frozen=True, slots=True)
class _Scope:
    """What is known of the names that a graph sees: numbers of one element, static shapes."""

    numbers: Mapping[str, Number]
    shapes: Mapping[str, Shape]


@dataclass(slots=True)
class _Counted:
    """What a graph weighs once it is written out, whether nothing unknown decides that, and the numbers it makes."""

    weight: int = 0
    is_exact: bool = True
    numbers: dict[str, Number] = field(default_factory=dict[str, Number])


def _scope_of(body: Any, facts: Facts) -> _Scope:
    """Return what a body, and the loop that runs it, read of the constants and shapes of the graph around it."""
    read = names_read(body)
    shapes = {name: shape for name, shape in facts.shapes.items() if name in read}
    return _Scope(_numbers(facts.constants), shapes)


def _numbers(tensors: Mapping[str, Any]) -> dict[str, Number]:
    numbers = ((name, _number(tensor)) for name, tensor in tensors.items())
    return {name: number for name, number in numbers if number is not None}


def _number(tensor: Any) -> Number | None:
    """Return the value of a constant of one element, None of any other."""
    if any(extent != 1 for extent in tensor.dims) or tensor.data_type == TensorProto.STRING:
        return None
    values = numpy_helper.to_array(tensor)
    return next(iter(values.flat)) if values.dtype.kind in "iubf" else None


class _Stated:
    """What a graph says itself: constants and static shapes; its names hide those of the graph around it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        made = (name for node in graph.node for name in node.output)
        self.names = frozenset((*(value.name for value in graph.input), *made))
        tensors = {tensor.name: tensor for tensor in graph.initializer}
        for node in graph.node:
            if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
                tensors[node.output[0]] = constant_tensor(node)
        self.numbers = _numbers(tensors)
        self.shapes = {
            value.name: shape for value in (*graph.input, *graph.value_info) if (shape := _shape(value))
        }
        self.shapes |= {name: tuple(tensor.dims) for name, tensor in tensors.items()}

    def within(self, outer: _Scope) -> tuple[dict[str, Number], dict[str, Shape]]:
        """Return the numbers and shapes that are known in the graph before it runs."""
        numbers = {name: number for name, number in outer.numbers.items() if name not in self.names}
        shapes = {name: shape for name, shape in outer.shapes.items() if name not in self.names}
        return numbers | self.numbers, shapes | self.shapes


def _shape(value: Any) -> Shape:
    """Return the extents that are stated of a value; none if not all are."""
    kind = value.type.tensor_type
    is_static = kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim)
    return tuple(dim.dim_value for dim in kind.shape.dim) if is_static else ()


@dataclass(slots=True)
class _Walk:
    """Weighs nodes of graphs; what a graph itself says is read once, however often it is walked through."""

    facts: Facts
    stated: dict[int, _Stated] = field(default_factory=dict[int, "_Stated"])
    """By identity of a graph, which is kept there so that no other one gets its identity."""

    def through(self, graph: Any, outer: _Scope, inputs: Mapping[str, Number]) -> _Counted:
        """Weigh the nodes of a graph of whose inputs some are known, up to the first that is too much."""
        stated = self.stated.setdefault(id(graph), _Stated(graph))
        numbers, shapes = stated.within(outer)
        numbers |= inputs
        counted = _Counted(numbers=numbers)
        for node in graph.node:
            made = self._of(node, _Scope(numbers, shapes))
            counted.weight += made.weight
            counted.is_exact = counted.is_exact and made.is_exact
            numbers |= made.numbers
            if counted.weight > _MOST:
                break
        return counted

    def _of(self, node: Any, scope: _Scope) -> _Counted:
        graphs = {attribute.name: attribute.g for attribute in node.attribute if attribute.HasField("g")}
        if node.op_type == "If" and len(graphs) == 2:
            return self._branch(node, scope, graphs)
        if node.op_type == "Loop" and "body" in graphs:
            return self._loop(node, scope, graphs["body"])
        if node.op_type == "Scan" and "body" in graphs:
            step = self.through(graphs["body"], scope, {})
            return _Counted(max(1, _scan_steps(node, scope) * max(1, step.weight)), step.is_exact)
        if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
            return _Counted(1)  # its number is among what the graph states
        weight = 1 if node.op_type in _LIGHT else _NODE
        return _Counted(weight, numbers=number_made(node, scope.numbers))

    def _branch(self, node: Any, scope: _Scope, graphs: Mapping[str, Any]) -> _Counted:
        taken = scope.numbers.get(node.input[0])
        if taken is not None:
            made = self.through(graphs["then_branch" if taken else "else_branch"], scope, {})
            return _Counted(max(1, made.weight), made.is_exact)
        # A condition that is made in a loop may be constant in each of its steps: one branch is taken then.
        least = min(self.through(graph, scope, {}).weight for graph in graphs.values())
        return _Counted(max(1, least), is_exact=False)

    def _loop(self, node: Any, scope: _Scope, body: Any) -> _Counted:
        count, condition = (*node.input, "", "")[:2]
        trips = scope.numbers.get(count) if count else _MOST + 1
        start = scope.numbers.get(condition) if condition else 1
        if trips is None or start is None or len(body.input) < 2 or not body.output:
            return _Counted(1, is_exact=False)
        made = self.steps(node, scope, int(trips) if start else 0)
        return _Counted(max(1, made.weight), made.is_exact)

    def steps(self, node: Any, scope: _Scope, n_steps: int, *, is_masked: bool = False) -> _Counted:
        """Return what so many steps of a Loop weigh, fewer if its body ends it by what is known before it runs."""
        body = body_of(node)
        carried = {
            inner.name: scope.numbers[outer]
            for inner, outer in zip(body.input[2:], node.input[2:], strict=False)
            if outer in scope.numbers
        }
        one = self.through(body, scope, {body.input[1].name: np.True_})
        is_endless = is_masked or goes_on(body, self.facts.constants)
        if one.is_exact and is_endless:
            return _Counted(n_steps * max(1, one.weight))
        total, is_exact = 0, True
        for step in range(n_steps):
            known = {**carried, body.input[0].name: np.int64(step), body.input[1].name: np.True_}
            made = self.through(body, scope, known)
            total += max(1, made.weight)
            results = [made.numbers.get(value.name) for value in body.output]
            is_exact = is_exact and made.is_exact and (is_endless or results[0] is not None)
            if total > _MOST or not (results[0] or is_endless):
                break
            carried = _carried(body.input[2:], results[1:])
        return _Counted(total, is_exact)


def _carried(inputs: Sequence[Any], results: Sequence[Number | None]) -> dict[str, Number]:
    pairs = zip(inputs, results, strict=False)
    return {value.name: number for value, number in pairs if number is not None}


def _scan_steps(node: Any, scope: _Scope) -> int:
    options = {attribute.name: attribute for attribute in node.attribute}
    n_scanned = options["num_scan_inputs"].i if "num_scan_inputs" in options else 0
    if not 0 < n_scanned <= len(node.input):
        return 1
    axes = list(options["scan_input_axes"].ints) if "scan_input_axes" in options else [0]
    shape = scope.shapes.get(node.input[len(node.input) - n_scanned], ())
    return shape[axes[0]] if axes and -len(shape) <= axes[0] < len(shape) else 1


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
