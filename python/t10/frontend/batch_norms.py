"""Batch normalisation behind a convolution, taken into its weights: exporters may leave the two apart.

    BatchNormalization(Conv(x, w, b), scale, bias, mean, variance)   becomes   Conv(x, w · f, (b - mean) · f + bias)

with `f = scale / sqrt(variance + epsilon)`, one number per output channel.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import Weights

Array = NDArray[Any]


def fold_batch_norms(model: Any, weights: Weights) -> None:
    """Take normalisations at inference into the convolution that each alone reads, in place, if numbers are known."""
    graph = model.graph
    values = _Values(graph, weights)
    makers = {name: node for node in graph.node for name in node.output if name}
    gone: set[str] = set()
    for node in graph.node:
        if node.op_type != "BatchNormalization" or not _is_inference(node):
            continue
        conv = makers.get(node.input[0])
        if conv is None or conv.op_type != "Conv" or conv.domain not in STANDARD_DOMAINS:
            continue
        if values.n_readers[node.input[0]] == 1 and _fold(conv, node, values):
            conv.output[0] = node.output[0]
            gone.add(node.input[0])
    if gone:
        kept = [n for n in graph.node if n.op_type != "BatchNormalization" or n.input[0] not in gone]
        replace_all(graph.node, kept)
        stale = [value for value in graph.value_info if value.name not in gone]
        replace_all(graph.value_info, stale)


def _is_inference(node: Any) -> bool:
    options = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    is_plain = not options.get("training_mode", 0) and options.get("spatial", 1)
    return (
        bool(is_plain) and node.domain in STANDARD_DOMAINS and len(node.output) == 1 and len(node.input) == 5
    )


class _Values:
    """The constants of a graph by name, and how many nodes and outputs read each value."""

    def __init__(self, graph: Any, weights: Weights) -> None:
        self.weights = weights
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.n_readers: Counter[str] = Counter(value.name for value in graph.output)
        waiting = [graph]
        while waiting:
            inner = waiting.pop()
            for node in inner.node:
                self.n_readers.update(node.input)
                waiting.extend(a.g for a in node.attribute if a.HasField("g"))
            if inner is not graph:
                self.n_readers.update(value.name for value in inner.output)

    def get(self, name: str) -> Array | None:
        """Return the values of a constant, None for what is none or has none."""
        tensor = self.tensors.get(name)
        return self.weights.values.get(name) if tensor is None else numpy_helper.to_array(tensor)

    def put(self, name: str, array: Array) -> None:
        """Give a constant other values of the same shape."""
        tensor = self.tensors.get(name)
        if tensor is None:
            self.weights.values[name] = array
        else:
            tensor.CopyFrom(numpy_helper.from_array(array, name))


def _fold(conv: Any, node: Any, values: _Values) -> bool:
    """Change weight and bias of a convolution; return False, and change nothing, where they are not its own."""
    weight = values.get(conv.input[1])
    numbers = [values.get(name) for name in node.input[1:]]
    has_bias = len(conv.input) > 2 and bool(conv.input[2])
    old = values.get(conv.input[2]) if has_bias else np.zeros(1)
    target = conv.input[2] if has_bias else node.input[2]
    if (
        weight is None
        or old is None
        or any(each is None or each.shape != weight.shape[:1] for each in numbers)
    ):
        return False
    if weight.dtype.kind != "f" or values.n_readers[conv.input[1]] != 1 or values.n_readers[target] != 1:
        return False
    scale, bias, mean, variance = (np.asarray(each, np.float64) for each in numbers)
    epsilon = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + epsilon)
        shift = (np.asarray(old, np.float64) - mean) * factor + bias
    column = (-1, *[1] * (weight.ndim - 1))
    made = (weight * factor.reshape(column)).astype(weight.dtype), shift.astype(weight.dtype)
    if not all(np.isfinite(each).all() for each in made):
        return False
    values.put(conv.input[1], made[0])
    values.put(target, made[1])
    if not has_bias:
        inputs = [*conv.input[:2], target]
        del conv.input[:]
        conv.input.extend(inputs)
    return True
