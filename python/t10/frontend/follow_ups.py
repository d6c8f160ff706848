"""What stands behind nodes that were taken out of a model: of values of unknown types, nothing can be said."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from t10.frontend.read_names import names_read_by
from t10.frontend.rewrites.apply import facts_of
from t10.frontend.unsupported import UnsupportedNode


def extents_asked(model: Any, refused: Iterable[UnsupportedNode]) -> frozenset[str]:
    """Return the values that are computed from extents of what nodes make that are refused, and from constants."""
    behind = {name for node in refused for name in node.outputs if name}
    constants = {tensor.name for tensor in model.graph.initializer}
    asked: set[str] = set()
    for node in model.graph.node:
        read = {name for name in node.input if name}
        made = {name for name in node.output if name}
        is_asked = node.op_type in ("Shape", "Size") and not read.isdisjoint(behind)
        if is_asked or (read & asked and read <= asked | constants):
            asked |= made
        elif not behind.isdisjoint(names_read_by([node])):
            behind |= made
    return frozenset(asked)


def unknown_values(model: Any, taken_out: Iterable[UnsupportedNode]) -> frozenset[str]:
    """Return the values that nodes made which were taken out, and what is made of these, of unknown type or shape.

    Called on a model with inferred shapes.
    """
    facts = facts_of(model)
    unknown = {name for node in taken_out for name in node.outputs if name} - facts.shapes.keys()
    for node in model.graph.node:
        if not unknown.isdisjoint(names_read_by([node])):
            unknown |= {name for name in node.output if name and name not in facts.shapes}
    return frozenset(unknown)
