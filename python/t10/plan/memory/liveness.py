"""Live ranges of values and ownership of weights, in operator steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t10.core.graph import Graph


@dataclass(frozen=True, slots=True)
class Liveness:
    """`last_by_value`: last step that reads an input, weight or result, views seen through; absent if none does.

    `owner_by_weight`: for a weight with a single reader that reads it as it is or reshaped (which leaves row-major
    element numbers alone), (operator number, operand number). `first_by_shared`: the same of the first reader where
    there are several such, each an operator of its own, and no others.
    """

    last_by_value: dict[str, int]
    owner_by_weight: dict[str, tuple[int, int]]
    first_by_shared: dict[str, tuple[int, int]]


def liveness(graph: Graph) -> Liveness:
    """Return the lifetimes of a graph's values; what the model returns lives to the last step."""
    last: dict[str, int] = {}
    reshapes = reshapes_of(graph)
    readers: dict[str, list[tuple[int, int] | None]] = {}
    for step, spec in enumerate(graph.operators):
        for number, operand in enumerate(spec.operands):
            for source in graph.sources_of(operand.name):
                last[source] = step
                is_direct = operand.role == "weight" and unshaped(operand.name, reshapes) == source
                readers.setdefault(source, []).append((step, number) if is_direct else None)
    for output in graph.outputs:
        for source in graph.sources_of(output.value):
            last[source] = max(len(graph.operators) - 1, 0)
            readers.setdefault(source, []).append(None)
    owners: dict[str, tuple[int, int]] = {}
    shared: dict[str, tuple[int, int]] = {}
    for weight in graph.weights:
        found = readers.get(weight.name, [])
        direct = [reader for reader in found if reader is not None]
        if direct and len({step for step, _ in direct}) == len(found):
            (shared if len(found) > 1 else owners)[weight.name] = direct[0]
    return Liveness(last, owners, shared)


def reshapes_of(graph: Graph) -> dict[str, str]:
    """Return what every reshape reads, by its name."""
    return {view.name: view.sources[0] for view in graph.views if view.kind == "reshape"}


def unshaped(value: str, source_by_reshape: Mapping[str, str]) -> str:
    """Return the value behind any number of reshapes."""
    while value in source_by_reshape:
        value = source_by_reshape[value]
    return value
