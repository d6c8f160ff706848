"""An operator as waves of load, compute and store over the virtual global memory, and what they take (T10 §2.2)."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from t10.baselines.shares import Segments, segments_of, whole
from t10.baselines.tiles import Tiling, coordinates, cut, rows_of
from t10.baselines.traffic import Exchange, Phase, priced, runs_of
from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.costs import box_cycles, end_cycles, fused_cycles
from t10.core.dtypes import size_bytes
from t10.core.expression import OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.graph import Graph
from t10.cost import CostModel

ALIGNMENT_BYTES = 8
THIN = 8
"""Estimates look at the first of so many parts of the cores."""


@dataclass(frozen=True, slots=True)
class Shared:
    """An operator whose operands and result lie in the virtual global memory; operands as `spec.operands`."""

    spec: OperatorSpec
    operands: tuple[Segments, ...]
    output: Segments

    @classmethod
    def of(cls, graph: Graph, spec: OperatorSpec, n_cores: int) -> Shared:
        """Return an operator of a graph."""
        operands = tuple(segments_of(graph, each.name, each.dtype, n_cores) for each in spec.operands)
        output = spec.output
        return cls(spec, operands, whole(output.name, prod(output.shape), output.dtype, n_cores))

    def key(self) -> Hashable:
        """Return what an operator's time depends on: all but names."""
        spec = self.spec
        bare = replace(
            spec,
            name="",
            location="",
            inputs=tuple(replace(each, name="", role="activation") for each in spec.inputs),
            epilogue_inputs=tuple(replace(each, name="", role="activation") for each in spec.epilogue_inputs),
            output=replace(spec.output, name=""),
            axes=tuple(replace(axis, name="") for axis in spec.axes),
        )
        return bare, tuple(each.digest() for each in (*self.operands, self.output))


@dataclass(frozen=True, slots=True)
class Timed:
    """What an operator takes: its tiling, modelled cycles by kind, bytes that all cores take and the busiest ones."""

    tiling: Tiling
    compute: int
    load: int
    store: int
    reduce: int
    total_bytes: int
    busiest_bytes: int

    @property
    def transfer(self) -> int:
        """Return the cycles in which elements move."""
        return self.load + self.store + self.reduce

    @property
    def cycles(self) -> int:
        """Return all cycles."""
        return self.compute + self.transfer


def tile_bytes(spec: OperatorSpec, tiling: Tiling) -> int:
    """Return the bytes of a core's sub-operator region: a tile of every operand, accumulators and results."""
    total = 0
    for operand in spec.operands:
        total += _aligned(prod(partition_shape(operand, tiling.lengths)) * size_bytes(operand.dtype))
    n_out = prod(partition_shape(spec.output, tiling.lengths))
    total += _aligned(n_out * size_bytes(spec.acc_dtype))
    if spec.acc_dtype != spec.output.dtype or spec.epilogue is not None:
        total += _aligned(n_out * size_bytes(spec.output.dtype))
    return total


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def load_runs(shared: Shared, tiling: Tiling, places: Ints, step: int, cores: Ints) -> list[Ints]:
    """Return the runs of everything that cores load before a step; epilogue inputs with the last one."""
    spec = shared.spec
    parts, works = coordinates(spec, tiling, places, step)
    is_last = step + 1 == tiling.n_own_steps(spec)
    found: list[Ints] = []
    first_slot = first_source = 0
    for number, (operand, segments) in enumerate(zip(spec.operands, shared.operands, strict=True)):
        size = size_bytes(operand.dtype)
        if number < len(spec.inputs) or is_last:
            pieces = cut(rows_of(operand, tiling.lengths, parts), segments)
            found.append(runs_of(pieces, cores[works], size, first_slot, first_source))
        first_slot += _aligned(prod(partition_shape(operand, tiling.lengths)) * size)
        first_source += len(segments.names)
    return found


