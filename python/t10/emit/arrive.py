"""How operands reach their cores: element routes through views, from where values lie to where a plan wants them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core import movement
from t10.core.device import HostPiece, HostTensor, Pattern
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph, TensorValue
from t10.core.movement import ElementMap
from t10.core.plan import OperatorPlan
from t10.core.schedule import Layout
from t10.emit.patterns import Fills, in_order, pattern

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Home:
    """Where a value lies: its layout and the variable that holds it."""

    layout: Layout
    variable: str


@dataclass(slots=True)
class Homes:
    """Where all values of a graph lie while its operators run."""

    graph: Graph
    by_value: dict[str, Home] = field(default_factory=dict[str, Home])
    _specs: dict[str, OperatorSpec] = field(init=False)
    _shapes: dict[str, tuple[int, ...]] = field(init=False)
    _patterns: dict[Any, Pattern] = field(default_factory=dict[Any, Pattern])

    def __post_init__(self) -> None:
        self._specs = {spec.name: spec for spec in self.graph.operators}
        self._shapes = self.graph.shape_by_value

    def element_map(self, layout: Layout) -> ElementMap:
        """Return which element lies in which slot of a layout."""
        spec = self._specs[layout.operator] if layout.kind == "operand" else None
        return movement.layout_map(spec, layout, prod(self._shapes[layout.value]))

    def arrival(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[tuple[str, ...], Pattern]:
        """Return the source variables and the pattern that brings operand `number` to where the plan reads it."""
        operand = spec.operands[number]
        sources = self.graph.sources_of(operand.name)
        homes = [(self.element_map(self.by_value[s].layout), prod(self._shapes[s])) for s in sources]
        wanted = Layout("operand", operand.name, plan.n_cores, operand.dtype, spec.name, number, plan)
        target = self.element_map(wanted)
        through = movement.view_elements(self.graph, operand.name)
        route = movement.route(target, through, homes)
        # Slots outside the tensor are only read where windows slide over them.
        is_padded = any(not dim.is_simple for dim in operand.dims)
        fills = _fills(route.constant, target.elements < 0, through.constants, operand.pad_value, is_padded)
        tiles, slots = np.nonzero(route.source >= 0)
        moves = in_order(
            route.source[tiles, slots], route.core[tiles, slots], route.slot[tiles, slots], tiles, slots
        )
        variables = tuple(self.by_value[s].variable for s in sources)
        return variables, pattern(moves, size_bytes(operand.dtype), fills)

    def host_value(self, value: TensorValue, home: Home, fill: str) -> HostTensor:
        """Return how the host fills the variable of an input or a weight."""
        elements = self.element_map(home.layout).elements
        return HostTensor(value.name, value.dtype, value.shape, (HostPiece(home.variable, elements, fill),))

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
            pieces.extend(_found(home.variable, lies, here, ids[here] - first, n_elements))
            first += n_elements
        for number, constant in enumerate(through.constants):
            there = np.flatnonzero(ids == -1 - number).astype(np.int32)
            if there.size:
                pieces.append(HostPiece("", there[None, :], constant))
        return HostTensor(name, dtype, through.ids.shape, tuple(pieces))


def _found(
    variable: str, lies: NDArray[np.int32], outputs: Ints, wanted: Ints, n_elements: int
) -> list[HostPiece]:
    """Return pieces that read output elements `outputs` where source elements `wanted` lie.

    An element that several outputs show is read once per piece, so that each piece names every slot once.
    """
    pieces: list[HostPiece] = []
    while outputs.size:
        _, once = np.unique(wanted, return_index=True)
        target = np.full(n_elements + 1, -1, np.int32)
        target[wanted[once]] = outputs[once]
        pieces.append(HostPiece(variable, np.where(lies >= 0, target[lies], np.int32(-1))))
        rest = np.ones(len(outputs), np.bool_)
        rest[once] = False
        outputs, wanted = outputs[rest], wanted[rest]
    return pieces


def _fills(
    constant: NDArray[np.int16],
    outside: NDArray[np.bool_],
    constants: tuple[str, ...],
    pad_value: str,
    is_padded: bool,
) -> Fills | None:
    """Return the slots that take constants: elements of constant views, and padding where it is read."""
    numbers = constant.astype(np.int64)
    if is_padded and outside.any():
        numbers = np.where(outside, len(constants), numbers)
        constants = (*constants, pad_value or "0")
    tiles, slots = np.nonzero(numbers >= 0)
    if not len(tiles):
        return None
    return Fills(tiles, slots, numbers[tiles, slots], constants)
