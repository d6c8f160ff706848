"""Inputs and outputs of few bits of a model that ONNX Runtime runs: given and returned in wider types, as compiled.

x: float8e4m3fn   becomes   x: float, and a Cast to float8e4m3fn that the nodes read
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.arrays import Arrays

_SUFFIX = ".t10.narrow"
_CASTS = 19
"""The first opset whose Cast has types of float8."""


def widen_ends(model: Any) -> dict[str, np.dtype[Any]]:
    """Put casts at inputs and outputs of few bits, in place; return what the inputs hold, by name."""
    from t10.frontend.narrow_types import WIDENED

    onnx: Any = importlib.import_module("onnx")
    graph = model.graph
    stored = {tensor.name for tensor in graph.initializer}
    holds: dict[str, np.dtype[Any]] = {}
    before: list[Any] = []
    behind: list[Any] = []
    renamed: dict[str, str] = {}
    for values, casts in ((graph.input, before), (graph.output, behind)):
        for value in values:
            kind = value.type.tensor_type
            if kind.elem_type not in WIDENED or value.name in stored:
                continue
            narrow, wide = kind.elem_type, WIDENED[kind.elem_type]
            if wide == onnx.TensorProto.FLOAT16:  # f16 is computed in f32
                wide = onnx.TensorProto.FLOAT
            inner = renamed.setdefault(value.name, value.name + _SUFFIX)
            is_input = casts is before
            ends, to = ((value.name, inner), narrow) if is_input else ((inner, value.name), wide)
            casts.append(onnx.helper.make_node("Cast", [ends[0]], [ends[1]], name=inner, to=to))
            kind.elem_type = wide
            if is_input:
                holds[value.name] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(narrow))
    if renamed:
        _rename(graph, renamed)
        nodes = [*before, *graph.node, *behind]
        del graph.node[:]
        graph.node.extend(nodes)
        _raise_opset(model)
    return holds


def held(inputs: Arrays, holds: Mapping[str, np.dtype[Any]]) -> Arrays:
    """Return inputs with the nearest values that those of few bits have."""
    return {name: _held(array, holds[name]) if name in holds else array for name, array in inputs.items()}


def _held(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    import ml_dtypes

    types: Any = ml_dtypes  # typed in part only
    if "int" in dtype.name:
        limits = types.iinfo(dtype)
        return np.clip(array, limits.min, limits.max)
    limits, wide = types.finfo(dtype), array.astype(np.float32)
    return np.clip(wide, float(limits.min), float(limits.max)).astype(dtype).astype(array.dtype)


def _rename(graph: Any, renamed: Mapping[str, str]) -> None:
    """Give values other names where nodes read and make them, those of graphs inside nodes included."""
    for node in graph.node:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = renamed.get(name, name)
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                own = {value.name for value in body.input}
                _rename(body, {name: inner for name, inner in renamed.items() if name not in own})


def _raise_opset(model: Any) -> None:
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = max(entry.version, _CASTS)
