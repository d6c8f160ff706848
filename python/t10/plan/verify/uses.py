"""Who reads a value, directly or through views, and until when its bytes must therefore stay."""

from __future__ import annotations

from dataclasses import dataclass

from t10.core.graph import Graph


@dataclass(frozen=True, slots=True)
class Read:
    """Operand number `operand` of operator number `step` reads a value; `is_direct` if not through a view."""

    step: int
    operand: int
    is_direct: bool


def reads_by_value(graph: Graph) -> dict[str, tuple[Read, ...]]:
    """Return every read of the inputs, weights and results of a graph, views looked through, in execution order."""
    result: dict[str, list[Read]] = {}
    for step, spec in enumerate(graph.operators):
        for number, operand in enumerate(spec.operands):
            for origin in origins(graph, operand.name):
                result.setdefault(origin, []).append(Read(step, number, origin == operand.name))
    return {value: tuple(reads) for value, reads in result.items()}


def origins(graph: Graph, value: str) -> frozenset[str]:
    """Return the inputs, weights and operator results whose elements a value takes, looking through views."""
    sources = {view.name: view.sources for view in graph.views}
    found: set[str] = set()
    pending = [value]
    while pending:
        name = pending.pop()
        if name in sources:
            pending += sources[name]
        else:
            found.add(name)
    return frozenset(found)


def behind_reshapes(graph: Graph, value: str) -> str:
    """Return the value that `value` is a reshape of, itself if it is none: a reshape numbers elements alike."""
    reshaped = {view.name: view.sources[0] for view in graph.views if view.kind == "reshape"}
    while value in reshaped:
        value = reshaped[value]
    return value


def last_steps(graph: Graph) -> dict[str, int]:
    """Return the last operator step at which a value's bytes are needed; model outputs stay to the end."""
    result = {value: max(read.step for read in reads) for value, reads in reads_by_value(graph).items()}
    for output in graph.outputs:
        for origin in origins(graph, output.value):
            result[origin] = len(graph.operators) - 1
    return result
