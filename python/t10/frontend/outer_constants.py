"""Constants of a graph copied into the branches that read them: ONNX infers shapes there from what a branch holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from t10.frontend.read_names import names_read
from t10.frontend.weights import stays_constant

_BRANCHES = ("then_branch", "else_branch")


def give_constants_to_branches(model: Any) -> bool:
    """Copy small constants, in place, into the branches of every If that read them; return whether there were any."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer if _is_small(tensor)}
    return _given(model.graph, constants)


def _given(graph: Any, constants: Mapping[str, Any]) -> bool:
    has_changed = False
    branches = [
        attribute.g
        for node in graph.node
        if node.op_type == "If"
        for attribute in node.attribute
        if attribute.name in _BRANCHES
    ]
    for branch in branches:
        own = {tensor.name for tensor in branch.initializer}
        own |= {name for node in branch.node for name in node.output}
        visible = {name: tensor for name, tensor in constants.items() if name not in own}
        read = sorted(names_read(branch) & visible.keys())
        branch.initializer.extend(visible[name] for name in read)
        has_changed = bool(read) or has_changed
        inner = visible | {tensor.name: tensor for tensor in branch.initializer if _is_small(tensor)}
        has_changed = _given(branch, inner) or has_changed
    return has_changed


def _is_small(tensor: Any) -> bool:
    return stays_constant(tensor.data_type, tuple(tensor.dims))
