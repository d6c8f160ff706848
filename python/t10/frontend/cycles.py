"""Whether the nodes of a graph stand in an order in which they can be computed, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from t10.frontend.unsupported import title_of

_MAX_NAMED = 6


def order_problem(graph: Any, given: frozenset[str]) -> Iterator[str]:
    """Yield what the first node reads that is not `given` and not made before: made nowhere, later, or in a cycle."""
    ready = set(given) | {""}
    for i, node in enumerate(graph.node):
        for name in node.input:
            if name not in ready:
                yield _explained(graph, i, name)
                return
        ready.update(node.output)


def _explained(graph: Any, reader: int, name: str) -> str:
    maker = {made: i for i, node in enumerate(graph.node) for made in node.output if made}
    title = f"{graph.node[reader].op_type} node {title_of(graph.node[reader])[:80]!r} reads {name[:80]!r}"
    if name not in maker:
        return f"{title}, which nothing makes"
    cycle = _cycle(graph, maker, reader)
    if not cycle:
        return f"{title} before it is made (nodes must be sorted)"
    names = [repr(title_of(graph.node[i])[:80]) for i in cycle[:_MAX_NAMED]]
    more = f" and {len(cycle) - _MAX_NAMED} more" if len(cycle) > _MAX_NAMED else ""
    return f"nodes form a cycle: {' -> '.join([*names, names[0]])}{more}"


def _cycle(graph: Any, maker: dict[str, int], start: int) -> list[int]:
    """Return the nodes of a cycle that what `start` reads, and what that reads, runs into; empty if there is none."""
    open_at: dict[int, int] = {}
    done: set[int] = set()
    path: list[tuple[int, list[int]]] = [(start, _sources(graph, maker, start))]
    open_at[start] = 0
    while path:
        node, waiting = path[-1]
        if not waiting:
            path.pop()
            open_at.pop(node)
            done.add(node)
            continue
        following = waiting.pop()
        if following in open_at:
            return [each for each, _ in reversed(path[open_at[following] :])]
        if following not in done:
            open_at[following] = len(path)
            path.append((following, _sources(graph, maker, following)))
    return []


def _sources(graph: Any, maker: dict[str, int], node: int) -> list[int]:
    return sorted({maker[name] for name in graph.node[node].input if name in maker}, reverse=True)
