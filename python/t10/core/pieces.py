"""Consecutive operators of a model as a model of their own: what enters, what leaves, and what only passes through.

A value that later operators need passes every piece in between: each takes it in and gives it on. Inputs and outputs of
the model enter and leave where they are used and made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, GraphOutput, TensorValue, View


@dataclass(frozen=True, slots=True)
class Pieces:
    """A graph and where its values are made and needed, for `piece` and `crossing`.

    `last_by_result` is the last operator that needs a result, by its value; `homes` the operator after which each
    output of the model is there.
    """

    graph: Graph
    first_by_result: dict[str, int]
    last_by_result: dict[str, int]
    homes: tuple[int, ...]
    _views: dict[str, View] = field(default_factory=dict[str, View], repr=False)

    def crossing(self, at: int) -> tuple[TensorValue, ...]:
        """Return the results of operators before `at` that later ones need, in the order in which they are made."""
        return tuple(
            TensorValue(spec.output.name, spec.output.shape, spec.output.dtype)
            for number, spec in enumerate(self.graph.operators[:at])
            if self.last_by_result.get(spec.output.name, number) >= at
        )

    def crossing_bytes(self) -> list[int]:
        """Return the bytes that pass from operators before each place to those behind it, both ends included."""
        change = [0] * (len(self.graph.operators) + 2)
        for value, first in self.first_by_result.items():
            spec = self.graph.operators[first]
            n_bytes = prod(spec.output.shape) * size_bytes(spec.output.dtype)
            change[first + 1] += n_bytes
            change[max(self.last_by_result.get(value, first), first) + 1] -= n_bytes
        found: list[int] = []
        for each in change[:-1]:
            found.append((found[-1] if found else 0) + each)
        return found

    def piece(self, first: int, end: int) -> Graph:
        """Return operators `first` up to `end` as a graph."""
        graph = self.graph
        operators = graph.operators[first:end]
        outputs = [
            output for output, home in zip(graph.outputs, self.homes, strict=True) if first <= home < end
        ]
        outputs += [GraphOutput(value.name, value.name) for value in self.crossing(end)]
        needed = [operand.name for spec in operators for operand in spec.operands]
        needed += [output.value for output in outputs]
        views, sources = self._read(needed)
        entering = self.crossing(first)
        kept = [value for value in graph.inputs if value.name in sources]
        return Graph(
            name=graph.name,
            inputs=(*kept, *entering),
            weights=tuple(weight for weight in graph.weights if weight.name in sources),
            operators=operators,
            views=tuple(view for view in graph.views if view.name in views),
            outputs=tuple(outputs),
        )

    def _read(self, values: list[str]) -> tuple[set[str], set[str]]:
        """Return the views that values read, and what these and they are made of."""
        views: set[str] = set()
        sources: set[str] = set()
        stack = list(values)
        while stack:
            name = stack.pop()
            view = self._views.get(name)
            if view is None:
                sources.add(name)
            elif name not in views:
                views.add(name)
                stack.extend(view.sources)
        return views, sources


def pieces_of(graph: Graph) -> Pieces:
    """Return a graph, indexed."""
    first = {spec.output.name: number for number, spec in enumerate(graph.operators)}
    last: dict[str, int] = {}

    def needs(value: str, at: int) -> None:
        for source in graph.sources_of(value):
            if source in first:
                last[source] = max(last.get(source, at), at)

    for number, spec in enumerate(graph.operators):
        for operand in spec.operands:
            needs(operand.name, number)
    homes: list[int] = []
    for output in graph.outputs:
        homes.append(max((first.get(source, 0) for source in graph.sources_of(output.value)), default=0))
        needs(output.value, homes[-1])
    return Pieces(graph, first, last, tuple(homes), {view.name: view for view in graph.views})


def unnamed(graph: Graph) -> Graph:
    """Return a graph whose values and operators are called by their numbers: equal for graphs that differ in names."""
    names: dict[str, str] = {}

    def number(name: str) -> str:
        return names.setdefault(name, f"v{len(names)}")

    def operand(each: Operand) -> Operand:
        return replace(each, name=number(each.name))

    def operator(spec: OperatorSpec) -> OperatorSpec:
        return replace(
            spec,
            name=number(f"operator {spec.name}"),
            location="",
            axes=tuple(replace(axis, name=f"d{i}") for i, axis in enumerate(spec.axes)),
            inputs=tuple(map(operand, spec.inputs)),
            epilogue_inputs=tuple(map(operand, spec.epilogue_inputs)),
            output=operand(spec.output),
            first=spec.first and operand(spec.first),
        )

    inputs = tuple(replace(each, name=number(each.name)) for each in graph.inputs)
    weights = tuple(replace(each, name=number(each.name), parts=None) for each in graph.weights)
    views = tuple(
        replace(each, name=number(each.name), sources=tuple(map(number, each.sources)))
        for each in graph.views
    )
    return Graph(
        name="",
        inputs=inputs,
        weights=weights,
        operators=tuple(map(operator, graph.operators)),
        views=views,
        outputs=tuple(
            GraphOutput(f"out{i}", number(each.value), each.declared) for i, each in enumerate(graph.outputs)
        ),
    )
