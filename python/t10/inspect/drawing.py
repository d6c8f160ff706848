"""The operator graph as a picture: text for Graphviz (`.dot`), or an `.svg` drawn here, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from t10.core.atomic import write_text
from t10.errors import InputError, printable
from t10.inspect.facts import ModelFacts, NodeFacts
from t10.inspect.tree import short

MAX_DRAWN = 3000
"""Nodes of an .svg; more than that nobody can look at."""

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 40, 20, 40
Edge = tuple[int, int, str]


def draw(facts: ModelFacts, path: Path) -> None:
    """Write the main graph to a .dot or .svg file; raises `InputError` for other names and graphs too large to draw."""
    if path.suffix == ".dot":
        write_text(path, printable(dot_text(facts)))
    elif path.suffix == ".svg":
        if len(facts.graph.nodes) > MAX_DRAWN:
            raise InputError(
                f"the graph has {len(facts.graph.nodes)} nodes (an .svg holds {MAX_DRAWN})",
                hint="write a .dot file instead",
            )
        write_text(path, printable(svg_text(facts)))
    else:
        raise InputError(f"--graph {path} is no picture (expected a name that ends in .dot or .svg)")


def edges(facts: ModelFacts) -> list[Edge]:
    """Return (maker, reader, value) for every value between two nodes, as positions in the main graph."""
    maker = {name: i for i, node in enumerate(facts.graph.nodes) for name in node.outputs if name}
    return [
        (maker[name], reader, name)
        for reader, node in enumerate(facts.graph.nodes)
        for name in dict.fromkeys(_reads(node))
        if name in maker and maker[name] != reader
    ]


def _reads(node: NodeFacts) -> Iterator[str]:
    """Yield what a node and its bodies read."""
    yield from node.inputs
    for body in node.bodies:
        for inner in body.all_nodes():
            yield from inner.inputs


def dot_text(facts: ModelFacts) -> str:
    """Return the graph for Graphviz, edges labelled with types."""
    lines = ["digraph model {", "  node [shape=box];"]
    for i, node in enumerate(facts.graph.nodes):
        lines.append(f"  n{i} [label={_quoted(node.kind)}, tooltip={_quoted(short(node.name))}];")
    for source, target, name in edges(facts):
        kind = facts.values[name].type_text() if name in facts.values else ""
        lines.append(f"  n{source} -> n{target} [label={_quoted(kind)}];")
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def svg_text(facts: ModelFacts) -> str:
    """Return the graph as a picture: a node stands below all it reads, as far left as its layer has room."""
    nodes, joined = facts.graph.nodes, edges(facts)
    layers = _layers(len(nodes), joined)
    filled: dict[int, int] = {}
    places: list[tuple[int, int]] = []
    for layer in layers:
        column = filled.get(layer, 0)
        filled[layer] = column + 1
        places.append((_GAP_X + column * (_WIDTH + _GAP_X), _GAP_Y + layer * (_HEIGHT + _GAP_Y)))
    width = _GAP_X + max(filled.values(), default=1) * (_WIDTH + _GAP_X)
    height = _GAP_Y + (max(layers, default=0) + 1) * (_HEIGHT + _GAP_Y)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    lines += [_svg_edge(places[source], places[target]) for source, target, _ in joined]
    lines += [_svg_node(node, facts, *place) for node, place in zip(nodes, places, strict=True)]
    return "\n".join([*lines, "</svg>", ""])


def _layers(n_nodes: int, joined: list[Edge]) -> list[int]:
    """Return how many nodes stand above each at least; edges that run backwards, of a cycle, are left out."""
    layers = [0] * n_nodes
    for source, target, _ in sorted(joined, key=lambda edge: edge[1]):
        if source < target:
            layers[target] = max(layers[target], layers[source] + 1)
    return layers


def _svg_edge(source: tuple[int, int], target: tuple[int, int]) -> str:
    x0, y0, x1, y1 = source[0] + _WIDTH // 2, source[1] + _HEIGHT, target[0] + _WIDTH // 2, target[1]
    return (
        f'<path d="M {x0} {y0} C {x0} {y0 + _GAP_Y // 2} {x1} {y1 - _GAP_Y // 2} {x1} {y1}" fill="none" '
        'stroke="#999"/>'
    )


def _svg_node(node: NodeFacts, facts: ModelFacts, x: int, y: int) -> str:
    made = next((facts.values[name].type_text() for name in node.outputs if name in facts.values), "")
    return (
        f"<g><title>{escape(short(node.name))}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#eef3fb" stroke="#456"/>'
        f'<text x="{x + 8}" y="{y + 16}" font-weight="bold">{escape(short(node.kind)[:28])}</text>'
        f"<text x={quoteattr(str(x + 8))} y={quoteattr(str(y + 32))}>{escape(made[:30])}</text></g>"
    )
