"""Operators whose result has a shape that depends on the data: refused by name, with what would help."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from t10.frontend.constant_inputs import fixable_inputs
from t10.frontend.selections import selected_count
from t10.frontend.unsupported import UnsupportedNode, title_of, unsupported

_FOUND = {
    "NonZero": "one column per element that is not zero",
    "Unique": "one element per different value",
    "Compress": "one slice per condition that holds",
    "NonMaxSuppression": "one row per box that is kept",
    "TopK": "as many elements as its input k says",
}
_DECIDES = {"Compress": 1, "TopK": 1}
"""Which input decides the shape alone: if it is constant, rules take the operator."""
_HINTS = {
    "NonZero": "keep the mask instead of places: choose with Where, and sum or take maxima over what it leaves",
    "Unique": "keep all elements: compare them with each other, or take TopK with a constant k to sort them",
    "Compress": "Where keeps the shape: put a value that changes nothing where the condition does not hold",
    "NonMaxSuppression": "end the model at its boxes and scores, and select afterwards",
    "TopK": "export the model with a constant k, the largest that is asked for, and leave out what is too much",
}


def data_dependent(model: Any, source: str, weights: Collection[str] = ()) -> list[UnsupportedNode]:
    """Return the nodes whose result has a shape that data decides.

    Called on a model whose constants are folded: a NonZero of constants is gone by then. `weights` are no inputs that
    could be fixed.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    return [
        unsupported(
            node,
            source,
            _message(node),
            f"{_HINTS[node.op_type]}; or bound it: --bound {title_of(node)}=N",
            fixable_inputs(model, [node.input[_DECIDES[node.op_type]]], weights)
            if node.op_type in _DECIDES
            else (),
        )
        for node in model.graph.node
        if _depends(node, constants)
    ]


def _depends(node: Any, constants: dict[str, Any]) -> bool:
    if node.op_type not in _FOUND or node.domain not in ("", "ai.onnx"):
        return False
    return node.op_type != "TopK" or selected_count(node, constants) is None


def _message(node: Any) -> str:
    made = next((name for name in node.output if name), "")
    return f"makes {made!r} with {_FOUND[node.op_type]} (expected a shape known before the model runs)"
