"""How operands get to their cores: initial placement from the host, relayouts and set-up, and results back to it.

Only the initial placement sees a whole tensor. A relayout reads every element where it lies, through views, and writes
it where the operand's layout wants it; what crosses cores is measured, not predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core import movement
from t10.core.arrays import Array
from t10.core.arriving import arriving_boxes, arriving_elements
from t10.core.dtypes import numpy_dtype, size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.laid_out import LayoutOperators
from t10.core.loads import MoveRates, Places, shared_places
from t10.core.movement import ElementMap, Pricing, Traffic
from t10.core.scalar import parse_constant
from t10.core.schedule import Home, ValueLayout
from t10.core.tile import TileRange
from t10.sim.exchange import CHUNK_SLOTS, Source, gather
from t10.sim.memory import POISON, CoreMemory
from t10.sim.partition import core_chunks
from t10.sim.traps import trap

KEPT_MAPS = 16
KEPT_SLOTS = 1 << 23


class Mover:
    """Moves values of one graph between the layouts they have and those that operands need."""

    def __init__(
        self,
        graph: Graph,
        memory: CoreMemory,
        homes: dict[str, Home],
        rates: MoveRates | None = None,
        places: Mapping[str, TileRange] | None = None,
    ) -> None:
        """Keep the graph; `homes` is where inputs, weights and finished operators lie (it grows as they finish).

        Loads of exchanges are counted at `rates`, where there are any; `places` says where buffers lie.
        """
        self.rates, self.places = rates, places or {}
        self.graph = graph
        self.memory = memory
        self.homes = homes
        self.shapes = graph.shape_by_value
        self.makers = LayoutOperators(graph)
        self._recent: dict[ValueLayout, ElementMap] = {}

    def element_map(self, layout: ValueLayout) -> ElementMap:
        """Return which element lies in which slot of a layout; the last small maps are kept, they are read again."""
        found = self._recent.get(layout)
        if found is not None:
            return found
        made = movement.layout_map(self.makers.of(layout), layout, prod(self.shapes[layout.value]))
        if made.elements.size <= KEPT_SLOTS:
            if len(self._recent) == KEPT_MAPS:
                del self._recent[next(iter(self._recent))]
            self._recent[layout] = made
        return made

    def place(self, values: Array, home: Home) -> None:
        """Put a whole tensor from the host where its layout says; slots outside it hold its padding."""
        elements = self.element_map(home.layout).elements
        slots = self.memory.slots(home.buffer, home.layout.dtype, *elements.shape)
        fill = padding(self.makers.of(home.layout), home.layout)
        flat = values.reshape(-1)
        for cores in core_chunks(len(elements), elements.shape[1], CHUNK_SLOTS):
            slots[cores] = np.where(
                elements[cores] < 0, flat.dtype.type(fill), flat[np.maximum(elements[cores], 0)]
            )
        self._mark(home.buffer, home.layout.dtype, elements)

    def fetch(self, value: str, wanted: ValueLayout, buffer: str) -> Traffic:
        """Fill a buffer with a value in the wanted layout, read through views from where its sources lie."""
        target = self.element_map(wanted)
        slots = self.memory.slots(buffer, wanted.dtype, *target.elements.shape)
        outside = target.elements < 0
        n_taken, target = self._arriving(wanted, target)
        moved = self._gather(value, target, wanted.dtype, slots, self._pricing(value, wanted, buffer))
        # What does not arrive stays poison.
        slots.view(np.uint8).reshape(*slots.shape, -1)[target.elements < 0] = POISON
        slots[outside] = padding(self.makers.of(wanted), wanted)
        self._mark(buffer, wanted.dtype, target.elements)
        return replace(moved, copied_elements=moved.copied_elements - target.elements.shape[1] + n_taken)

    def _arriving(self, wanted: ValueLayout, whole: ElementMap) -> tuple[int, ElementMap]:
        """Return what of an operand's layout arrives, and the most slots that a core takes."""
        spec, plan = self.makers.of(wanted), wanted.plan
        boxes = arriving_boxes(spec, plan, wanted.operand) if spec and plan else []
        if spec is None or plan is None or not boxes:
            return whole.elements.shape[1], whole
        n_taken = max(sum(prod(size) for _, size in own) for own in boxes)
        return n_taken, replace(whole, elements=arriving_elements(spec, plan, wanted.operand))

    def _pricing(self, value: str, wanted: ValueLayout, buffer: str) -> Pricing | None:
        """Return how the loads of filling a layout are counted."""
        if self.rates is None:
            return None
        spec = self.makers.of(wanted)
        padded = (
            spec is not None
            and wanted.plan is not None
            and movement.is_padded(spec, movement.operand_of(spec, wanted.operand), wanted.plan)
        )
        places = self._shared(buffer, [self.homes[s].buffer for s in self.graph.sources_of(value)])
        padding = "" if spec is None else movement.operand_of(spec, wanted.operand).pad_value
        return Pricing(self.rates, size_bytes(wanted.dtype), padded, places, padding)

    def _shared(self, target: str, sources: list[str]) -> Places | None:
        """Return where a phase reads and writes if that shares memory elements; slots count from the memory's begin."""
        if not self.places:
            return None
        shared = shared_places(self.places[target], [self.places[source] for source in sources])
        return shared and replace(shared, sources=(0,) * len(sources))

    def keep(self, value: str, home: Home) -> None:
        """Record where a value lies."""
        self.homes[value] = home

    def forget(self, value: str) -> None:
        """Drop the record of where a value lies."""
        self.homes.pop(value, None)

    def check_in_place(self, value: str, wanted: ValueLayout, buffer: str) -> None:
        """Raise a trap unless a value already lies in `buffer` exactly as the wanted layout says."""
        sources = self.graph.sources_of(value)
        if len(sources) != 1 or sources[0] not in self.homes:
            raise trap(
                f"{value} cannot be used in place: what it reads, {', '.join(sources)}, does not lie still"
            )
        home = self.homes[sources[0]]
        if home.buffer != buffer or home.layout.dtype != wanted.dtype:
            raise trap(f"{value} cannot be used in place: it lies in {home.buffer}, not in {buffer}")
        if home.layout == wanted:
            return
        target = self.element_map(wanted).elements
        lies = self.element_map(home.layout).elements
        expected = target
        if sources != (value,):
            ids = movement.view_elements(self.graph, value).ids.reshape(-1)
            expected = np.where(target >= 0, ids[np.maximum(target, 0)], -1)
        if lies.shape != target.shape or (lies != expected).any():
            raise trap(f"{value} does not lie in {buffer} as the operand needs it")

    def collect(self, value: str, dtype: str) -> Array:
        """Return a whole tensor to the host, read through views from where it lies."""
        shape = self.shapes[value]
        everything = np.arange(prod(shape), dtype=np.int32)[None, :]
        result = np.empty((1, prod(shape)), numpy_dtype(dtype))
        self._gather(value, ElementMap(everything, np.zeros(1, np.int64)), dtype, result)
        return result.reshape(shape)

    def _gather(
        self, value: str, target: ElementMap, dtype: str, out: Array, pricing: Pricing | None = None
    ) -> Traffic:
        """Write to `out` every element that `target` names, and return what crossed cores."""
        names = self.graph.sources_of(value)
        sources: list[Source] = []
        for name in names:
            home = self.homes.get(name)
            if home is None:
                raise trap(f"value {value} reads {name}, which was not computed yet or was moved since")
            if home.layout.dtype != dtype:
                raise trap(f"value {name} is {home.layout.dtype} where {dtype} is read")
            lies = self.element_map(home.layout)
            sources.append(Source(name, home.buffer, lies, prod(self.shapes[name])))
        if names == (value,):
            return gather(self.memory, sources, target.elements, None, (), out, pricing)
        through = movement.view_elements(self.graph, value)
        constants = tuple(parse_constant(text) for text in through.constants)
        ids = through.ids.reshape(-1)
        if pricing is not None:
            numbers = movement.constant_numbers(through.constants, pricing.padding, dtype)
            pricing = replace(pricing, constants=numbers)
        return gather(self.memory, sources, target.elements, ids, constants, out, pricing)

    def _mark(self, buffer: str, dtype: str, elements: NDArray[np.int32]) -> None:
        n_cores, n_slots = elements.shape
        self.memory.mark_written(buffer, n_cores, n_slots * size_bytes(dtype))


def padding(spec: OperatorSpec | None, layout: ValueLayout) -> float | int | bool:
    """Return what slots outside a tensor hold in a layout: the operand's padding, else zero."""
    if spec is None:
        return 0
    text = movement.operand_of(spec, layout.operand).pad_value
    return parse_constant(text) if text else 0
