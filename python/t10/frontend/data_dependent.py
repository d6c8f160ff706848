"""Operators whose result has a shape that depends on the data: refused by name, with what would help."""

from __future__ import annotations

from typing import Any

from t10.errors import UnsupportedOpError
from t10.frontend.selections import selected_count

LOCATION_KEY = "t10.location"
"""Where a node of a model stands that was not read from ONNX itself."""

_FOUND = {
    "NonZero": "one column per element that is not zero",
    "Unique": "one element per different value",
    "Compress": "one slice per condition that holds",
    "NonMaxSuppression": "one row per box that is kept",
    "TopK": "as many elements as its input k says",
}
_HINTS = {
    "NonZero": "keep the mask instead of places: choose with Where, and sum or take maxima over what it leaves",
    "Unique": "keep all elements: compare them with each other, or take TopK with a constant k to sort them",
    "Compress": "Where keeps the shape: put a value that changes nothing where the condition does not hold",
    "NonMaxSuppression": "end the model at its boxes and scores, and select afterwards",
    "TopK": "export the model with a constant k, the largest that is asked for, and leave out what is too much",
}


def refuse_data_dependent(model: Any, source: str) -> None:
    """Raise `UnsupportedOpError` if data decides the shape of any node's result; `details` names all but the first.

    Called on a model whose constants are folded: a NonZero of constants is gone by then.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if _depends(node, constants)]
    if not nodes:
        return
    first = nodes[0]
    raise UnsupportedOpError(
        _message(first),
        operator=first.name,
        location=_location(first, source),
        hint=_HINTS[first.op_type],
        details=tuple(
            f"{_location(node, source)}: operator {node.name!r}: {_message(node)}" for node in nodes[1:]
        ),
    )


def _depends(node: Any, constants: dict[str, Any]) -> bool:
    if node.op_type not in _FOUND or node.domain not in ("", "ai.onnx"):
        return False
    return node.op_type != "TopK" or selected_count(node, constants) is None


def _message(node: Any) -> str:
    made = next((name for name in node.output if name), "")
    return f"{node.op_type} makes {made!r} with {_FOUND[node.op_type]} (expected a shape known before the model runs)"


def _location(node: Any, source: str) -> str:
    """Return where a node stands; text that MLIR read from memory is named after the file."""
    found = next((entry.value for entry in node.metadata_props if entry.key == LOCATION_KEY), source)
    return f"{source}{found[1:]}" if found.startswith("-:") else found
