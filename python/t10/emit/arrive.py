"""How operands reach their cores: element routes through views, from where values lie to where a plan wants them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core import geometry, movement
from t10.core.arrays import Ints, first_of_each
from t10.core.arriving import arriving_parts
from t10.core.chunks import chunk_slots, window_chunk
from t10.core.device import HostPiece, HostTensor, Pattern
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, TensorValue, View
from t10.core.laid_out import LayoutOperators
from t10.core.movement import ElementMap
from t10.core.orders import given_order
from t10.core.plan import OperatorPlan
from t10.core.schedule import Home, ValueLayout
from t10.emit import _routes
from t10.emit.kept import Kept
from t10.emit.patterns import pattern_of_runs


@dataclass(slots=True)
class Homes:
    """Where all values of a graph lie while its operators run."""

    graph: Graph
    kept: Kept
    by_value: dict[str, Home] = field(default_factory=dict[str, Home])
    _makers: LayoutOperators = field(init=False)
    _shapes: dict[str, tuple[int, ...]] = field(init=False)
    _views: dict[str, View] = field(init=False)
    _kind_by_layout: dict[tuple[str, int, str], int] = field(default_factory=dict[tuple[str, int, str], int])

    def __post_init__(self) -> None:
        self._views = {view.name: view for view in self.graph.views}
        self._makers = LayoutOperators(self.graph)
        self._shapes = self.graph.shape_by_value

    def element_map(self, layout: ValueLayout) -> ElementMap:
        """Return which element lies in which slot of a layout; equal layouts of equal operators share it."""
        key = self._layout_key(layout)
        found = self.kept.maps.get(key)
        if found is None:
            found = movement.layout_map(self._makers.of(layout), layout, prod(self._shapes[layout.value]))
            found = ElementMap(np.ascontiguousarray(found.elements), found.copies)
            self.kept.maps[key] = found
        return found

    def arrival(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[tuple[str, ...], Pattern]:
        """Return the source variables and the pattern that brings operand `number` to where the plan reads it."""
        operand = spec.operands[number]
        sources = self.graph.sources_of(operand.name)
        variables = tuple(self.by_value[s].buffer for s in sources)
        homes = [self.by_value[s].layout for s in sources]
        wanted = ValueLayout("operand", operand.name, plan.n_cores, operand.dtype, spec.name, number, plan)
        key = (
            self._layout_key(wanted),
            self._reading(operand.name, {}),
            *(
                (self._layout_key(home), prod(self._shapes[s]))
                for home, s in zip(homes, sources, strict=True)
            ),
        )
        found = self.kept.patterns.get(key)
        if found is None:
            parts = arriving_parts(spec, plan, number)
            is_padded = movement.is_padded(spec, operand, plan)
            found = self._pattern(operand, parts, plan.n_cores, homes, is_padded=is_padded)
            self.kept.patterns[key] = found
        return variables, found

    def _pattern(
        self,
        operand: Operand,
        wanted: tuple[Ints, ...],
        n_cores: int,
        homes: list[ValueLayout],
        *,
        is_padded: bool,
    ) -> Pattern:
        """Return the pattern that brings an operand, wanted as `arriving_parts` says, from its sources."""
        through = movement.view_elements(self.graph, operand.name)
        maps = [self.element_map(home) for home in homes]
        sizes = [prod(self._shapes[source]) for source in through.sources]
        ids = None if through.sources == (operand.name,) else np.ascontiguousarray(through.ids.reshape(-1))
        constants, (*numbers, padding) = movement.different_constants(
            (*through.constants, operand.pad_value or "0"), operand.dtype
        )
        if ids is not None and numbers:
            ids = np.where(ids < 0, -1 - np.array(numbers)[np.maximum(-1 - ids, 0)], ids)
        moves, fills = _routes.runs(
            wanted,
            n_cores,
            ids,
            [(m.elements, m.copies, n) for m, n in zip(maps, sizes, strict=True)],
            padding,
            is_padded,
        )
        return pattern_of_runs(moves, size_bytes(operand.dtype), fills, constants)

    def n_slots(self, layout: ValueLayout) -> int:
        """Return how many elements a core holds under a layout."""
        spec = self._makers.of(layout)
        if layout.plan is None or spec is None:
            return chunk_slots(prod(self._shapes[layout.value]), layout.n_cores)
        operand = movement.operand_of(spec, layout.operand)
        lengths = geometry.window_lengths(layout.plan, min(layout.operand, len(spec.inputs)))
        return window_chunk(prod(geometry.partition_shape(operand, lengths)), layout.scatter)

    def _layout_key(self, layout: ValueLayout) -> tuple[object, ...]:
        """Return what a layout's element map depends on: names do not count."""
        spec = self._makers.of(layout)
        if spec is None:
            return ("linear", layout.n_cores, prod(self._shapes[layout.value]))
        key = layout.operator, layout.operand, layout.value
        kind = self._kind_by_layout.get(key)
        if kind is None:
            kind = self._kind_by_layout[key] = self.kept.kind_of(spec)
        return (kind, layout.operand, layout.plan, layout.scatter)

    def _reading(self, value: str, names: dict[str, int]) -> tuple[object, ...]:
        """Return how a value reads its sources through views; names do not count."""
        view = self._views.get(value)
        if view is None:
            return (names.setdefault(value, len(names)), self._shapes[value])
        plain = replace(view, name="", sources=())
        return (plain, *(self._reading(source, names) for source in view.sources))

    def host_output(self, name: str, value: str, dtype: str) -> HostTensor:
        """Return where the host finds the elements of an output, read through views."""
        through = movement.view_elements(self.graph, value)
        ids = through.ids.reshape(-1)
        pieces: list[HostPiece] = []
        first = 0
        for source in through.sources:
            n_elements = prod(self._shapes[source])
            here = np.flatnonzero((ids >= first) & (ids < first + n_elements))
            home = self.by_value[source]
            lies = self.element_map(home.layout).elements
            pieces.extend(_found(home.buffer, lies, here, ids[here] - first, n_elements))
            first += n_elements
        for number, constant in enumerate(through.constants):
            there = np.flatnonzero(ids == -1 - number).astype(np.int32)
            if there.size:
                pieces.append(HostPiece("", there[None, :], constant))
        return HostTensor(name, dtype, through.ids.shape, tuple(pieces))


