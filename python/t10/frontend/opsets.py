"""Models of old opsets, raised to the oldest that is lowered."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import version_converter

from t10.frontend.unsupported import STANDARD_DOMAINS

OLDEST = 13
"""The first opset in which axes and bounds are inputs and every operator broadcasts alike."""

_OLDEST_IR = 8

_onnx: Any = onnx  # some of its functions are typed in part only


def plain_domain(model: Any) -> None:
    """Write the domain of ONNX's operators as the empty text, in place: it has two names, and who lowers knows one."""
    versions = {"" if e.domain in STANDARD_DOMAINS else e.domain: e.version for e in model.opset_import}
    del model.opset_import[:]
    model.opset_import.extend(onnx.helper.make_opsetid(*each) for each in versions.items())
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    while waiting:
        for node in waiting.pop():
            if node.domain in STANDARD_DOMAINS:
                node.domain = ""
            for attribute in node.attribute:
                waiting.extend(graph.node for graph in (attribute.g, *attribute.graphs) if graph.node)


def raise_opset(model: Any) -> Any:
    """Return the model in opset 13 at least, and in an IR version in which constants are no inputs.

    A model that ONNX cannot convert is returned as it is: its operators may be lowered all the same.
    """
    model.ir_version = max(model.ir_version, _OLDEST_IR)
    version = next(
        (entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), OLDEST
    )
    if version >= OLDEST or model.functions:
        return model
    try:
        converted: Any = version_converter.convert_version(model, OLDEST)
        _onnx.checker.check_model(converted)
    except (
        RuntimeError,
        ValueError,
        IndexError,
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        version_converter.ConvertError,
    ):
        return model
    made = {name for node in converted.graph.node for name in node.output}
    made |= {value.name for value in (*converted.graph.input, *converted.graph.initializer)}
    is_whole = all(value.name in made for value in model.graph.output)
    return converted if is_whole and _signature(converted) == _signature(model) else model


def _signature(model: Any) -> list[bytes]:
    """Return names and types of inputs and outputs; the converter changes those of a Scan that had a batch."""
    values = (*model.graph.input, *model.graph.output)
    return [value.name.encode() + value.type.SerializeToString() for value in values]
