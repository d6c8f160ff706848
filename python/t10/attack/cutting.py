"""Models made of some nodes of a model: what they read of the rest are inputs, or constants where data do not reach."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """An ONNX model without local functions, and what ONNX Runtime has for its values: inputs and what nodes give."""

    model: Any
    values: Arrays
    types: dict[str, int]
    """Element types as the model declares them, where they are known: ONNX Runtime computes f16 in f32."""

    @property
    def nodes(self) -> tuple[Any, ...]:
        """Return the nodes of the main graph, in order."""
        return tuple(self.model.graph.node)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A model of some of the nodes, and inputs for it."""

    model: Any
    inputs: Arrays


def inlined(model: Any) -> Any:
    """Return a model with the bodies of its local functions in their places."""
    import onnx.inliner

    return onnx.inliner.inline_local_functions(model) if model.functions else model


def whole(model: Any, inputs: Arrays, values: Arrays) -> Whole:
    """Return a model with what it is given and what ONNX Runtime has for the rest."""
    import onnx

    try:
        inferred = onnx.shape_inference.infer_shapes(model).graph
    except (onnx.shape_inference.InferenceError, ValueError):
        inferred = model.graph
    known = (*inferred.value_info, *inferred.input, *inferred.output)
    types = {value.name: value.type.tensor_type.elem_type for value in known}
    return Whole(model, {**inputs, **values}, {name: kind for name, kind in types.items() if kind})


def reads(node: Any) -> Iterator[str]:
    """Yield the names a node reads, those that graphs inside it read from outside included."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = attribute.g
            made = {value.name for value in (*inner.input, *inner.initializer)}
            made |= {name for each in inner.node for name in each.output}
            yield from (name for each in inner.node for name in reads(each) if name not in made)
            yield from (value.name for value in inner.output if value.name not in made)


def ancestors(given: Whole, value: str) -> tuple[int, ...]:
    """Return the numbers of the nodes that a value is computed by."""
    maker = {name: number for number, node in enumerate(given.nodes) for name in node.output}
    found: set[int] = set()
    stack = [value]
    while stack:
        number = maker.get(stack.pop())
        if number is not None and number not in found:
            found.add(number)
            stack.extend(reads(given.nodes[number]))
    return tuple(sorted(found))


def part(given: Whole, numbers: Collection[int], outputs: Collection[str] = ()) -> Part | None:
    """Return the model of some nodes; `outputs` defaults to what others read of them and what the model gives.

    None where ONNX Runtime has no value for something that they read, or where they give nothing.
    """
    from onnx import ValueInfoProto, helper, numpy_helper

    graph = given.model.graph
    nodes = [node for number, node in enumerate(given.nodes) if number in numbers]
    made = [name for node in nodes for name in node.output if name]
    results = [name for name in made if name in (outputs or _seen(given, numbers)) and name in given.values]
    stored = {tensor.name: tensor for tensor in graph.initializer}
    needed = dict.fromkeys(name for node in nodes for name in reads(node) if name not in made)
    if not results or any(name not in stored and name not in given.values for name in needed):
        return None
    fixed, free = _without_data(given), dict[str, NDArray[Any]]()
    constants = [stored[name] for name in needed if name in stored]
    for name in needed:
        if name in stored:
            continue
        array = _typed(given, name)
        if name in fixed:
            constants.append(numpy_helper.from_array(array, name))
        else:
            free[name] = array
    made_graph = helper.make_graph(
        nodes,
        graph.name or "part",
        [_info(name, array) for name, array in free.items()],
        [ValueInfoProto(name=name) for name in results],
        initializer=constants,
    )
    for value in made_graph.output:
        value.CopyFrom(_info(value.name, _typed(given, value.name)))
    model = helper.make_model(made_graph, opset_imports=list(given.model.opset_import))
    model.ir_version = given.model.ir_version
    return Part(model, free)


def _seen(given: Whole, numbers: Collection[int]) -> set[str]:
    """Return what the other nodes read and what the model gives."""
    others = (node for number, node in enumerate(given.nodes) if number not in numbers)
    return {name for node in others for name in reads(node)} | {v.name for v in given.model.graph.output}


def _without_data(given: Whole) -> set[str]:
    """Return the values that depend on no input's elements: constants, and shapes."""
    stored = {tensor.name for tensor in given.model.graph.initializer}
    found = set(stored)
    for node in given.nodes:
        if node.op_type in ("Shape", "Size") or all(name in found for name in reads(node)):
            found |= set(node.output)
    return found


def _typed(given: Whole, name: str) -> NDArray[Any]:
    """Return a value as the model declares it."""
    import onnx

    array = given.values[name]
    kind = given.types.get(name)
    if kind != onnx.TensorProto.FLOAT16:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float16)


def _info(name: str, array: NDArray[Any]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), list(array.shape)
    )
