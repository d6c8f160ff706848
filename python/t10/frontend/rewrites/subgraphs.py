"""The graph of an attribute, written out where its node stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from t10.frontend.rewrites.site import Site
from t10.frontend.unsupported import STANDARD_DOMAINS
from t10.frontend.weights import constant_tensor


def write_graph(site: Site, graph: Any, inputs: Mapping[str, str]) -> list[str]:
    """Write the nodes of a graph whose inputs are bound to values, under new names; return its outputs' names.

    Names that the graph does not define are those of the graph around it.
    """
    names: dict[str, str] = dict(inputs)
    for tensor in graph.initializer:
        names[tensor.name] = _constant(site, tensor)
    for node in graph.node:
        if node.op_type == "Constant" and node.domain in STANDARD_DOMAINS:
            names[node.output[0]] = _constant(site, constant_tensor(node))
            continue
        copy: Any = onnx.NodeProto.FromString(node.SerializeToString())
        copy.input[:] = [names.get(name, name) for name in node.input]
        for name in node.output:
            if name:
                names[name] = site.fresh(name)
        copy.output[:] = [names[name] if name else "" for name in node.output]
        copy.name = f"{site.node.name or site.stem}.{node.name or node.op_type.lower()}"
        for attribute in copy.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                _rename(inner, names)
        site.nodes.append(copy)
    made = [str(value.name) for value in graph.output]
    return [names.get(name, name) for name in made]


def _constant(site: Site, tensor: Any) -> str:
    copy = onnx.TensorProto.FromString(tensor.SerializeToString())
    copy.name = site.fresh(tensor.name)
    site.graph.initializer.append(copy)
    return copy.name


def _rename(graph: Any, names: Mapping[str, str]) -> None:
    """Rename what a nested graph reads from around it; what it defines itself hides a name."""
    own = {value.name for value in (*graph.input, *graph.initializer)}
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    for node in graph.node:
        node.input[:] = [outer.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                _rename(inner, outer)
    for value in graph.output:
        value.name = outer.get(value.name, value.name)
