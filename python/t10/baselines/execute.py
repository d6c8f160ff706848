"""Load-compute-store, executed: every tile on its core, from shares in the virtual global memory and back into them.

Nothing but the runs that are priced moves elements, so a run too many, too few or from elsewhere gives wrong numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.baselines.load_compute_store import Shared
from t10.baselines.shares import Segments, segments_of, share_elements
from t10.baselines.tiles import Pieces, Rows, Tiling, coordinates, cut, rows_of
from t10.core.arrays import Array, Ints
from t10.core.dtypes import numpy_dtype
from t10.core.expression import Operand, OperatorSpec
from t10.core.geometry import partition_shape
from t10.core.graph import Graph
from t10.core.scalar import identity, parse_constant
from t10.sim.combine import combine_arrays, neutral, reduce_axes
from t10.sim.narrow import narrowed
from t10.sim.partition import Partition
from t10.sim.product import factors_of, sum_of_products
from t10.sim.scalar_eval import evaluate

MOST_ELEMENTS = 1 << 22
"""Elements of the tiles that are computed at a time."""

Memory = dict[str, NDArray[Any]]
"""Shares of every value that lies in the virtual global memory, (cores, elements)."""


def shared_memory(values: Mapping[str, NDArray[Any]], dtypes: Mapping[str, str], n_cores: int) -> Memory:
    """Return values cut in shares."""
    memory: Memory = {}
    for name, value in values.items():
        share = share_elements(value.size, dtypes[name], n_cores)
        padded = np.zeros(n_cores * share, value.dtype)
        padded[: value.size] = value.reshape(-1)
        memory[name] = padded.reshape(n_cores, share)
    return memory


def run_model(
    graph: Graph, tilings: Mapping[str, Tiling], values: Mapping[str, NDArray[Any]], n_cores: int
) -> dict[str, NDArray[Any]]:
    """Return the outputs of a model, by their names, whose operators run under `tilings` (by operator)."""
    dtypes = {value.name: value.dtype for value in (*graph.inputs, *graph.weights)}
    memory = shared_memory({name: values[name] for name in dtypes if name in values}, dtypes, n_cores)
    for spec in graph.operators:
        run_operator(Shared.of(graph, spec, n_cores), tilings[spec.name], memory, n_cores)
        dtypes[spec.output.name] = spec.output.dtype
    outputs: dict[str, NDArray[Any]] = {}
    views = {view.name: view for view in graph.views}
    for output in graph.outputs:
        dtype = views[output.value].dtype if output.value in views else dtypes[output.value]
        shape = graph.shape_by_value[output.value]
        segments = segments_of(graph, output.value, dtype, n_cores)
        rows = Rows(*(np.array([n], np.int64) for n in (0, 0, 0, prod(shape))))
        whole = np.zeros((1, prod(shape)), numpy_dtype(dtype))
        _fetch(cut(rows, segments), segments, memory, whole)
        outputs[output.name] = whole.reshape(shape)
    return outputs


def run_operator(
    shared: Shared, tiling: Tiling, memory: Memory, n_cores: int, tiles: Ints | None = None
) -> None:
    """Compute an operator, or some of its tiles, from the shares of its operands into those of its result."""
    spec = shared.spec
    output = spec.output
    if output.name not in memory:
        share = share_elements(prod(output.shape), output.dtype, n_cores)
        memory[output.name] = np.zeros((n_cores, share), numpy_dtype(output.dtype))
    largest = max(prod(tiling.lengths), 1)
    numbers = np.arange(tiling.n_tiles(spec), dtype=np.int64) if tiles is None else tiles
    at_once = max(MOST_ELEMENTS // largest // tiling.splits, 1)
    for first in range(0, len(numbers), at_once):
        TileGroup(shared, tiling, numbers[first : first + at_once]).run(memory)


class TileGroup:
    """Some tiles of an operator, whose sums are walked over in steps."""

    def __init__(self, shared: Shared, tiling: Tiling, tiles: Ints) -> None:
        """Take which tiles to compute."""
        self.shared, self.tiling, self.tiles = shared, tiling, tiles

    def run(self, memory: Memory) -> None:
        """Load, compute and store."""
        spec, splits = self.shared.spec, self.tiling.splits
        places = (self.tiles[:, None] * splits + np.arange(splits)).reshape(-1)
        sums = self._empty(len(places))
        for step in range(self.tiling.n_own_steps(spec)):
            parts, works = coordinates(spec, self.tiling, places, step)
            if len(parts):
                value = self._contribution(parts, memory)
                sums[works] = (
                    value if spec.combine == "none" else combine_arrays(spec.combine, sums[works], value)
                )
        whole = sums.reshape(len(self.tiles), splits, *sums.shape[1:])
        result = whole[:, 0]
        for split in range(1, splits):
            result = combine_arrays(spec.combine, result, whole[:, split])
        self._store(result, memory)

    def _empty(self, n: int) -> Array:
        spec = self.shared.spec
        shape = [
            1 if axis.kind == "reduction" else length
            for axis, length in zip(spec.axes, self.tiling.lengths, strict=True)
        ]
        start = neutral(spec.combine, spec.acc_dtype) if spec.combine != "none" else 0
        return np.full((n, *shape), start, numpy_dtype(spec.acc_dtype))

    def loaded(self, number: int, parts: Ints, memory: Memory) -> Array:
        """Return tiles of an operand by axis, as they lie in the cores' memories."""
        operand, segments = self.shared.spec.operands[number], self.shared.operands[number]
        lengths = self.tiling.lengths
        n_slots = prod(partition_shape(operand, lengths))
        pad = parse_constant(operand.pad_value) if operand.pad_value else 0
        slots = np.full((len(parts), n_slots), pad, numpy_dtype(operand.dtype))
        _fetch(cut(rows_of(operand, lengths, parts), segments), segments, memory, slots)
        return Partition(operand, number, lengths, slots).by_axis()

    def _index(self, parts: Ints, axis: int) -> Array:
        length = self.tiling.lengths[axis]
        rows = parts[:, axis, None] * length + np.arange(length)
        return rows.reshape(
            len(parts), *(length if a == axis else 1 for a in range(len(self.tiling.lengths)))
        )

    def _contribution(self, parts: Ints, memory: Memory) -> Array:
        """Return what a step adds, by axis; points outside the iteration space contribute nothing."""
        spec = self.shared.spec
        arrays = [self.loaded(number, parts, memory) for number in range(len(spec.inputs))]

        def index(axis: int) -> Array:
            return self._index(parts, axis)

        inside = {axis: index(axis) < spec.axes[axis].extent for axis in spec.reduction_axes}
        factors = factors_of(spec)
        if factors is not None:
            terms: list[Array] = []
            for function in factors.functions:
                value = evaluate(function, arrays, index)
                for rows in inside.values():
                    value = np.where(rows, value, value.dtype.type(0))
                terms.append(value)
            with np.errstate(all="ignore"):
                made = sum_of_products(terms[0], terms[1], spec.reduction_axes)
            return self._spread(narrowed(made, numpy_dtype(spec.acc_dtype)), len(parts), spec)
        value = narrowed(evaluate(spec.body, arrays, index), numpy_dtype(spec.acc_dtype))
        if spec.combine == "none":
            return self._spread(value, len(parts), spec)
        conditions = [*inside.values()]
        for selector in spec.selectors:
            conditions.append(
                evaluate(selector.index, arrays, index).astype(np.int64) == index(selector.axis)
            )
        shape = (
            len(parts),
            *(n if a in spec.reduction_axes else 1 for a, n in enumerate(self.tiling.lengths)),
        )
        value = np.broadcast_to(value, np.broadcast_shapes(value.shape, shape))
        for condition in conditions:
            value = np.where(condition, value, neutral(spec.combine, spec.acc_dtype))
        made = reduce_axes(spec.combine, value, tuple(axis + 1 for axis in spec.reduction_axes))
        return self._spread(narrowed(made, numpy_dtype(spec.acc_dtype)), len(parts), spec)

    def _spread(self, value: Array, n: int, spec: OperatorSpec) -> Array:
        """Return a value that may not depend on some parallel axes, for all their points."""
        reduced = spec.reduction_axes
        shape = (n, *(1 if a in reduced else length for a, length in enumerate(self.tiling.lengths)))
        return np.broadcast_to(value, shape)

    def _store(self, sums: Array, memory: Memory) -> None:
        """Write results into the shares that they belong to."""
        spec, output = self.shared.spec, self.shared.spec.output
        first = self.tiles * self.tiling.splits
        parts, _ = coordinates(spec, self.tiling, first, 0)
        extra = [self.loaded(number, parts, memory) for number in range(len(spec.inputs), len(spec.operands))]
        function = spec.epilogue or identity()
        made = evaluate(function, [sums, *extra], lambda axis: self._index(parts, axis))
        made = np.broadcast_to(made, np.broadcast_shapes(made.shape, sums.shape))
        order = [dim.terms[0].axis + 1 for dim in output.dims if dim.terms]
        rest = [axis for axis in range(1, made.ndim) if axis not in order]
        flat = made.transpose([0, *order, *rest]).reshape(len(parts), -1)
        result = narrowed(flat, numpy_dtype(output.dtype))
        pieces = cut(rows_of(output, self.tiling.lengths, parts), self.shared.output)
        piece, offset = _elements(pieces)
        memory[output.name][pieces.cores[piece], pieces.there[piece] + offset] = result[
            pieces.tiles[piece], pieces.slots[piece] + offset
        ]


def _elements(pieces: Pieces) -> tuple[Ints, Ints]:
    """Return of every element that pieces move the piece and the place in it."""
    piece = np.repeat(np.arange(len(pieces.lengths)), pieces.lengths)
    before = np.cumsum(pieces.lengths) - pieces.lengths
    return piece, np.arange(len(piece)) - before[piece]


def _fetch(pieces: Pieces, segments: Segments, memory: Memory, slots: NDArray[Any]) -> None:
    """Bring pieces from shares into tiles, constants as they are."""
    piece, offset = _elements(pieces)
    source = pieces.sources[piece]
    for number, name in enumerate(segments.names):
        here = source == number if len(segments.names) > 1 or segments.constants else slice(None)
        chosen, at = piece[here], offset[here]
        found = memory[name][pieces.cores[chosen], pieces.there[chosen] + at]
        slots[pieces.tiles[chosen], pieces.slots[chosen] + at] = found
    for number, text in enumerate(segments.constants):
        here = (source < 0) & (pieces.there[piece] == number)
        slots[pieces.tiles[piece[here]], pieces.slots[piece[here]] + offset[here]] = parse_constant(text)


__all__ = ["Memory", "Operand", "run_model", "run_operator", "shared_memory"]
