"""The operator graph as a text tree: scopes of node names, nodes in the order of the file, bodies below their node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from t10.errors import printable
from t10.inspect.facts import GraphFacts, ModelFacts, NodeFacts, Port

_MAX_NAMES = 6
_MAX_NAME = 60


def tree_lines(facts: ModelFacts, *, max_nodes: int | None = None) -> Iterator[str]:
    """Yield a line per node (`kind name: inputs -> outputs`, with types where known) and per scope.

    Names with slashes (`/layer.0/fc/MatMul`), as exporters write them, become scopes. After `max_nodes` nodes of the
    main graph or of one body, a line says how many are left out.
    """
    yield f"{short(facts.graph.name) or 'graph'}: {len(facts.graph.nodes)} nodes"
    yield from _graph_lines(facts.graph, facts.values, max_nodes, "  ")


def short(name: str) -> str:
    """Return a name as it is shown: on one line, and cut if it is very long."""
    plain = printable(" ".join(name[: _MAX_NAME + 1].split("\n")))
    return plain if len(plain) <= _MAX_NAME else f"{plain[: _MAX_NAME - 3]}..."


def node_line(node: NodeFacts, values: Mapping[str, Port]) -> str:
    """Return what a node is, reads and makes."""
    name = short(node.name.rpartition("/")[2])
    reads = _named(node.inputs, {})
    makes = _named(node.outputs, values)
    title = node.kind if name in ("", node.kind) else f"{node.kind} {name}"
    return f"{short(title)}: {reads or 'nothing'} -> {makes or 'nothing'}"


def _graph_lines(
    graph: GraphFacts, values: Mapping[str, Port], max_nodes: int | None, indent: str
) -> Iterator[str]:
    open_scopes: tuple[str, ...] = ()
    shown = graph.nodes if max_nodes is None else graph.nodes[:max_nodes]
    for node in shown:
        scopes = _scopes(node.name)
        common = 0
        while common < min(len(scopes), len(open_scopes)) and scopes[common] == open_scopes[common]:
            common += 1
        for depth in range(common, len(scopes)):
            yield f"{indent}{'  ' * depth}{short(scopes[depth])}/"
        open_scopes = scopes
        inside = f"{indent}{'  ' * len(scopes)}"
        yield f"{inside}{node_line(node, values)}"
        for body in node.bodies:
            yield f"{inside}  {short(body.name)}: {len(body.nodes)} nodes"
            yield from _graph_lines(body, values, max_nodes, f"{inside}    ")
    if len(shown) < len(graph.nodes):
        yield f"{indent}... {len(graph.nodes) - len(shown)} more nodes (--rows shows more)"


def _scopes(name: str) -> tuple[str, ...]:
    return tuple(part for part in name.split("/")[:-1] if part)[:20]


def _named(names: tuple[str, ...], values: Mapping[str, Port]) -> str:
    """Return names with their types, a long list cut."""
    shown = [
        f"{short(name)} {values[name].type_text()}" if name in values else short(name) or "-"
        for name in names[:_MAX_NAMES]
    ]
    more = [f"... {len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*shown, *more])
