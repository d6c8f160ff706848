"""Every node that has a rule, rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t10.errors import UnsupportedOpError
from t10.frontend.protobuf_fields import replace_all
from t10.frontend.read_names import names_read
from t10.frontend.reading import reading
from t10.frontend.rewrites.rules import rules
from t10.frontend.rewrites.site import MOST_WRITTEN, Facts, Rule, Shape, Site
from t10.frontend.unsupported import LOCATION_KEY, STANDARD_DOMAINS, title_of

MOST_EXTENT = 1 << 26
"""Rules may write the places along an axis as a constant: longer ones have no rule."""

_CONTROL_FLOW = ("If", "Loop", "Scan")


def rewrite(model: Any) -> bool:
    """Rewrite, in place, every node whose operator has a rule that applies; return whether there was any.

    Called on a model with inferred shapes; what is written may have a rule in turn once its shapes are inferred.
    """
    return rewrite_by(model, rules(), MOST_EXTENT)


def rewrite_by(
    model: Any,
    by_operator: Mapping[str, Rule],
    most_extent: int | None = None,
    domains: Sequence[str] = STANDARD_DOMAINS,
) -> bool:
    """Rewrite, in place, every node of some domains to which a rule applies, none with longer extents.

    Returns whether there was any.
    """
    graph = model.graph
    if not any(node.op_type in by_operator for node in graph.node):
        return False
    facts = facts_of(model)
    nodes: list[Any] = []
    has_changed, n_unrolled = False, 0
    for node in graph.node:
        rule = by_operator.get(node.op_type) if node.domain in domains else None
        written = None if rule is None else _rewritten(node, graph, facts, rule, most_extent)
        nodes.extend([node] if written is None else written)
        has_changed = has_changed or written is not None
        if written is not None and node.op_type in _CONTROL_FLOW:
            n_unrolled += len(written)
            _check_unrolled(node, n_unrolled)
    if not has_changed:
        return False
    replace_all(graph.node, nodes)
    return True


def _check_unrolled(node: Any, n_unrolled: int) -> None:
    """Refuse loops that are small each and too large together, as those that a loop has been unrolled to."""
    if n_unrolled > MOST_WRITTEN:
        raise UnsupportedOpError(
            f"{node.op_type} and others before it would be written out as more than {MOST_WRITTEN} nodes",
            operator=title_of(node),
            hint="fewer or shorter loops",
        )


def _rewritten(node: Any, graph: Any, facts: Facts, rule: Rule, most_extent: int | None) -> list[Any] | None:
    extents = [extent for name in (*node.input, *node.output) for extent in facts.shapes.get(name, ())]
    if most_extent is not None and max(extents, default=0) > most_extent:
        return None
    site = Site(node, graph, facts)
    n_constants = len(graph.initializer)
    with reading(node):
        applies = rule(site)
    if not applies:
        del graph.initializer[n_constants:]
        return None
    where = [entry for entry in node.metadata_props if entry.key == LOCATION_KEY]
    for written in site.nodes:
        written.metadata_props.extend(where)
    return site.nodes


def facts_of(model: Any) -> Facts:
    """Return what is known of the values of a model whose shapes are inferred."""
    graph = model.graph
    shapes: dict[str, Shape] = {}
    kinds: dict[str, int] = {}
    for value in (*graph.input, *graph.value_info, *graph.output):
        kind = value.type.tensor_type
        if kind.elem_type:
            kinds[value.name] = kind.elem_type
        if kind.HasField("shape") and all(dim.HasField("dim_value") for dim in kind.shape.dim):
            shapes[value.name] = tuple(dim.dim_value for dim in kind.shape.dim)
    for tensor in graph.initializer:
        shapes[tensor.name], kinds[tensor.name] = tuple(tensor.dims), tensor.data_type
    read = names_read(graph)
    opset = next((entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS), 1)
    constants = {tensor.name: tensor for tensor in graph.initializer}
    return Facts(shapes, kinds, constants, frozenset(read), opset)
