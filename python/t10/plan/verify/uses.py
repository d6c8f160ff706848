"""Who reads a value, directly or through views, and until when its bytes must therefore stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t10.core.graph import Graph
from t10.core.laid_out import LayoutOperators


@dataclass(frozen=True, slots=True)
class OperandRead:
    """Operand number `operand` of operator number `step` reads a value."""

    step: int
    operand: int


@dataclass(frozen=True, slots=True)
class Uses:
    """What the rules look up in a graph, all by name.

    `makers` are the operators that layouts name.
    `origins`: the inputs, weights and results whose elements a value takes, views looked through. `renamed`: the
    value that a value is a reshape of, itself where it is none (a reshape numbers elements alike). `reads`: of every
    input, weight and result, in execution order. `kept`: those whose elements the model returns. `last`: the last
    operator step at which bytes are needed.
    """

    makers: LayoutOperators
    shapes: Mapping[str, tuple[int, ...]]
    origins: Mapping[str, frozenset[str]]
    renamed: Mapping[str, str]
    reads: Mapping[str, tuple[OperandRead, ...]]
    kept: frozenset[str]
    last: Mapping[str, int]


def uses_of(graph: Graph) -> Uses:
    """Return what reads what in a graph."""
    origins = {name: frozenset((name,)) for name in graph.shape_by_value}
    renamed = {name: name for name in origins}
    for view in graph.views:  # a view stands after its sources
        origins[view.name] = frozenset().union(*(origins[source] for source in view.sources))
        if view.kind == "reshape":
            renamed[view.name] = renamed[view.sources[0]]
    reads: dict[str, list[OperandRead]] = {}
    for step, spec in enumerate(graph.operators):
        for number, operand in enumerate(spec.operands):
            for origin in sorted(origins[operand.name]):
                reads.setdefault(origin, []).append(OperandRead(step, number))
    kept = frozenset[str]().union(*(origins[output.value] for output in graph.outputs))
    last = {value: max(read.step for read in found) for value, found in reads.items()}
    last |= dict.fromkeys(kept, len(graph.operators) - 1)
    return Uses(
        makers=LayoutOperators(graph),
        shapes=graph.shape_by_value,
        origins=origins,
        renamed=renamed,
        reads={value: tuple(found) for value, found in reads.items()},
        kept=kept,
        last=last,
    )
