"""How operands get to their cores: in place, or by a relayout or set-up whose traffic is counted exactly."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.movement import (
    ElementMap,
    Traffic,
    ViewElements,
    layout_map,
    operand_elements,
    operand_of,
    route,
    traffic,
    view_elements,
)
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, ArrivalKind, Layout
from t10.cost import CostModel
from t10.plan.canonical import canonical

MapKey = tuple[OperatorSpec | None, Layout, int]


@dataclass(slots=True)
class Mover:
    """Counts what arrivals move; equal situations (same layouts up to names) are counted once."""

    graph: Graph
    cost: CostModel
    spec_by_value: dict[str, OperatorSpec] = field(init=False)
    _spec_by_name: dict[str, OperatorSpec] = field(init=False)
    _shapes: dict[str, tuple[int, ...]] = field(init=False)
    _canonical: dict[str, OperatorSpec] = field(default_factory=dict[str, OperatorSpec])
    _maps: dict[MapKey, ElementMap] = field(default_factory=dict[MapKey, ElementMap])
    _views: dict[object, ViewElements] = field(default_factory=dict[object, ViewElements])
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
        return Arrival(number, kind, buffer, received, sent, counted.fragments, cycles)

    def lies_in_place(self, spec: OperatorSpec, plan: OperatorPlan, number: int, layout: Layout) -> bool:
        """Return whether operand `number` asks for exactly the slots that its producer's result has on every core."""
        producer = self.spec_by_value.get(layout.value)
        if producer is None or operand_of(spec, number).pad_value:
            return False
        key = (self._canon(spec), plan, number, *self._key(layout))
        if key not in self._same:
            wanted = operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
            has = self._map(layout)
            self._same[key] = wanted.shape == has.elements.shape and bool((wanted == has.elements).all())
        return self._same[key]

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
            wanted = operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
            homes = [(self._map(layouts[source]), prod(self._shapes[source])) for source in sources]
            goal = ElementMap(wanted, np.zeros(plan.n_cores, np.int64))
            self._traffic[key] = traffic(route(goal, self._view(name), homes), homes)
        return self._traffic[key]

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

    def _view(self, name: str) -> ViewElements:
        key = self._view_key(name)
        if key not in self._views:
            self._views[key] = view_elements(self.graph, name)
        return self._views[key]
