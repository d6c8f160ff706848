"""How operands get to their cores: in place, or by a relayout or set-up whose traffic is counted exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import (
    ElementMap,
    Traffic,
    copy_choice,
    home_tables,
    layout_map,
    operand_elements,
    operand_of,
    partition_scatter,
    view_elements,
)
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, ArrivalKind, Layout
from t10.cost import CostModel
from t10.plan._evaluate import count_moves
from t10.plan.canonical import canonical
from t10.plan.evaluate import contiguous_runs
from t10.plan.levels import operand_slots, windows_of

MapKey = tuple[OperatorSpec | None, Layout, int]
Tables = tuple[NDArray[np.int32], NDArray[np.int32]]

COUNTED_SLOTS = 1 << 27
"""Up to this many slots of all cores together traffic is counted slot by slot, above it is bounded: the tables would
not fit the memory of a small machine."""


@dataclass(slots=True)
class Mover:
    """Counts what arrivals move; equal situations (same layouts up to names) are counted once."""

    graph: Graph
    cost: CostModel
    n_cores: int
    spec_by_value: dict[str, OperatorSpec] = field(init=False)
    _spec_by_name: dict[str, OperatorSpec] = field(init=False)
    _shapes: dict[str, tuple[int, ...]] = field(init=False)
    _canonical: dict[str, OperatorSpec] = field(default_factory=dict[str, OperatorSpec])
    _maps: dict[MapKey, ElementMap] = field(default_factory=dict[MapKey, ElementMap])
    _tables: dict[MapKey, Tables] = field(default_factory=dict[MapKey, Tables])
    _views: dict[object, NDArray[np.int64] | None] = field(
        default_factory=dict[object, "NDArray[np.int64] | None"]
    )
    _traffic: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    _same: dict[object, bool] = field(default_factory=dict[object, bool])

    def __post_init__(self) -> None:
        """Index the graph."""
        self.spec_by_value = {spec.output.name: spec for spec in self.graph.operators}
        self._spec_by_name = {spec.name: spec for spec in self.graph.operators}
        self._shapes = self.graph.shape_by_value

    def arrival(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layouts: dict[str, Layout], buffer: str
    ) -> Arrival:
        """Return the relayout or set-up of operand `number` from the layouts its sources have."""
        operand = operand_of(spec, number)
        counted = self._count(spec, plan, number, layouts)
        size = size_bytes(operand.dtype)
        received, sent = counted.received_elements * size, counted.sent_elements * size
        kind: ArrivalKind = "setup" if operand.role == "weight" else "relayout"
        cycles = self.cost.exchange_cycles(max(received, sent), counted.fragments, neighbour=False)
        cycles += self.cost.copy_cycles(counted.copied_elements * size)
        return Arrival(number, kind, buffer, received, sent, counted.fragments, cycles)

    def lies_in_place(self, spec: OperatorSpec, plan: OperatorPlan, number: int, layout: Layout) -> bool:
        """Return whether operand `number` asks for exactly the slots that its producer's result has on every core."""
        producer = self.spec_by_value.get(layout.value)
        if producer is None or operand_of(spec, number).pad_value:
            return False
        if not self._same_size(spec, plan, number, layout, producer):
            return False
        key = (self._canon(spec), plan, number, *self._key(layout))
        if key not in self._same:
            wanted = operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
            has = self._map(layout)
            self._same[key] = wanted.shape == has.elements.shape and bool((wanted == has.elements).all())
        return self._same[key]

    def _same_size(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layout: Layout, producer: OperatorSpec
    ) -> bool:
        """Return whether an operand and a result take equally many slots on equally many cores."""
        if layout.plan is None or layout.plan.n_cores != plan.n_cores:
            return False
        n_slots = operand_slots(producer, layout.plan, layout.operand)
        return operand_slots(spec, plan, number) == partition_scatter(n_slots, layout.scatter)

    def _count(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layouts: dict[str, Layout]
    ) -> Traffic:
        name = operand_of(spec, number).name
        sources = self.graph.sources_of(name)
        key = (
            self._canon(spec),
            plan,
            number,
            self._view_key(name),
            tuple(self._key(layouts[source]) for source in sources),
        )
        if key not in self._traffic:
            self._traffic[key] = self._counted(spec, plan, number, [layouts[source] for source in sources])
        return self._traffic[key]

    def _counted(self, spec: OperatorSpec, plan: OperatorPlan, number: int, homes: list[Layout]) -> Traffic:
        """Return the traffic of one operand; the same count as `traffic` of `route`, without the route."""
        operand = operand_of(spec, number)
        sizes = [prod(self._shapes[layout.value]) for layout in homes]
        n_slots = operand_slots(spec, plan, number)
        if max(n_slots * plan.n_cores, *sizes) > COUNTED_SLOTS:
            windows = np.array([windows_of(spec, plan, number)], np.int64)
            runs = int(contiguous_runs(operand, windows)[0])
            sent = sum(-(-n // self.n_cores) for n in sizes)
            return Traffic(n_slots, sent, runs, n_slots * plan.n_cores, 0)
        wanted = operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
        described: list[tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], int, int]] = []
        for layout, size in zip(homes, sizes, strict=True):
            key, home = self._key(layout), self._map(layout)
            if key not in self._tables:
                self._tables[key] = home_tables(home, size)
            choice = copy_choice(home, plan.n_cores)
            described.append((*self._tables[key], choice, *home.elements.shape))
        counts = count_moves(np.ascontiguousarray(wanted), self._view(operand.name), described)
        return Traffic(*counts)

    def _canon(self, spec: OperatorSpec) -> OperatorSpec:
        if spec.name not in self._canonical:
            self._canonical[spec.name] = canonical(spec)
        return self._canonical[spec.name]

    def _key(self, layout: Layout) -> MapKey:
        """Return a layout up to names."""
        n_elements = prod(self._shapes[layout.value])
        owner = self._spec_by_name.get(layout.operator)
        spec = None if owner is None else self._canon(owner)
        return spec, replace(layout, value="", operator="operator" if spec else ""), n_elements

    def _map(self, layout: Layout) -> ElementMap:
        key = self._key(layout)
        if key not in self._maps:
            self._maps[key] = layout_map(key[0], layout, key[2])
        return self._maps[key]

    def _view_key(self, name: str) -> object:
        """Return what a value reads, views and all, up to names."""
        views = {view.name: view for view in self.graph.views}
        numbers = {source: i for i, source in enumerate(self.graph.sources_of(name))}

        def described(value: str) -> object:
            view = views.get(value)
            if view is None:
                return numbers[value], self._shapes[value]
            return replace(view, name="", sources=()), tuple(described(source) for source in view.sources)

        return described(name)

    def _view(self, name: str) -> NDArray[np.int64] | None:
        """Return a value's elements read through its views, None where it has none."""
        if name in self._shapes and self.graph.sources_of(name) == (name,):
            return None
        key = self._view_key(name)
        if key not in self._views:
            ids = view_elements(self.graph, name).ids
            self._views[key] = np.ascontiguousarray(ids, np.int64).reshape(-1)
        return self._views[key]
