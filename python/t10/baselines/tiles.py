"""Tiles of an operator and the runs of elements that a tile of an operand is made of."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from t10.baselines.shares import Segments
from t10.core.arrays import Bools, Ints
from t10.core.expression import AxisSizes, Operand, OperatorSpec
from t10.core.geometry import partition_shape


@dataclass(frozen=True, slots=True)
class Tiling:
    """How an operator is cut: `lengths` of a tile per axis, those of reduction axes of one step.

    A tile walks over all steps of its sum by itself, or `splits` cores share them and add up what they have.
    """

    lengths: AxisSizes
    splits: int = 1

    def grid(self, spec: OperatorSpec) -> AxisSizes:
        """Return the parts per axis."""
        return tuple(-(-n // length) for n, length in zip(spec.extents, self.lengths, strict=True))

    def n_tiles(self, spec: OperatorSpec) -> int:
        """Return how many tiles of the output there are."""
        return prod(
            parts for axis, parts in zip(spec.axes, self.grid(spec), strict=True) if axis.kind == "parallel"
        )

    def n_steps(self, spec: OperatorSpec) -> int:
        """Return the steps of the whole sum of a tile; 1 where nothing is summed."""
        return prod(self.grid(spec)) // self.n_tiles(spec)

    def n_own_steps(self, spec: OperatorSpec) -> int:
        """Return the steps that one core walks over."""
        return -(-self.n_steps(spec) // self.splits)

    def n_waves(self, spec: OperatorSpec, n_cores: int) -> int:
        """Return how often every core has a tile."""
        return -(-self.n_tiles(spec) * self.splits // n_cores)


def coordinates(spec: OperatorSpec, tiling: Tiling, places: Ints, step: int) -> tuple[Ints, Bools]:
    """Return what cores do in a step: rows of part numbers per axis, and which of `places` have anything to do.

    Places number tiles, and within a tile the cores that share its sum.
    """
    grid = np.array(tiling.grid(spec), np.int64)
    tiles, parts = places // tiling.splits, places % tiling.splits
    steps = parts * tiling.n_own_steps(spec) + step
    works = (
        (tiles < tiling.n_tiles(spec)) & (steps < tiling.n_steps(spec)) & (step < tiling.n_own_steps(spec))
    )
    tiles, steps = tiles[works], steps[works]
    found = np.zeros((len(tiles), len(grid)), np.int64)
    for kind, numbers in (("parallel", tiles), ("reduction", steps)):
        rest = numbers
        for axis in reversed([a for a, each in enumerate(spec.axes) if each.kind == kind]):
            rest, found[:, axis] = np.divmod(rest, grid[axis])
    return found, works


@dataclass(frozen=True, slots=True)
class Rows:
    """Runs of a value that tiles hold; arrays (rows,): which tile, its slot, position in the value, elements."""

    tiles: Ints
    slots: Ints
    starts: Ints
    lengths: Ints


def rows_of(operand: Operand, lengths: AxisSizes, parts: Ints) -> Rows:
    """Return the runs of an operand that tiles of `lengths` hold, by tile and slot; `parts` (tiles, axes)."""
    shape, own = operand.shape, partition_shape(operand, lengths)
    firsts = np.zeros((len(parts), len(shape)), np.int64)
    for number, dim in enumerate(operand.dims):
        firsts[:, number] = dim.offset
        for term in dim.terms:
            firsts[:, number] += term.coefficient * lengths[term.axis] * parts[:, term.axis]
    last = len(shape) - 1
    while last > 0 and own[last] == shape[last] and not firsts[:, last].any():
        last -= 1
    if last < 0:
        each = np.arange(len(parts), dtype=np.int64)
        return Rows(each, np.zeros_like(each), np.zeros_like(each), np.ones_like(each))
    inner = prod(shape[last + 1 :])
    low = np.clip(firsts[:, last], 0, shape[last])
    high = np.clip(firsts[:, last] + own[last], 0, shape[last])
    outer = np.indices(own[:last]).reshape(last, -1) if last else np.zeros((0, 1), np.int64)
    starts = np.broadcast_to((low * inner)[:, None], (len(parts), outer.shape[1])).copy()
    is_inside = np.broadcast_to((high > low)[:, None], starts.shape).copy()
    for number in range(last):
        index = firsts[:, number, None] + outer[number]
        is_inside &= (index >= 0) & (index < shape[number])
        starts += index * prod(shape[number + 1 :])
    tiles, places = np.nonzero(is_inside)
    slots = places * (own[last] * inner) + ((low - firsts[:, last]) * inner)[tiles]
    return Rows(tiles, slots, starts[tiles, places], ((high - low) * inner)[tiles])


@dataclass(frozen=True, slots=True)
class Pieces:
    """Runs within one share each; arrays (pieces,): tile and slot there, source (-1: constant), core and slot there."""

    tiles: Ints
    slots: Ints
    sources: Ints
    cores: Ints
    there: Ints
    lengths: Ints


def cut(rows: Rows, segments: Segments) -> Pieces:
    """Return the rows of tiles cut wherever the value goes on in another share."""
    ends = rows.starts + rows.lengths
    first = np.searchsorted(segments.starts, rows.starts, "right") - 1
    count = np.searchsorted(segments.starts, ends, "left") - first
    row = np.repeat(np.arange(len(count)), count)
    before = np.cumsum(count) - count
    segment = first[row] + np.arange(len(row)) - before[row]
    begin = np.maximum(rows.starts[row], segments.starts[segment])
    following = np.append(segments.starts[1:], segments.n_elements)
    end = np.minimum(ends[row], following[segment])
    is_constant = segments.sources[segment] < 0
    there = segments.slots[segment] + np.where(is_constant, 0, begin - segments.starts[segment])
    slots = rows.slots[row] + begin - rows.starts[row]
    return Pieces(
        rows.tiles[row], slots, segments.sources[segment], segments.cores[segment], there, end - begin
    )
