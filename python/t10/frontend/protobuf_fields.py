"""Repeated fields of protocol buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any


def replace_all(field: Any, kept: Iterable[Any]) -> None:
    """Make `kept` all that a repeated field of messages holds, in place; they may be of the field itself."""
    copies: list[Any] = [deepcopy(each) for each in kept]
    del field[:]
    field.extend(copies)


def all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield nodes and those of graphs in their attributes."""
    waiting = [nodes]
    while waiting:
        for node in waiting.pop():
            yield node
            for attribute in node.attribute:
                waiting.extend(graph.node for graph in (attribute.g, *attribute.graphs) if graph.node)
