"""How operands get to their cores: in place, or by a relayout or set-up whose traffic is counted exactly.

Equal situations are counted once: kinds of operators (up to names), plans and layouts get small numbers, and all
results are kept under those. What was counted in full is kept for later movers, too: the schedule of a model is made
several times on its way to a program. A `Mover` may be used by several threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from t10.core.arrays import Bools, Ints
from t10.core.arriving import arriving_boxes, is_read_in_chunks
from t10.core.canonical import canonical
from t10.core.dtypes import size_bytes
from t10.core.expression import Operand, OperatorSpec
from t10.core.graph import Graph, View
from t10.core.laid_out import LayoutOperators
from t10.core.loads import Loads, Places
from t10.core.movement import ArrivalCosts, Traffic, constant_numbers, is_padded, operand_of, view_ids
from t10.core.placed_costs import left_over_cycles
from t10.core.plan import OperatorPlan
from t10.core.schedule import Arrival, ArrivalKind, ValueLayout, is_joined
from t10.cost import CostModel
from t10.plan.movement import _moves
from t10.plan.movement.known import Known, known_under
from t10.plan.movement.partition_cells import linear_cells, lying_alike, operand_cells

CellsKey = tuple[int, int, int]
"""(kind of operator, plan, operand), or (-1, elements, cores) where a value is spread evenly."""
LocatorKey = tuple[CellsKey, int]

KEPT_LOCATORS = 2048
KEPT_CELLS = 4096
"""How many layouts are kept in their native form, about 50 KiB each; where there are more, they are made again."""

MANY_PAIRS, COUNTING_THREADS = 200, 2
"""Pairs of layouts from which on threads share what is counted: of a table that takes long all others may be ready."""
BOUND_PIECES = 200
"""How many runs of elements a bound looks at: a twentieth of a millisecond."""
CORE_PIECES = 1 << 14
"""How many it looks at of one core: so many take longer than other ways to lie."""
FINE_PIECES = 128_000
"""How many a bound looks at that a choice relies on: some milliseconds, a small part of what all of them take."""
ALL_PIECES = 1 << 40
"""All of them, for a bound of what is chosen: a tenth of what scheduling their transfers takes."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What an operand's value reads: its sources, a number for how (views up to names), and the view itself."""

    sources: tuple[str, ...]
    sizes: tuple[int, ...]
    number: int
    view: _moves.View | None


