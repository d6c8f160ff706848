"""Products with a few columns more, where rows of results would begin in the middle of a word; results are slices.

```
y[i, j] = x[i, k] * w[k, j] + b[j]      becomes      y = y'[:, :3]      y'[i, j] = x[i, k] * w'[k, j] + b'[j]      j < 4
```

The engine writes words of 8 bytes; else scalar loops would write the three colours of a pixel. The host appends zeros
to weights and biases (`t10.padded`). This is for what only the model's results show, through views at most: an
operator would read slices less well than rows of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.core.dtypes import size_bytes
from t10.core.products import WORD_BYTES
from t10.dialect.elements import elements
from t10.passes.bridge.tree import Index, Read, visit
from t10.passes.fusion.arguments import TYPES, argument_entries, set_argument_entries
from t10.passes.fusion.graph import PARALLEL, FusionGraph, Nest, Opaque, is_product
from t10.passes.fusion.make_views import ViewMaker
from t10.passes.fusion.pad_arguments import (
    LEAST_TERMS,
    MOST_MORE,
    free_arguments,
    longer,
    n_reads,
    own_weights,
    pad_argument,
)

MOST_COLUMNS = 8
"""Columns up to which a product is padded; the search pads parts of longer rows itself, where it gains by that."""


def pad_columns(function: Any, graph: FusionGraph) -> None:
    """Pad the columns of products whose results only leave the model; run again it changes nothing."""
    arguments = function.regions[0].blocks[0].arguments
    entries = argument_entries(function)
    weights = own_weights(free_arguments(arguments, graph), entries, graph)
    views = ViewMaker.of(function, graph)
    for nest in graph.nests():
        if not is_product(nest) or nest.forced is not None or prod(nest.extents) < LEAST_TERMS:
            continue
        if graph.types[nest.result] not in TYPES or _is_read(graph, nest.result):
            continue
        for dim, form in enumerate(nest.out_dims):
            axis = form.axes[0] if form.is_simple else -1
            more = _missing(nest.extents[axis], graph.types[nest.result]) if axis >= 0 else 0
            padded = _columns(graph, nest, axis, weights) if more else {}
            if padded:
                _rewrite(graph, views, nest, axis, dim, more)
                for value, of_value in padded.items():
                    graph.shapes[value] = longer(graph.shapes[value], of_value, more)
                    if value in weights:
                        pad_argument(arguments[value], entries[value], graph.shapes[value], of_value, more)
                    else:
                        _pad_constant(graph, views, value)
                break
    set_argument_entries(function, entries)


def _missing(extent: int, dtype: str) -> int:
    """Return how many columns are missing to whole words, 0 where these would be far more, or many."""
    unit = WORD_BYTES // size_bytes(dtype)
    word = -(-extent // unit) * unit
    return word - extent if word <= min(MOST_MORE * extent, MOST_COLUMNS) else 0


def _is_read(graph: FusionGraph, value: int) -> bool:
    """Return whether some loop nest reads a value, through views or not."""
    for user in graph.users[value]:
        node = graph.owners[user]
        if isinstance(node, Nest) or any(_is_read(graph, result) for result in node.results):
            return True
    return False


def _columns(graph: FusionGraph, nest: Nest, axis: int, weights: Collection[int]) -> dict[int, int]:
    """Return the weights and constants that an axis of columns indexes, with its dim; none if it indexes others too."""
    found: dict[int, int] = {}
    for part in nest.parts:
        for scalar in visit(part):
            if isinstance(scalar, Index) and axis in scalar.form.axes:
                return {}
            if not isinstance(scalar, Read) or not any(axis in dim.axes for dim in scalar.dims):
                continue
            dims = [number for number, dim in enumerate(scalar.dims) if axis in dim.axes]
            is_own = scalar.value in weights or _constant(graph, scalar.value) is not None
            is_one = n_reads(nest, scalar.value) == len(dims) == 1
            if not is_own or not is_one or not scalar.dims[dims[0]].is_simple:
                return {}
            found[scalar.value] = dims[0]
    is_columns = nest.kinds[axis] == PARALLEL and nest.combine == "arith.addf"
    return found if is_columns else {}


def _constant(graph: FusionGraph, value: int) -> NDArray[Any] | None:
    """Return the elements of a constant that one operation alone reads, None for other values."""
    node = graph.owner(value)
    if not isinstance(node, Opaque) or node.op.name != "arith.constant" or len(graph.users[value]) != 1:
        return None
    if graph.types[value] not in TYPES or value in graph.outputs:
        return None
    return elements(node.op.attributes["value"], graph.types[value])


def _pad_constant(graph: FusionGraph, views: ViewMaker, value: int) -> None:
    """Make a constant as long as its value is by now, with zeros behind it."""
    before, shape = _constant(graph, value), graph.shapes[value]
    assert before is not None
    more = [(0, n - there) for n, there in zip(shape, before.shape, strict=True)]
    views.constant(value, np.pad(before, more), graph.owners[value].rank)


def _rewrite(graph: FusionGraph, views: ViewMaker, nest: Nest, axis: int, dim: int, more: int) -> None:
    """Make a product have more columns, and what it made a slice of what it makes."""
    result, n = nest.result, graph.shapes[nest.result][dim]
    wide = graph.new_value(longer(graph.shapes[result], dim, more), graph.types[result])
    views.slice(wide, dim, 0, n, nest.rank, result)
    graph.add(replace(nest, result=wide, extents=longer(nest.extents, axis, more)))
