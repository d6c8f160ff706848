"""How many steps a Loop takes whose body ends it by what no data decide: its step's number, constants, counters."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from t10.frontend.fold import evaluate
from t10.frontend.rewrites.site import Site
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import constant_tensor

Values = dict[str, NDArray[Any]]


def n_steps_of(site: Site, body: Any, most: int) -> int | None:
    """Return after how many steps, at most `most`, the body of a Loop ends it; None where data decide that."""
    nodes, read = _deciding(body)
    starts = dict(zip((value.name for value in body.input[2:]), site.node.input[2:], strict=False))
    known = _constants(site, body, read)
    outer = {name: site.facts.constants.get(starts[name]) for name in read & starts.keys()}
    carried = {name: numpy_helper.to_array(tensor) for name, tensor in outer.items() if tensor is not None}
    made = {name for node in nodes for name in node.output}
    if not read <= {*carried, *made, *known, *(value.name for value in body.input[:2])}:
        return None
    model = onnx.helper.make_model(
        onnx.helper.make_graph([], "step", [], []),
        opset_imports=[onnx.helper.make_opsetid("", site.facts.opset)],
    )
    outputs = {i.name: o.name for i, o in zip(body.input[2:], body.output[1:], strict=False)}
    for step in range(most):
        values = {**known, **carried, body.input[0].name: np.array(step, np.int64)}
        values[body.input[1].name] = np.array(True)
        for node in nodes:
            results = _results(model, node, values)
            if results is None:
                return None
            values |= results
        if not values[body.output[0].name].reshape(()):
            return step + 1
        carried = {name: values[outputs[name]] for name in carried}
    return most


def _deciding(body: Any) -> tuple[list[Any], set[str]]:
    """Return the nodes of a body that its condition, in this step or a later one, depends on, and all that is read."""
    makers = {name: place for place, node in enumerate(body.node) for name in node.output if name}
    before = {i.name: o.name for i, o in zip(body.input[2:], body.output[1:], strict=False)}
    waiting, read, deciding = [body.output[0].name], set[str](), set[int]()
    while waiting:
        name = waiting.pop()
        if not name or name in read:
            continue
        read.add(name)
        if name in before:
            waiting.append(before[name])
        elif name in makers:
            deciding.add(makers[name])
            waiting.extend(body.node[makers[name]].input)
    return [body.node[place] for place in sorted(deciding)], read


def _constants(site: Site, body: Any, read: set[str]) -> Values:
    """Return the constants among what is read; a body hides some of the graph around it by its own names."""
    own = {value.name for value in body.input} | {name for node in body.node for name in node.output}
    tensors = {name: tensor for name, tensor in site.facts.constants.items() if name not in own}
    tensors |= {tensor.name: tensor for tensor in body.initializer}
    return {name: numpy_helper.to_array(tensors[name]) for name in read & tensors.keys()}


def _results(model: Any, node: Any, values: Values) -> Values | None:
    if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
        return {node.output[0]: numpy_helper.to_array(constant_tensor(node))}
    return evaluate(model, node, values, {})