@dataclass(slots=True)
class Mover:
    """Counts what arrivals move; equal situations (same layouts up to names) are counted once."""

    graph: Graph
    cost: CostModel
    n_cores: int
    spec_by_value: dict[str, OperatorSpec] = field(init=False)
    _layout_operators: LayoutOperators = field(init=False)
    _shapes: dict[str, tuple[int, ...]] = field(init=False)
    _kind_by_name: dict[str, int] = field(default_factory=dict[str, int])
    _operator_by_layout: dict[tuple[str, int, str], tuple[int, OperatorSpec]] = field(
        default_factory=dict[tuple[str, int, str], tuple[int, OperatorSpec]]
    )
    _readings: dict[tuple[str, str], _Reading] = field(default_factory=dict[tuple[str, str], _Reading])
    _views: dict[int, _moves.View] = field(default_factory=dict[int, _moves.View])
    _cells_by_key: dict[CellsKey, _moves.PartitionCells] = field(
        default_factory=dict[CellsKey, _moves.PartitionCells]
    )
    _locators: dict[LocatorKey, _moves.ElementLocator] = field(
        default_factory=dict[LocatorKey, _moves.ElementLocator]
    )
    _traffic: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    _bounds: dict[object, Traffic] = field(default_factory=dict[object, Traffic])
    _arriving: dict[CellsKey, tuple[_moves.PartitionCells, bool]] = field(
        default_factory=dict[CellsKey, tuple[_moves.PartitionCells, bool]]
    )
    _in_place: dict[object, bool] = field(default_factory=dict[object, bool])
    _left_over: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    _view_lock: Lock = field(default_factory=Lock)
    _prices: ArrivalCosts = field(init=False)
    _rates: tuple[int, ...] = field(init=False)
    _known: Known = field(init=False)

    def __post_init__(self) -> None:
        """Index the graph."""
        self._prices = ArrivalCosts(self.cost)
        self._rates = self._prices.rates.numbers if self._prices.rates else ()
        self._known = known_under(self._rates)
        self.spec_by_value = {spec.output.name: spec for spec in self.graph.operators}
        self._layout_operators = LayoutOperators(self.graph)
        self._shapes = self.graph.shape_by_value

    def arrival(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        buffer: str,
        places: Places | None = None,
        before: Sequence[Arrival] = (),
    ) -> Arrival:
        """Return the relayout or set-up of operand `number` from the layouts its sources have.

        `places` is where it lies and they do, if they share memory elements; arrivals `before` it may have begun its
        exchange phase.
        """
        operand = operand_of(spec, number)
        counted = self.traffic(spec, plan, number, layouts, places)
        size = size_bytes(operand.dtype)
        kind: ArrivalKind = "setup" if operand.role == "weight" else "relayout"
        return Arrival(
            operand=number,
            kind=kind,
            buffer=buffer,
            received_bytes=counted.received_elements * size,
            sent_bytes=counted.sent_elements * size,
            fragments=counted.fragments,
            cycles=self._prices.cycles(counted, size, is_joined=is_joined(kind, before)),
        )

    def exact(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layouts: Mapping[str, ValueLayout]
    ) -> tuple[int, int]:
        """Return the cycles that operand `number` adds to an exchange phase, and what beginning one for it takes."""
        return self._shares(self.traffic(spec, plan, number, layouts), spec, number)

    def bound(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        n_pieces: int | None = None,
    ) -> tuple[int, int]:
        """Return what is at most `exact`, and `exact` where that is known.

        Else what the busiest core does, of all cores where they take no more pieces than are looked at (few, unless
        said), or of some.
        """
        known = self._traffic.get(self._key(spec, plan, number, layouts))
        looked_at = BOUND_PIECES if n_pieces is None else n_pieces
        return self._shares(known or self._looked_at(spec, plan, number, layouts, looked_at), spec, number)

    def estimate(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layouts: Mapping[str, ValueLayout]
    ) -> int:
        """Return the cycles that bringing operand `number` takes at least, the same whatever was counted before."""
        return sum(self._shares(self._looked_at(spec, plan, number, layouts, FINE_PIECES), spec, number))

    def _looked_at(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        n_pieces: int,
    ) -> Traffic:
        """Return what the cores that are looked at move."""
        key = self._key(spec, plan, number, layouts), n_pieces
        if key not in self._bounds:
            pair = np.zeros((1, 2), np.int64)
            self._bounds[key] = self._bounded(spec, [plan], number, [layouts], pair, n_pieces)[0]
        return self._bounds[key]

    def bounds(
        self,
        spec: OperatorSpec,
        plans: Sequence[OperatorPlan],
        number: int,
        layouts: Sequence[Mapping[str, ValueLayout]],
        pairs: Ints,
    ) -> tuple[Ints, Ints]:
        """Return what `bound` does for many pairs (n, 2), each the number of a plan and that of layouts."""
        reading, kind = self._reading(operand_of(spec, number)), self._kind(spec)
        places = [tuple(self._locator_key(each[source]) for source in reading.sources) for each in layouts]
        numbers = [self._known.plans.of(plan) for plan in plans]
        counted: dict[int, Traffic] = {}
        rows: list[tuple[int, int]] = pairs.tolist() if self._traffic else []
        for row, (plan, place) in enumerate(rows):
            found = self._traffic.get((kind, numbers[plan], number, reading.number, places[place]))
            if found is not None:
                counted[row] = found
        new = np.setdiff1d(np.arange(len(pairs)), list(counted))
        bounded = self._bounded(spec, plans, number, layouts, pairs[new], BOUND_PIECES)
        counted |= dict(zip(new.tolist(), bounded, strict=True))
        shares = [self._shares(counted[row], spec, number) for row in range(len(pairs))]
        table: Ints = np.array(shares, np.int64).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def _shares(self, moved: Traffic, spec: OperatorSpec, number: int) -> tuple[int, int]:
        """Return the cycles that moving an operand adds to a phase, and those of beginning one for it."""
        size = size_bytes(operand_of(spec, number).dtype)
        joined = self._prices.cycles(moved, size, is_joined=True)
        return joined, self._prices.cycles(moved, size) - joined

    def traffic(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        places: Places | None = None,
    ) -> Traffic:
        """Return what the arrival of operand `number` moves."""
        key = self._key(spec, plan, number, layouts)
        where = key if places is None or not self._rates else (*key, places)
        # Bounds are those of what this mover has counted, so that they do not depend on what was planned before.
        if where not in self._traffic:
            known = self._known.traffic
            if where not in known:
                known[where] = self._counted(spec, plan, number, layouts, places)
            self._traffic[where] = known[where]
        return self._traffic[where]

    def lies_in_place(self, spec: OperatorSpec, plan: OperatorPlan, number: int, layout: ValueLayout) -> bool:
        """Return whether operand `number` asks for exactly the slots that a value has on every core."""
        key = (
            self._cells_key(spec, plan, number),
            operand_of(spec, number).pad_value,
            self._locator_key(layout),
        )
        if key not in self._in_place:
            found = self.lie_in_place(spec, [plan], number, [layout], np.zeros((1, 2), np.int64))
            self._in_place[key] = bool(found[0])
        return self._in_place[key]

    def left_over_cycles(self, spec: OperatorSpec, plan: OperatorPlan) -> int:
        """Return what steps take more where another operator left an input; of equal operators that is asked once."""
        key = self._kind(spec), self._known.plans.of(plan)
        if key not in self._left_over:
            self._left_over[key] = left_over_cycles(self.cost, spec, plan)
        return self._left_over[key]

    def lie_in_place(
        self,
        spec: OperatorSpec,
        plans: Sequence[OperatorPlan],
        number: int,
        layouts: Sequence[ValueLayout],
        pairs: Ints,
    ) -> Bools:
        """Return what `lies_in_place` does for many pairs (n, 2), each the number of a plan and that of a layout."""
        if operand_of(spec, number).pad_value:
            return np.zeros(len(pairs), np.bool_)
        wanted = [self._cells(self._cells_key(spec, plan, number), spec, plan) for plan in plans]
        homes = [self._locator(layout) for layout in layouts]
        return np.array(_moves.lie_in_place(wanted, homes, pairs), np.bool_)

    def _bounded(
        self,
        spec: OperatorSpec,
        plans: Sequence[OperatorPlan],
        number: int,
        layouts: Sequence[Mapping[str, ValueLayout]],
        pairs: Ints,
        n_pieces: int,
    ) -> list[Traffic]:
        """Return what moves at least into an operand, for pairs of a plan and of layouts; see `bounds`."""
        reading = self._reading(operand_of(spec, number))
        wanted = [self._wanted(spec, plan, number) for plan in plans]
        cells, padded = [cells for cells, _ in wanted], [padded for _, padded in wanted]
        homes = [[self._locator(each[source]) for source in reading.sources] for each in layouts]
        size = size_bytes(operand_of(spec, number).dtype)

        def bounds(pairs: Ints) -> list[list[int]]:
            view, rates = reading.view, self._rates
            return _moves.bounds(
                cells, padded, homes, pairs, view, n_pieces, CORE_PIECES, rates, size
            ).tolist()

        if len(pairs) < MANY_PAIRS:
            return [_traffic(row) for row in bounds(pairs)]
        with ThreadPoolExecutor(COUNTING_THREADS) as pool:
            parts = pool.map(bounds, np.array_split(pairs, COUNTING_THREADS))
        return [_traffic(row) for part in parts for row in part]

    def _counted(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        places: Places | None,
    ) -> Traffic:
        """Return what moves into an operand; what lies alike is counted once, for whatever operators."""
        operand = operand_of(spec, number)
        reading, padded = self._reading(operand), is_padded(spec, operand, plan)
        asked = None if is_read_in_chunks(spec, plan, number) else lying_alike(spec, plan, number)
        homes = tuple(self._lying_alike(layouts[source]) for source in reading.sources)
        key = (
            asked or self._cells_key(spec, plan, number),
            padded,
            homes,
            reading.number,
            size_bytes(operand.dtype),
            places if self._rates else None,
        )
        own: Future[Traffic] = Future()
        found = self._known.counts.setdefault(key, own)
        if found is own:
            try:
                own.set_result(self._count(spec, plan, number, layouts, places))
            except BaseException as error:
                del self._known.counts[key]
                own.set_exception(error)
        return found.result()

    def _lying_alike(self, layout: ValueLayout) -> tuple[object, int]:
        """Return what is equal for values that lie alike."""
        key, scatter = self._locator_key(layout)
        if layout.plan is None:
            return key, scatter
        return lying_alike(self._known_operator(layout)[1], layout.plan, layout.operand) or key, scatter

    def _count(
        self,
        spec: OperatorSpec,
        plan: OperatorPlan,
        number: int,
        layouts: Mapping[str, ValueLayout],
        places: Places | None,
    ) -> Traffic:
        """Return what moves into an operand, scheduled."""
        reading = self._reading(operand_of(spec, number))
        wanted, padded = self._wanted(spec, plan, number)
        counted = _moves.count(
            wanted,
            [self._locator(layouts[source]) for source in reading.sources],
            reading.view,
            self._rates,
            size_bytes(operand_of(spec, number).dtype),
            padded,
            places.numbers if places else (),
        )
        return _traffic(counted)

    def _wanted(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int
    ) -> tuple[_moves.PartitionCells, bool]:
        """Return what of an operand arrives, and whether slots outside its tensor are filled."""
        key = self._cells_key(spec, plan, number)
        found = self._arriving.get(key)
        if found is None:
            if len(self._arriving) >= KEPT_CELLS:
                self._arriving.clear()
            chunks = arriving_boxes(spec, plan, number)
            cells = operand_cells(spec, plan, number, chunks) if chunks else self._cells(key, spec, plan)
            found = self._arriving[key] = cells, is_padded(spec, operand_of(spec, number), plan)
        return found

    def _cells_key(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> CellsKey:
        return self._kind(spec), self._known.plans.of(plan), number

    def _key(
        self, spec: OperatorSpec, plan: OperatorPlan, number: int, layouts: Mapping[str, ValueLayout]
    ) -> tuple[Any, ...]:
        """Return what an arrival depends on, up to names."""
        reading = self._reading(operand_of(spec, number))
        homes = tuple(self._locator_key(layouts[source]) for source in reading.sources)
        return (self._kind(spec), self._known.plans.of(plan), number, reading.number, homes)

    def _kind(self, spec: OperatorSpec) -> int:
        known = self._kind_by_name.get(spec.name)
        if known is None:
            known = self._kind_by_name[spec.name] = self._known.kinds.of(canonical(spec))
        return known

    def _locator_key(self, layout: ValueLayout) -> LocatorKey:
        """Return a layout up to names."""
        plan = layout.plan
        if plan is None:
            return (-1, prod(self._shapes[layout.value]), layout.n_cores), 1
        kind = self._known_operator(layout)[0]
        return (kind, self._known.plans.of(plan), layout.operand), layout.scatter

    def _known_operator(self, layout: ValueLayout) -> tuple[int, OperatorSpec]:
        """Return the operator that a layout names, its operand as it reads the value, and its kind."""
        key = layout.operator, layout.operand, layout.value
        known = self._operator_by_layout.get(key)
        if known is None:
            spec = self._layout_operators.of(layout)
            assert spec is not None
            known = self._operator_by_layout[key] = self._known.kinds.of(canonical(spec)), spec
        return known

    def _cells(self, key: CellsKey, spec: OperatorSpec, plan: OperatorPlan) -> _moves.PartitionCells:
        known = self._cells_by_key.get(key)
        if known is None:
            if len(self._cells_by_key) >= KEPT_CELLS:
                self._cells_by_key.clear()
            known = self._cells_by_key[key] = operand_cells(spec, plan, key[2])
        return known

    def _locator(self, layout: ValueLayout) -> _moves.ElementLocator:
        key = self._locator_key(layout)
        known = self._locators.get(key)
        if known is None:
            if layout.plan is None:
                cells = linear_cells(key[0][1], layout.n_cores)
            else:
                cells = self._cells(key[0], self._known_operator(layout)[1], layout.plan)
            if len(self._locators) >= KEPT_LOCATORS:
                self._locators.clear()
            known = self._locators[key] = _moves.make_locator(cells, layout.scatter)
        return known

    def _reading(self, operand: Operand) -> _Reading:
        """Return how an operand reads a value through its views."""
        name, key = operand.name, (operand.name, operand.pad_value)
        known = self._readings.get(key)
        if known is None:
            sources = self.graph.sources_of(name)
            sizes = tuple(prod(self._shapes[source]) for source in sources)
            described, is_plain = self._described(name, sources)
            number = self._known.views.of((described, operand.pad_value))
            view = None if is_plain else self._view(operand, number, sizes)
            known = self._readings[key] = _Reading(sources, sizes, number, view)
        return known

    def _view(self, operand: Operand, number: int, sizes: tuple[int, ...]) -> _moves.View:
        # One at a time: while a view is made, every one of its elements has a number.
        with self._view_lock:
            if number not in self._views:
                dtype = np.int32 if sum(sizes) <= np.iinfo(np.int32).max else np.int64
                ids, constants = view_ids(self.graph, operand.name, dtype)
                if constants:
                    numbers = constant_numbers(constants, operand.pad_value, operand.dtype)
                    ids = np.where(ids < 0, -1 - np.array(numbers, dtype)[np.maximum(-1 - ids, 0)], ids)
                self._views[number] = _moves.make_view(np.ascontiguousarray(ids).reshape(-1), sizes)
        return self._views[number]

    def _described(self, name: str, sources: tuple[str, ...]) -> tuple[object, bool]:
        """Return what a value reads up to names, and whether that is one value whose elements keep their numbers."""
        views = {view.name: view for view in self.graph.views}
        plain = (0, self._shapes[sources[0]]) if len(sources) == 1 else None
        found = self._described_value(name, views, sources, plain)
        return found, found == plain

    def _described_value(
        self, value: str, views: Mapping[str, View], sources: tuple[str, ...], plain: object
    ) -> object:
        view = views.get(value)
        if view is None:
            return sources.index(value), self._shapes[value]
        inner = tuple([self._described_value(source, views, sources, plain) for source in view.sources])
        if view.kind == "reshape" and len(sources) == 1:
            return inner[0] if inner[0] == plain else (view.kind, view.shape, inner[0])
        return replace(view, name="", sources=()), inner


def _traffic(counted: Sequence[int]) -> Traffic:
    received, sent, fragments, total, copied, *loads = counted
    return Traffic(received, sent, fragments, total, copied, Loads(*loads))
