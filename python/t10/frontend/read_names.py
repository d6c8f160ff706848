"""Which values a graph reads, bodies of control flow included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def names_read(graph: Any) -> set[str]:
    """Return every name a node of the graph or of a nested graph reads, and the outputs."""
    return {value.name for value in graph.output} | names_read_by(graph.node)


def names_read_by(nodes: Iterable[Any]) -> set[str]:
    """Return every name that nodes and the graphs inside them read."""
    names: set[str] = set()
    for node in nodes:
        names.update(node.input)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                names |= names_read(attribute.g)
            for inner in attribute.graphs:
                names |= names_read(inner)
    return names
