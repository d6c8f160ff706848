"""uint32 between conversions from int32 and back, computed as int32: exporters convert to shift.

The bits are the same. A shift to the left is a product; one to the right, which fills with zeros, a quotient of what is
behind the sign, to which the sign's bit is added at its new place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.unsupported import STANDARD_DOMAINS

_KIND = onnx.TensorProto
_BITWISE = frozenset({"BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"})
_OLDEST = 18
"""The opset that brought operators on bits of integers."""
_BEHIND_SIGN = 2**31 - 1

_make: Any = onnx.helper.make_node


def expand_words(model: Any) -> bool:
    """Compute, in place, a model's uint32 as int32, if all of it comes from int32 or constants and goes back to int32.

    Only operators on bits and shifts by a constant are taken. Returns whether there were any. Called on a model with
    inferred types.
    """
    graph = model.graph
    opset = next((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), 1)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    kinds = {
        value.name: value.type.tensor_type.elem_type
        for value in (*graph.input, *graph.value_info, *graph.output)
    }
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    words = {name for name, kind in kinds.items() if kind == _KIND.UINT32}
    touched = [node for node in graph.node if words.intersection((*node.input, *node.output))]
    outside = {value.name for value in (*graph.input, *graph.output)}
    if opset < _OLDEST or not touched or words & outside:
        return False
    if not all(_is_plain(node, kinds, constants) for node in touched):
        return False
    nodes: list[Any] = []
    for node in graph.node:
        nodes.extend(
            _written(graph, node, constants) if words.intersection((*node.input, *node.output)) else [node]
        )
    replace_all(graph.node, nodes)
    for tensor in graph.initializer:
        if tensor.name in words:
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(tensor).view(np.int32), tensor.name)
            )
    return True


def _is_plain(node: Any, kinds: dict[str, int], constants: dict[str, Any]) -> bool:
    if node.domain not in STANDARD_DOMAINS:
        return False
    if node.op_type == "Cast":
        to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
        return {kinds.get(node.input[0], 0), to} == {_KIND.INT32, _KIND.UINT32}
    if node.op_type == "BitShift":
        by = constants.get(node.input[1])
        return (
            by is not None and list(by.dims) in ([], [1]) and int(numpy_helper.to_array(by).reshape(())) < 32
        )
    return node.op_type in _BITWISE


def _written(graph: Any, node: Any, constants: dict[str, Any]) -> list[Any]:
    """Return what takes the place of a node on uint32."""
    output, x = node.output[0], node.input[0]
    if node.op_type == "Cast":
        return [_make("Identity", [x], [output], name=node.name)]
    if node.op_type != "BitShift":
        return [node]
    n_bits = int(numpy_helper.to_array(constants[node.input[1]]).reshape(()))

    def word(name: str, value: int) -> str:
        tensor = numpy_helper.from_array(np.array(value, np.uint32).view(np.int32), f"{output}.{name}")
        graph.initializer.append(tensor)
        return tensor.name

    if onnx.helper.get_attribute_value(node.attribute[0]) == b"LEFT":
        return [_make("Mul", [x, word("factor", 1 << n_bits)], [output], name=node.name)]
    if not n_bits:
        return [_make("Identity", [x], [output], name=node.name)]
    # Behind the sign are 31 bits: of a shift by 31 nothing but the sign is left.
    names = [f"{output}.{part}" for part in ("behind", "moved", "negative", "sign")]
    divisor = word("divisor", 1 << min(n_bits, 30))
    nodes = [
        _make("BitwiseAnd", [x, word("mask", _BEHIND_SIGN if n_bits < 31 else 0)], [names[0]]),
        _make("Div", [names[0], divisor], [names[1]]),
        _make("Less", [x, word("zero", 0)], [names[2]]),
        _make("Where", [names[2], word("bit", 1 << (31 - n_bits)), word("none", 0)], [names[3]]),
        _make("Add", [names[1], names[3]], [output], name=node.name),
    ]
    return nodes
