"""Names of values, and new ones that no value has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def value_names(graph: Any) -> Iterator[str]:
    """Yield the names of all values of a graph, and of graphs in it."""
    for value in (*graph.input, *graph.initializer, *graph.output):
        yield value.name
    for node in graph.node:
        yield from node.output
        for attribute in node.attribute:
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from value_names(inner)


def fresh(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and take it: this one, or with a number behind it."""
    found, n = name, 0
    while found in taken:
        n += 1
        found = f"{name}.{n}"
    taken.add(found)
    return found
