"""Some tiles of a tiling, executed before its time is used: loads and stores against plain indexing.

What tiles compute is held against ONNX Runtime on whole models elsewhere; here the runs that are priced are followed
for operators of any size. Values are small whole numbers, so that results must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.baselines.execute import TileGroup, run_operator, shared_memory
from t10.baselines.load_compute_store import Shared
from t10.baselines.shares import share_elements
from t10.baselines.tiles import Tiling
from t10.core.arrays import Array, Ints
from t10.core.dtypes import numpy_dtype
from t10.core.expression import AxisSizes, Operand
from t10.core.graph import Graph
from t10.core.movement import view_ids
from t10.core.scalar import parse_constant
from t10.errors import T10Error

MOST_ELEMENTS = 1 << 28
"""Operators with more elements than this in all operands are not executed."""
N_TILES = 6


def check_tiles(graph: Graph, shared: Shared, tiling: Tiling, n_cores: int) -> bool:
    """Execute the first, the last and some other tiles; False for an operator that is too large for that.

    Raises `T10Error` where one gives anything else than plain indexing does.
    """
    spec = shared.spec
    shapes = graph.shape_by_value
    dtypes = {source: each.dtype for each in spec.operands for source in graph.sources_of(each.name)}
    if sum(prod(shapes[name]) for name in dtypes) + prod(spec.output.shape) > MOST_ELEMENTS:
        return False
    random = np.random.default_rng(0)
    values = {name: _whole_numbers(random, shapes[name], dtype) for name, dtype in dtypes.items()}
    n_tiles = tiling.n_tiles(spec)
    tiles = np.unique(np.linspace(0, n_tiles - 1, N_TILES).astype(np.int64))
    memory = shared_memory(values, dtypes, n_cores)
    run_operator(shared, tiling, memory, n_cores, tiles)
    share = share_elements(prod(spec.output.shape), spec.output.dtype, n_cores)
    blank = {spec.output.name: np.zeros((n_cores, share), numpy_dtype(spec.output.dtype))}
    whole = {operand.name: _value(graph, operand, values) for operand in spec.operands}
    PlainGroup(shared, tiling, tiles, whole).run(blank)
    if not np.array_equal(
        memory[spec.output.name], blank[spec.output.name], equal_nan=spec.output.dtype[0] == "f"
    ):
        raise T10Error(
            f"its tiles of {list(tiling.lengths)} load or store wrong elements", operator=spec.name
        )
    return True


class PlainGroup(TileGroup):
    """Tiles whose operands are read from whole tensors, by the indices of the expression."""

    def __init__(
        self, shared: Shared, tiling: Tiling, tiles: Ints, whole: Mapping[str, NDArray[Any]]
    ) -> None:
        """Take the values of the operands by name."""
        super().__init__(shared, tiling, tiles)
        self.whole = whole

    def loaded(self, number: int, parts: Ints, memory: object) -> Array:
        """Return tiles of an operand by axis."""
        del memory
        operand = self.shared.spec.operands[number]
        return _by_indices(operand, self.whole[operand.name], self.tiling.lengths, parts)


def _by_indices(operand: Operand, value: NDArray[Any], lengths: AxisSizes, parts: Ints) -> Array:
    """Return the element of every point of tiles, with extent 1 for axes that do not index it."""
    n_axes = len(lengths)
    own = operand.axes
    is_inside: Array = np.ones((1,) * (n_axes + 1), np.bool_)
    index: list[Array] = []
    for dim, extent in zip(operand.dims, operand.shape, strict=True):
        at: Array = np.full((1,) * (n_axes + 1), dim.offset, np.int64)
        for term in dim.terms:
            axis, length = term.axis, lengths[term.axis]
            points = parts[:, axis, None] * length + np.arange(length)
            shape = (len(parts), *(length if a == axis else 1 for a in range(n_axes)))
            at = at + term.coefficient * points.reshape(shape)
        is_inside = is_inside & (at >= 0) & (at < extent)
        index.append(np.clip(at, 0, extent - 1))
    shape = (len(parts), *(length if a in own else 1 for a, length in enumerate(lengths)))
    found = value[tuple(index)] if index else value
    pad = parse_constant(operand.pad_value) if operand.pad_value else 0
    return np.broadcast_to(np.where(is_inside, found, value.dtype.type(pad)), shape)


def _value(graph: Graph, operand: Operand, values: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return what an operand reads, views applied."""
    sources = graph.sources_of(operand.name)
    if sources == (operand.name,):
        return values[operand.name]
    ids, constants = view_ids(graph, operand.name, np.int64)
    kind = numpy_dtype(operand.dtype)
    fixed = np.array([parse_constant(text) for text in constants], kind)
    flat = np.concatenate([*(values[source].reshape(-1) for source in sources), fixed[::-1]])
    return flat[ids]


def _whole_numbers(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    kind = numpy_dtype(dtype)
    return random.integers(0, 2, shape, np.int8).astype(kind)
