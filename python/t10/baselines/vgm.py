"""Whole models over a virtual global memory: regions of a core's memory, a tiling per operator, modelled cycles.

`idle`: all that is kept for other operators (weights, values still to be read), in equal shares. `active`: operands and
result of the operator that runs, in equal shares as well. `sub`: its tile, a second copy (T10 §2.2, Figure 2).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Protocol

from t10.baselines.checked import check_tiles
from t10.baselines.load_compute_store import Shared, Timed, tile_bytes
from t10.baselines.shares import share_elements
from t10.baselines.space import smallest_tile_bytes
from t10.chip import ChipSpec
from t10.core.canonical import canonical
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.graph import Graph
from t10.cost import CostModel
from t10.errors import InfeasiblePlanError

ROOM_BYTES = 4096
"""Rooms are rounded down to multiples of this: operators that differ in less share their tiling."""


class TileSearch(Protocol):
    """A system: how it finds the tiles of an operator."""

    @property
    def splits_sums(self) -> bool:
        """Return whether cores may share a sum."""
        ...

    def best_tile(self, shared: Shared, chip: ChipSpec, cost: CostModel, room_bytes: int) -> Timed:
        """Return the tiling it finds within `room_bytes`; raises `InfeasiblePlanError` where none fits."""
        ...


@dataclass(frozen=True, slots=True)
class Regions:
    """Bytes of a core: shares kept for others, shares of what runs, its tile."""

    idle_bytes: int
    active_bytes: int
    sub_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Return all of them."""
        return self.idle_bytes + self.active_bytes + self.sub_bytes


@dataclass(frozen=True, slots=True)
class VgmOperator:
    """An operator, what it takes and what lies in a core meanwhile."""

    name: str
    timed: Timed
    regions: Regions


@dataclass(frozen=True, slots=True)
class VgmPlan:
    """A model's operators in order."""

    operators: tuple[VgmOperator, ...]
    n_distinct: int
    n_executed: int
    """Of the different operators, those of which tiles were executed; the others are too large."""

    @property
    def cycles(self) -> int:
        """Return the modelled cycles of the model."""
        return sum(each.timed.cycles for each in self.operators)

    @property
    def transfer_cycles(self) -> int:
        """Return those in which elements move."""
        return sum(each.timed.transfer for each in self.operators)

    @property
    def busiest_bytes(self) -> int:
        """Return the bytes that the busiest core of every phase takes from others."""
        return sum(each.timed.busiest_bytes for each in self.operators)


def plan_vgm(graph: Graph, chip: ChipSpec, cost: CostModel, system: TileSearch) -> VgmPlan:
    """Return a model's plan, some tiles of every different operator executed.

    Raises `InfeasiblePlanError` for an operator that has no room for its smallest tile.
    """
    known: dict[Hashable, Timed] = {}
    found: list[VgmOperator] = []
    n_executed = 0
    for spec, regions in zip(graph.operators, regions_of(graph, chip.n_cores), strict=True):
        shared = Shared.of(graph, spec, chip.n_cores)
        room = room_bytes(chip, system) - regions.total_bytes
        key = (shared.key(), room // ROOM_BYTES)
        if key not in known:
            known[key] = system.best_tile(shared, chip, cost, room // ROOM_BYTES * ROOM_BYTES)
            n_executed += check_tiles(graph, shared, known[key].tiling, chip.n_cores)
        sub = tile_bytes(spec, known[key].tiling)
        found.append(VgmOperator(spec.name, known[key], replace(regions, sub_bytes=sub)))
    return VgmPlan(tuple(found), len(known), n_executed)


def room_bytes(chip: ChipSpec, system: TileSearch) -> int:
    """Return what a core has for the three regions."""
    return chip.capacity_bytes - (chip.shift_buffer_bytes if system.splits_sums else 0)


def least_vgm_bytes(graph: Graph, n_cores: int) -> int:
    """Return what the regions take at least: every operator with its smallest tile.

    Whether a model fits is known without planning it. What a room is rounded down by counts as taken.
    """
    known: dict[OperatorSpec, int] = {}
    most = 0
    for spec, regions in zip(graph.operators, regions_of(graph, n_cores), strict=True):
        key = canonical(spec)
        if key not in known:
            tile = smallest_tile_bytes(spec, n_cores)
            known[key] = -(-tile // ROOM_BYTES) * ROOM_BYTES
        most = max(most, regions.total_bytes + known[key])
    return most


def regions_of(graph: Graph, n_cores: int) -> Iterator[Regions]:
    """Yield the regions of every operator but its tile."""
    kept = {
        value.name: _share_bytes(value.shape, value.dtype, n_cores)
        for value in (*graph.weights, *graph.inputs)
    }
    weights = {value.name for value in graph.weights}
    last = last_reads(graph)
    for step, spec in enumerate(graph.operators):
        kept[spec.output.name] = _share_bytes(spec.output.shape, spec.output.dtype, n_cores)
        running = {spec.output.name}.union(*(graph.sources_of(operand.name) for operand in spec.operands))
        alive = {name for name in kept if name in weights or last.get(name, step) >= step}
        active = sum(kept[name] for name in running)
        yield Regions(sum(kept[name] for name in alive - running), active)
        kept = {name: size for name, size in kept.items() if name in weights or last.get(name, -1) > step}


def last_reads(graph: Graph) -> dict[str, int]:
    """Return the last operator that reads each value, seen through views; outputs live on."""
    last: dict[str, int] = {}
    for step, spec in enumerate(graph.operators):
        for operand in spec.operands:
            last |= dict.fromkeys(graph.sources_of(operand.name), step)
    for output in graph.outputs:
        last |= dict.fromkeys(graph.sources_of(output.value), len(graph.operators))
    return last


def _share_bytes(shape: tuple[int, ...], dtype: str, n_cores: int) -> int:
    return share_elements(prod(shape), dtype, n_cores) * size_bytes(dtype)


__all__ = [
    "InfeasiblePlanError",
    "OperatorSpec",
    "Regions",
    "VgmOperator",
    "VgmPlan",
    "least_vgm_bytes",
    "plan_vgm",
    "regions_of",
    "room_bytes",
]
