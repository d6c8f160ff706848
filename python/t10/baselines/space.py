"""All tilings that a search over a virtual global memory chooses from: aligned lengths, and cores that share a sum."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product as combinations
from math import prod

import numpy as np

from t10.baselines.tiles import Tiling
from t10.chip import ChipSpec
from t10.core.arrays import Bools, Ints
from t10.core.dtypes import size_bytes
from t10.core.expression import Axis, OperatorSpec
from t10.cost.matrix import matrix_axes
from t10.errors import InfeasiblePlanError

MOST_PADDING = 1.25
MOST_TILINGS = 200_000
ENGINE_BLOCK = 16
MOST_RUNS = 2_000_000
"""Tiles whose rows come in more runs in one phase are left out, where there are others: fragments are all they would
wait for."""
TRANSACTION_BYTES = 8
SPLITS = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The tilings of an operator that fit a core.

    `boxes` (boxes, axes) are lengths of tiles, every choice of one length per axis, `counts` how many there are of each
    axis, in row-major order; `sizes` as `operand_sizes`; `splits` are numbers of cores that share a sum, and
    `is_allowed` (boxes, splits) says which pairs may be taken. Nothing is allowed where no tile fits.
    """

    spec: OperatorSpec
    counts: tuple[int, ...]
    boxes: Ints
    sizes: Ints
    splits: tuple[int, ...]
    is_allowed: Bools

    def tiling(self, box: int, split: int) -> Tiling:
        """Return one of them."""
        return Tiling(tuple(self.boxes[box].tolist()), self.splits[split])


def tiles_and_steps(spec: OperatorSpec, boxes: Ints) -> tuple[Ints, Ints]:
    """Return how many tiles of the result there are, and the steps of a tile's whole sum, by box."""
    grid = -(-np.array(spec.extents, np.int64) // boxes)
    is_parallel = np.array([axis.kind == "parallel" for axis in spec.axes], np.bool_)
    return grid[:, is_parallel].prod(axis=1), grid[:, ~is_parallel].prod(axis=1)


def space_of(spec: OperatorSpec, chip: ChipSpec, room_bytes: int, *, splits_sums: bool) -> Space:
    """Return the tilings within `room_bytes` of a core; raises `InfeasiblePlanError` where none fits."""
    lengths = _lengths(spec, chip.n_cores)
    boxes = np.array(list(combinations(*lengths)), np.int64).reshape(-1, len(spec.axes))
    may_split = (splits_sums or bool(spec.selectors)) and spec.combine == "sum"
    sizes, splits = operand_sizes(spec, boxes), SPLITS if may_split else SPLITS[:1]
    fits = sizes[:, -1] <= room_bytes
    if not fits.any():
        raise InfeasiblePlanError(
            f"no aligned tile fits {room_bytes} bytes per core beside the virtual global memory",
            operator=spec.name,
        )
    tiles, steps = tiles_and_steps(spec, boxes)
    n_runs = sizes[:, 1] * np.minimum(tiles, chip.n_cores)
    fits &= n_runs <= max(MOST_RUNS, int(n_runs[fits].min()))
    allowed = [fits & (steps >= split) & ((split == 1) | (tiles * split <= chip.n_cores)) for split in splits]
    return Space(spec, tuple(map(len, lengths)), boxes, sizes, splits, np.stack(allowed, axis=1))


def smallest_tile_bytes(spec: OperatorSpec, n_cores: int) -> int:
    """Return the bytes of the smallest aligned tile."""
    boxes = np.array(list(combinations(*_lengths(spec, n_cores))), np.int64).reshape(-1, len(spec.axes))
    return int(operand_sizes(spec, boxes)[:, -1].min())


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


def _lengths(spec: OperatorSpec, n_cores: int) -> list[tuple[int, ...]]:
    """Return the lengths of every axis, fewer where all choices together were too many."""
    aligned = bases(spec)
    whole = spec.window_positions
    lengths = [
        aligned_lengths(axis, *aligned[number], n_cores, is_whole=not axis.is_splittable or number in whole)
        for number, axis in enumerate(spec.axes)
    ]
    while prod(map(len, lengths)) > MOST_TILINGS:
        longest = max(range(len(lengths)), key=lambda number: len(lengths[number]))
        lengths[longest] = lengths[longest][::2]
    return lengths


def operand_sizes(spec: OperatorSpec, boxes: Ints) -> Ints:
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