def store_runs(shared: Shared, tiling: Tiling, places: Ints, cores: Ints) -> list[Ints]:
    """Return the runs of the results that cores store."""
    spec = shared.spec
    parts, works = coordinates(spec, tiling, places, 0)
    pieces = cut(rows_of(spec.output, tiling.lengths, parts), shared.output)
    return [runs_of(pieces, cores[works], size_bytes(spec.output.dtype), 0, 0, is_store=True)]


def timed(
    shared: Shared,
    tiling: Tiling,
    chip: ChipSpec,
    cost: CostModel,
    exchange: Exchange,
    *,
    is_exact: bool = True,
) -> Timed:
    """Return what an operator takes.

    Of its waves the first and the last are counted, of their steps the first, one in the middle and the last; others
    are like the one in the middle. Where it is not `is_exact`, phases are estimated.
    """
    spec = shared.spec
    n_waves, n_steps = tiling.n_waves(spec, chip.n_cores), tiling.n_own_steps(spec)
    load = store = total_bytes = busiest = 0

    whole_bytes = 0 if is_exact else sum(prod(each.shape) * size_bytes(each.dtype) for each in spec.operands)

    def price(runs: list[Ints]) -> Phase:
        return priced(runs, chip, cost, exchange, whole_bytes=whole_bytes)

    for wave, waves in _alike(n_waves, is_uniform=True):
        places = np.arange(wave * chip.n_cores, (wave + 1) * chip.n_cores, dtype=np.int64)
        places = places[places < tiling.n_tiles(spec) * tiling.splits]
        if not is_exact:
            places = places[: max(len(places) // THIN, THIN)]
        cores = places % chip.n_cores
        phases = [
            (price(load_runs(shared, tiling, places, step, cores)), steps)
            for step, steps in _alike(n_steps, is_uniform=False)
        ]
        kept = places[places % tiling.splits == 0]
        stored = price(store_runs(shared, tiling, kept, kept % chip.n_cores))
        load += waves * sum(phase.cycles * steps for phase, steps in phases)
        total_bytes += waves * (sum(p.total_bytes * steps for p, steps in phases) + stored.total_bytes)
        busiest += waves * (sum(p.largest_bytes * steps for p, steps in phases) + stored.largest_bytes)
        store += waves * stored.cycles
    compute, reduce = computed(spec, tiling, cost)
    return Timed(tiling, n_waves * compute, load, store, n_waves * reduce, total_bytes, busiest)


def computed(spec: OperatorSpec, tiling: Tiling, cost: CostModel) -> tuple[int, int]:
    """Return the cycles in which a core computes its tile, and those in which parts of sums are added up."""
    windows = tuple(tiling.lengths for _ in spec.rotatable)
    n_own = tiling.n_own_steps(spec)
    total = box_cycles(cost, spec, tiling.lengths, windows, adds=False)
    if n_own > 1:
        total += (n_own - 1) * box_cycles(cost, spec, tiling.lengths, windows, adds=True)
    n_slots = prod(partition_shape(spec.output, tiling.lengths))
    reduce = 0
    if tiling.splits > 1:
        reduce = cost.reduce_cycles(spec, tiling.splits, n_slots)
        reduce -= fused_cycles(cost, spec, tiling.lengths, tiling.splits)
    if spec.epilogue is not None or spec.acc_dtype != spec.output.dtype or tiling.splits > 1:
        n_chunk = -(-n_slots // tiling.splits)
        total += end_cycles(cost, spec, tiling.lengths, tiling.splits, n_chunk)
    return total, reduce


def _alike(count: int, *, is_uniform: bool) -> list[tuple[int, int]]:
    """Return which of `count` are counted, and for how many each stands."""
    if count <= 2 or (count == 3 and not is_uniform):
        return [(number, 1) for number in range(count)]
    if is_uniform:
        return [(0, count - 1), (count - 1, 1)]
    return [(0, 1), (count // 2, count - 2), (count - 1, 1)]


__all__ = ["Phase", "Shared", "Timed", "load_runs", "store_runs", "tile_bytes", "timed"]
