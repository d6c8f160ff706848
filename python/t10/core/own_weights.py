"""Weights that one operator alone reads: what a fetch from off-chip memory brings."""

from __future__ import annotations

from t10.core.graph import Graph, TensorValue


def own_weights(graph: Graph) -> dict[str, tuple[TensorValue, ...]]:
    """Return by operator the weights that it alone reads, however often, and that the model does not return."""
    readers: dict[str, set[str]] = {}
    for spec in graph.operators:
        for operand in spec.operands:
            for source in graph.sources_of(operand.name):
                readers.setdefault(source, set()).add(spec.name)
    returned = {source for output in graph.outputs for source in graph.sources_of(output.value)}
    found: dict[str, list[TensorValue]] = {}
    for weight in graph.weights:
        reading = readers.get(weight.name, set())
        if len(reading) == 1 and weight.name not in returned:
            found.setdefault(next(iter(reading)), []).append(weight)
    return {name: tuple(weights) for name, weights in found.items()}