@dataclass(frozen=True, slots=True)
class HostValue:
    """An input or a weight, where it lies before anything runs, and what slots outside of it hold, as a spelling."""

    value: TensorValue
    home: Home
    fill: str


@dataclass(frozen=True, slots=True)
class Host:
    """What crosses the host's link; `homes` is where values lie in the end."""

    homes: Homes
    weights: tuple[HostValue, ...]
    inputs: tuple[HostValue, ...]

    def filled(self) -> tuple[tuple[HostTensor, ...], tuple[HostTensor, ...]]:
        """Return how the host fills the variables of weights, which it has as they are stored, and of inputs."""
        weights = (
            replace(each, value=replace(each.value, order=(), split=(), padding=())) for each in self.weights
        )
        return tuple(map(self._filled, weights)), tuple(map(self._filled, self.inputs))

    def _filled(self, given: HostValue) -> HostTensor:
        """Return how the host fills the variable of a value."""
        value, elements = given.value, self.homes.element_map(given.home.layout).elements
        if value.order or value.padding:
            # The host's number of every element, by its number as stored; it has none of what it pads.
            numbers = np.arange(prod(value.host_shape), dtype=np.int32).reshape(value.host_shape)
            if value.padding:
                numbers = np.pad(numbers, [(0, more) for more in value.padding], constant_values=-1)
            order = value.order or given_order(len(value.shape))
            numbers = numbers.reshape(value.split_shape).transpose(order).reshape(-1)
            elements = np.where(elements < 0, elements, numbers[np.maximum(elements, 0)])
        piece = HostPiece(given.home.buffer, elements, given.fill)
        return HostTensor(value.name, value.host_dtype, value.host_shape, (piece,))

    def outputs(self) -> tuple[HostTensor, ...]:
        """Return where the host finds the model's outputs."""
        graph = self.homes.graph
        dtypes = {value.name: value.dtype for value in (*graph.inputs, *graph.weights, *graph.views)}
        dtypes |= {spec.output.name: spec.output.dtype for spec in graph.operators}
        return tuple(
            self.homes.host_output(output.name, output.value, output.declared or dtypes[output.value])
            for output in graph.outputs
        )


def _found(
    variable: str, lies: NDArray[np.int32], outputs: Ints, wanted: Ints, n_elements: int
) -> list[HostPiece]:
    """Return pieces that read output elements `outputs` where source elements `wanted` lie.

    An element that several outputs show is read once per piece, so that each piece names every slot once.
    """
    pieces: list[HostPiece] = []
    while outputs.size:
        once = first_of_each(wanted)
        target = np.full(n_elements + 1, -1, np.int32)
        target[wanted[once]] = outputs[once]
        pieces.append(HostPiece(variable, np.where(lies >= 0, target[lies], np.int32(-1))))
        rest = np.ones(len(outputs), np.bool_)
        rest[once] = False
        outputs, wanted = outputs[rest], wanted[rest]
    return pieces
