"""Operators that ONNX defines by others, and functions of the model, replaced by their bodies."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import inliner

from t10.errors import InputError
from t10.frontend.shapes import one_line

EXPANDED = frozenset(
    {
        "AffineGrid", "Attention", "CausalConvWithState", "CenterCropPad", "GreaterOrEqual", "GroupNormalization",
        "LessOrEqual", "LinearAttention", "MeanVarianceNormalization", "RMSNormalization",
        "ReduceLogSum", "ReduceLogSumExp", "RotaryEmbedding", "SwiGLU", "Swish",
    }
)  # fmt: skip
"""ONNX function operators that the lowering does not know, or lowers worse than their bodies."""


def expand_functions(model: Any, operators: frozenset[str] = EXPANDED) -> Any:
    """Return the model with its own functions and the ONNX functions among `operators` inlined.

    Raises `InputError` if a body cannot be made, for example of a function that calls itself.
    """
    try:
        if model.functions:
            model = inliner.inline_local_functions(model)
        present = sorted(
            {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")} & operators
        )
        if present:
            _type_constants(model)
            names = [("", name) for name in present]
            model = inliner.inline_selected_functions(model, names, inline_schema_functions=True)
    except (RuntimeError, ValueError, onnx.checker.ValidationError) as error:
        raise InputError(f"functions of the model cannot be expanded: {one_line(error)}") from error
    _name_nodes(model)
    return model


def _type_constants(model: Any) -> None:
    """State the types of the initializers among the values: the inliner looks nowhere else."""
    known = {value.name for value in (*model.graph.value_info, *model.graph.input)}
    for tensor in model.graph.initializer:
        if tensor.name not in known:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            model.graph.value_info.append(info)


def _name_nodes(model: Any) -> None:
    """Give nodes without a name their first output's name: names become locations, and those reach the reports."""
    for node in model.graph.node:
        if not node.name:
            node.name = next((name for name in node.output if name), node.op_type)
