"""What operators make of numbers of one element: trip counts and conditions, known before a model runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from onnx import TensorProto
from onnx.helper import tensor_dtype_to_np_dtype

from t10.frontend.unsupported import STANDARD_DOMAINS

Number = np.generic

_PASSED_ON = ("Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand")
"""Operators that keep the value of a number; an Expand may repeat it."""
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Add": np.add,
    "And": np.logical_and,
    "Ceil": np.ceil,
    "Equal": np.equal,
    "Floor": np.floor,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Max": np.maximum,
    "Min": np.minimum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Not": np.logical_not,
    "Or": np.logical_or,
    "Sub": np.subtract,
    "Where": np.where,
    "Xor": np.logical_xor,
}
_N_OPERANDS = {**dict.fromkeys(("Abs", "Ceil", "Floor", "Neg", "Not"), 1), "Where": 3}
_CASTS = frozenset(
    {
        *(TensorProto.BOOL, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16),
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
    }
)


def number_made(node: Any, numbers: Mapping[str, Number]) -> dict[str, Number]:
    """Return what a node makes of known numbers, by the name of its result; nothing if that is not known."""
    if node.domain not in STANDARD_DOMAINS or not node.input or len(node.output) != 1:
        return {}
    operands = [numbers.get(name) for name in node.input]
    if node.op_type in _PASSED_ON:
        made = operands[0]
    elif node.op_type == "Cast":
        made = _cast(node, operands[0])
    else:
        made = _computed(node, operands)
    return {} if made is None else {node.output[0]: made}


def _cast(node: Any, operand: Number | None) -> Number | None:
    to = next((attribute.i for attribute in node.attribute if attribute.name == "to"), 0)
    if operand is None or to not in _CASTS:
        return None
    with np.errstate(all="ignore"):
        return tensor_dtype_to_np_dtype(to).type(operand)


def _computed(node: Any, operands: list[Number | None]) -> Number | None:
    compute = _ARITHMETIC.get(node.op_type)
    if compute is None or None in operands or len(operands) != _N_OPERANDS.get(node.op_type, 2):
        return None
    with np.errstate(all="ignore"):
        return next(iter(np.asarray(compute(*operands)).flat))
