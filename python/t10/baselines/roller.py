"""Roller's choice of tiles: aligned lengths, ranked by predicted time, the best of them by their price.

Roller grows tiles along the axes that are reused most and stops at the first that fill the core. Here all aligned tiles
that fit are ranked, which leaves out none that it would find; like Roller with measurements, the ten best are priced.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product as combinations
from math import prod

import numpy as np

from t10.baselines.load_compute_store import Shared, Timed, tile_bytes, timed
from t10.baselines.tiles import Tiling
from t10.baselines.traffic import Exchange
from t10.chip import ChipSpec
from t10.core.arrays import Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import Axis, OperatorSpec
from t10.cost import CostModel
from t10.cost.matrix import matrix_axes
from t10.cost.model import least_costs
from t10.errors import InfeasiblePlanError

BEST = 10
EXACT = 2
"""Tilings that are priced phase by phase, and of these exactly."""
MOST_PADDING = 1.25
MOST_TILINGS = 200_000
ENGINE_BLOCK = 16
MOST_RUNS = 2_000_000
"""Tiles whose rows come in more runs in one phase are left out, where there are others: fragments are all they would
wait for."""
TRANSACTION_BYTES = 8
SPLITS = (2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Roller:
    """What the system may do: how it exchanges, and whether cores may share a sum."""

    exchange: Exchange = "multicast"
    splits_sums: bool = False


def best_tile(shared: Shared, chip: ChipSpec, cost: CostModel, room_bytes: int, system: Roller) -> Timed:
    """Return the fastest tiling within `room_bytes` of a core; raises `InfeasiblePlanError` where none fits."""
    spec = shared.spec
    ranked = _ranked(spec, chip, cost, room_bytes, system)
    if not ranked:
        raise InfeasiblePlanError(
            f"no aligned tile fits {room_bytes} bytes per core beside the virtual global memory",
            operator=spec.name,
        )
    found = [timed(shared, each, chip, cost, system.exchange, is_exact=False) for each in ranked[:BEST]]
    found.sort(key=_order)
    return min(
        (timed(shared, each.tiling, chip, cost, system.exchange) for each in found[:EXACT]), key=_order
    )


def smallest_tile_bytes(spec: OperatorSpec, n_cores: int) -> int:
    """Return the bytes of the smallest aligned tile."""
    boxes = np.array(list(_tilings(spec, n_cores)), np.int64).reshape(-1, len(spec.axes))
    return int(_operand_sizes(spec, boxes)[:, -1].min())


def _order(timed: Timed) -> tuple[int, tuple[int, ...], int]:
    return timed.cycles, timed.tiling.lengths, timed.tiling.splits


def bases(spec: OperatorSpec) -> tuple[tuple[int, int], ...]:
    """Return what lengths of every axis are multiples of: blocks of the engine, and whole transactions."""
    blocks, transactions = [1] * len(spec.axes), [1] * len(spec.axes)
    roles = matrix_axes(spec)
    if roles is not None:
        for axis in (*roles.columns, *roles.inner):
            blocks[axis] = ENGINE_BLOCK
    for operand in (*spec.inputs, spec.output):
        last = operand.dims[-1] if operand.dims else None
        if last is not None and last.is_simple:
            axis = last.terms[0].axis
            transactions[axis] = max(transactions[axis], TRANSACTION_BYTES // size_bytes(operand.dtype))
    return tuple((max(pair), pair[1]) for pair in zip(blocks, transactions, strict=True))


def aligned_lengths(axis: Axis, base: int, least: int, n_cores: int, *, is_whole: bool) -> tuple[int, ...]:
    """Return the lengths of an axis, longest first: aligned and without much padding.

    They cut it in 1, 2, 3, 4, 6, 8, 12, ... parts, or in a few for every core. An axis of the result may be cut below
    a block of the engine, too, down to whole transactions, so that small operators have tiles for all cores: Roller
    shrinks those by halves.
    """
    extent = axis.extent
    if is_whole:
        return (extent,)
    parts = {factor << shift for shift in range(extent.bit_length()) for factor in (1, 3)}
    parts |= {n_cores * waves for waves in (1, 2, 3, 4, 6, 8)}
    blocks = {-(-extent // (each * base)) for each in parts}
    lengths = {min(each * base, extent) for each in blocks}
    kept = {each for each in lengths if -(-extent // each) * each <= MOST_PADDING * extent}
    if axis.kind == "parallel" and extent >= base:
        kept |= {base >> shift for shift in range(1, base.bit_length()) if base >> shift >= least}
    return tuple(sorted(kept | {extent}, reverse=True))


def _tilings(spec: OperatorSpec, n_cores: int) -> Iterable[tuple[int, ...]]:
    aligned = bases(spec)
    whole = spec.window_positions
    lengths = [
        aligned_lengths(axis, *aligned[number], n_cores, is_whole=not axis.is_splittable or number in whole)
        for number, axis in enumerate(spec.axes)
    ]
    while prod(map(len, lengths)) > MOST_TILINGS:
        longest = max(range(len(lengths)), key=lambda number: len(lengths[number]))
        lengths[longest] = lengths[longest][::2]
    return combinations(*lengths)


def _ranked(
    spec: OperatorSpec, chip: ChipSpec, cost: CostModel, room_bytes: int, system: Roller
) -> list[Tiling]:
    """Return the tilings that fit, best predicted first."""
    boxes = np.array(list(_tilings(spec, chip.n_cores)), np.int64).reshape(-1, len(spec.axes))
    extents = np.array(spec.extents, np.int64)
    own = _operand_sizes(spec, boxes)
    fits = own[:, -1] <= room_bytes
    boxes, own = boxes[fits], own[fits]
    if not len(boxes):
        return []
    grid = -(-extents // boxes)
    is_parallel = np.array([axis.kind == "parallel" for axis in spec.axes])
    tiles, steps = grid[:, is_parallel].prod(axis=1), grid[:, ~is_parallel].prod(axis=1)
    compute = least_costs(cost).sub_task_cycles_many(spec, boxes)
    load = (
        cost.exchange_cycles(4, 1, neighbour=False)
        + own[:, 0] // chip.exchange_bytes_per_cycle
        + 2 * own[:, 1]
    )
    store = cost.exchange_cycles(4, 1, neighbour=False) + own[:, 2] // chip.exchange_bytes_per_cycle
    n_runs = own[:, 1] * np.minimum(tiles, chip.n_cores)
    total_runs = np.where((n_runs <= MOST_RUNS).any(), MOST_RUNS, n_runs.min())
    found: list[tuple[int, tuple[int, ...], int]] = []
    may_split = system.splits_sums or bool(spec.selectors)
    for splits in (1, *SPLITS) if may_split and spec.combine == "sum" else (1,):
        shared_steps = -(-steps // splits)
        allowed = (
            (n_runs <= total_runs) & (steps >= splits) & ((splits == 1) | (tiles * splits <= chip.n_cores))
        )
        waves = -(-tiles * splits // chip.n_cores)
        reduce = (
            0 if splits == 1 else (own[:, 2] * (splits - 1) // splits) // chip.exchange_bytes_per_cycle + 600
        )
        total = waves * (shared_steps * (compute + load) + store + reduce)
        order = np.flatnonzero(allowed)
        order = order[np.argsort(total[order], kind="stable")][:BEST]
        found += [(int(total[i]), tuple(boxes[i].tolist()), splits) for i in order.tolist()]
    return [Tiling(lengths, splits) for _, lengths, splits in sorted(found)]


def _operand_sizes(spec: OperatorSpec, boxes: Ints) -> Ints:
    """Return per box: bytes loaded in a step, runs that they come in at least, bytes stored, bytes of the tile."""
    columns = np.zeros((len(boxes), 4), np.int64)
    for operand in (*spec.operands, spec.output):
        dims = [
            1
            + sum(term.coefficient * (boxes[:, term.axis] - 1) for term in dim.terms)
            + np.zeros(len(boxes), np.int64)
            for dim in operand.dims
        ]
        n = np.prod(dims, axis=0) if dims else np.ones(len(boxes), np.int64)
        n_bytes = -(-n * size_bytes(operand.dtype) // 8) * 8
        if operand is spec.output:
            columns[:, 2] = n_bytes
            columns[:, 3] += -(-n * size_bytes(spec.acc_dtype) // 8) * 8
            if spec.acc_dtype != operand.dtype or spec.epilogue is not None:
                columns[:, 3] += n_bytes
            continue
        columns[:, 3] += n_bytes
        columns[:, 0] += n_bytes
        row = np.ones(len(boxes), np.int64)
        is_whole = np.ones(len(boxes), np.bool_)
        for dim, size in zip(reversed(dims), reversed(operand.shape), strict=True):
            row = np.where(is_whole, row * dim, row)
            is_whole &= dim >= size
        columns[:, 1] += -(-n // row)
    return columns


__all__ = ["BEST", "Roller", "best_tile", "smallest_tile_bytes", "tile_bytes"]
