"""Operators of f16 computed in f32: what lies between their input and output may leave the range of f16.

LpNormalization(x)     becomes     Cast_f16(LpNormalization(Cast_f32(x)))
"""

from __future__ import annotations

from typing import Any

import onnx

from t10.frontend.protobuf_fields import replace_all
from t10.frontend.unsupported import STANDARD_DOMAINS

_T = onnx.TensorProto
COMPOSITE = frozenset(
    {
        "Celu", "Elu", "Gelu", "GlobalLpPool", "LRN", "LpNormalization", "LpPool", "Mean", "MeanVarianceNormalization",
        "Mish", "NegativeLogLikelihoodLoss", "ReduceL2", "ReduceLogSumExp", "Selu", "Sigmoid", "Softplus", "Softsign",
        "SoftmaxCrossEntropyLoss", "Swish",
    }
)  # fmt: skip
"""Operators lowered to several steps, whose sums, powers and exponentials may leave the range of f16.

A sum or mean alone (`ReduceMean`, `AveragePool`, `ReduceL1`) is one operator of T10's, which keeps it in f32 by itself.
"""


def compute_in_single(model: Any) -> None:
    """Put casts around every composite operator of f16, in place; types of the model's values must be known."""
    graph = model.graph
    values = (*graph.input, *graph.value_info, *graph.output)
    kinds = {v.name: v.type.tensor_type.elem_type for v in values} | {
        tensor.name: tensor.data_type for tensor in graph.initializer
    }
    nodes: list[Any] = []
    for node in graph.node:
        is_composite = node.op_type in COMPOSITE and node.domain in STANDARD_DOMAINS
        nodes.extend(_in_single(node, kinds) if is_composite else [node])
    replace_all(graph.node, nodes)


def _in_single(node: Any, kinds: dict[str, int]) -> list[Any]:
    """Return a node with casts to f32 before it and casts to f16 behind it, where its values are of f16."""
    before: list[Any] = []
    behind: list[Any] = []
    stem = node.output[0]
    for i, name in enumerate(node.input):
        if kinds.get(name) == _T.FLOAT16:
            node.input[i] = f"{stem}.single.in{i}"
            before.append(_cast(node, name, node.input[i], _T.FLOAT))
    for i, name in enumerate(node.output):
        if name and kinds.get(name) == _T.FLOAT16:
            node.output[i] = f"{name}.single"
            behind.append(_cast(node, node.output[i], name, _T.FLOAT16))
    return [*before, node, *behind]


def _cast(node: Any, source: str, result: str, to: int) -> Any:
    """Return a conversion that is told as part of `node`."""
    made = onnx.helper.make_node("Cast", [source], [result], name=node.name, to=to)
    made.metadata_props.extend(node.metadata_props)
    return made
