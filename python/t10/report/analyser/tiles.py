"""What every tile does in an operator: the points it computes, the bytes it holds, receives and sends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from t10.core import geometry
from t10.core.arrays import Ints
from t10.core.arriving import arriving_elements
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.core.laid_out import LayoutOperators
from t10.core.movement import copy_choice, home_tables, layout_map, operand_elements, operand_of, view_ids
from t10.core.plan import OperatorPlan
from t10.core.schedule import ModulePlan, ScheduledOperator, ValueLayout
from t10.report.traffic import reduce_bytes, shift_bytes

MOST_SLOTS = 1 << 22
"""Slots that are looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class TileWork:
    """One number per working tile.

    `useful`: the part of a tile's points that lie in the tensor, not in padding, in [0, 1]. `held`, `received` and
    `sent`: bytes of real elements of operands and result at the first step, and bytes that cross tiles while the
    operator runs.
    """

    useful: np.ndarray[tuple[int], np.dtype[np.float64]]
    held: Ints
    received: Ints
    sent: Ints


@dataclass(slots=True)
class TileCounter:
    """Counts what the tiles of a planned model do, one operator at a time."""

    plan: ModulePlan
    layouts: dict[str, ValueLayout] = field(init=False)
    specs: dict[str, OperatorSpec] = field(init=False)
    makers: LayoutOperators = field(init=False)

    def __post_init__(self) -> None:
        """Index layouts and operators."""
        plan = self.plan
        every = (*plan.weight_layouts, *plan.input_layouts, *(op.output_layout for op in plan.operators))
        self.layouts = {layout.value: layout for layout in every}
        self.specs = {spec.name: spec for spec in plan.graph.operators}
        self.makers = LayoutOperators(plan.graph)

    def work(self, planned: ScheduledOperator) -> TileWork:
        """Return what the tiles do in one operator."""
        spec, plan = self.specs[planned.name], planned.active.plan
        even = shift_bytes(spec, planned) + reduce_bytes(spec, plan)
        received: Ints = np.full(plan.n_cores, even, np.int64)
        sent: Ints = np.zeros(max(plan.n_cores, self._most_cores()), np.int64)
        sent[: plan.n_cores] += even
        for arrival in planned.arrivals:
            if arrival.kind == "in_place":
                continue
            operand = operand_of(spec, arrival.operand)
            into, out = self.moved(spec, plan, arrival.operand)
            received += into * size_bytes(operand.dtype)
            sent[: len(out)] += out * size_bytes(operand.dtype)
        return TileWork(_useful(spec, plan), _held(spec, plan), received, np.trim_zeros(sent, "b"))

    def at_rest(self) -> Ints:
        """Return the bytes of weights that every tile holds while nothing runs."""
        total: Ints = np.zeros(self._most_cores(), np.int64)
        for layout in self.plan.weight_layouts:
            n_elements = _n_elements(self.plan.graph, layout.value)
            home = layout_map(self.makers.of(layout), layout, n_elements)
            counts = (home.elements >= 0).sum(axis=1)
            total[: len(counts)] += counts * size_bytes(layout.dtype)
        return np.trim_zeros(total, "b")

    def _most_cores(self) -> int:
        cores = [op.active.plan.n_cores for op in self.plan.operators]
        cores += [each.plan.n_cores if each.plan else each.n_cores for each in self.layouts.values()]
        return max(cores, default=1)

    def moved(self, spec: OperatorSpec, plan: OperatorPlan, number: int) -> tuple[Ints, Ints]:
        """Return the elements that every tile receives and sends for one operand; several that take one get it once."""
        name = operand_of(spec, number).name
        ids, _ = view_ids(self.plan.graph, name, np.int64)
        where = _Homes.of(self.plan.graph, self.layouts, self.makers, name, plan.n_cores)
        renaming = ids.reshape(-1)
        wanted = arriving_elements(spec, plan, number)
        received: Ints = np.zeros(plan.n_cores, np.int64)
        taken = np.zeros(len(where.core), np.bool_)
        step = max(1, MOST_SLOTS // max(wanted.shape[1], 1))
        for first in range(0, plan.n_cores, step):
            rows = slice(first, min(first + step, plan.n_cores))
            named = wanted[rows]
            element = renaming[np.maximum(named, 0)]
            is_read = (named >= 0) & (element >= 0)
            entry = where.entries(np.where(is_read, element, 0), rows)
            own = np.arange(rows.start, rows.stop)[:, None]
            remote = is_read & (where.core[entry] != own)
            received[rows] = remote.sum(axis=1)
            taken[entry[remote]] = True
        return received, np.bincount(where.core[taken], minlength=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Homes:
    """The tile of every element of every copy of some sources; `shift` leads from a number to an entry, by tile."""

    core: Ints
    first: tuple[int, ...]
    shift: tuple[Ints, ...]

    @staticmethod
    def of(
        graph: Graph,
        layouts: Mapping[str, ValueLayout],
        makers: LayoutOperators,
        value: str,
        n_cores: int,
    ) -> _Homes:
        """Return where the sources of a value lie, and which copy each of `n_cores` tiles reads."""
        tables: list[Ints] = []
        first: list[int] = []
        shift: list[Ints] = []
        n_numbers = n_entries = 0
        for source in graph.sources_of(value):
            n_elements, layout = _n_elements(graph, source), layouts[source]
            home = layout_map(makers.of(layout), layout, n_elements)
            core, _ = home_tables(home, n_elements)
            tables.append(core.reshape(-1).astype(np.int64))
            first.append(n_numbers)
            shift.append(copy_choice(home, n_cores) * n_elements + n_entries - n_numbers)
            n_numbers += n_elements
            n_entries += core.size
        core_of = np.concatenate(tables) if tables else np.zeros(1, np.int64)
        return _Homes(core_of, tuple(first), tuple(shift))

    def entries(self, element: Ints, rows: slice) -> Ints:
        """Return the entry of every element, shape (tiles, slots), for tiles `rows`."""
        result = element.copy()
        for number, (first, shift) in enumerate(zip(self.first, self.shift, strict=True)):
            last = self.first[number + 1] if number + 1 < len(self.first) else None
            inside = element >= first if last is None else (element >= first) & (element < last)
            result += np.where(inside, shift[rows][:, None], 0)
        return result


def _useful(spec: OperatorSpec, plan: OperatorPlan) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the part of every tile's points that lie in the tensor, not in padding."""
    lengths, extents = np.array(plan.lengths), np.array([axis.extent for axis in spec.axes])
    real = np.clip(extents - geometry.coordinates(plan) * lengths, 0, lengths)
    return (real / np.maximum(lengths, 1)).prod(axis=1)


def _held(spec: OperatorSpec, plan: OperatorPlan) -> Ints:
    """Return the bytes of real elements of operands and result that every tile holds."""
    total: Ints = np.zeros(plan.n_cores, np.int64)
    for number in range(len(spec.operands) + 1):
        elements = operand_elements(spec, plan, number).reshape(plan.n_cores, -1)
        total += (elements >= 0).sum(axis=1) * size_bytes(operand_of(spec, number).dtype)
    return total


def _n_elements(graph: Graph, value: str) -> int:
    return int(np.prod(graph.shape_by_value[value], dtype=np.int64))
