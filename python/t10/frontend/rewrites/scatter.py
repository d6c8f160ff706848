"""Writing at computed places, as comparisons and reductions: every element asks which update is meant for it.

    hit[o, i] = (index[i] = o)
    y[o]      = max over i of (update[i] where hit[o, i]), or x[o] where nothing hits

Maxima become sums, products or minima as the operator says. Where several updates hit one element and no reduction is
named, ONNX leaves the result open; here it is the largest of them. A maximum moves its one update as it is: a sum with
zeros would lose the sign of -0.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

_NARROW = frozenset({KIND.BOOL, KIND.INT8, KIND.UINT8, KIND.INT16})
_TYPES = frozenset({*_NARROW, KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE, KIND.INT32, KIND.INT64})


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Elements and updates in pairs: `updates` broadcast with `hit`, in which `axis` runs over the updates."""

    hit: str
    updates: str
    axis: int


def _scatter_elements(site: Site) -> bool:
    shape, places = site.shape(0), site.shape(1)
    kind = site.kind(0)
    if shape is None or places is None or kind not in _TYPES or not shape or not all((*shape, *places)):
        return False
    axis = int(site.option("axis", 0)) % len(shape)
    inner = _inner(site, kind)
    data, updates = (site.cast(site.input(i), inner) if kind != inner else site.input(i) for i in (0, 2))
    region, rests = data, list[tuple[int, str]]()
    for dim, (extent, written) in enumerate(zip(shape, places, strict=True)):
        if dim != axis and written < extent:
            rests.append((dim, site.slice(region, dim, written, extent)))
            region = site.slice(region, dim, 0, written)
    row = site.reshape(_counted(site, site.input(1), shape[axis]), (*places[:axis], 1, *places[axis:]))
    slots = _places(site, shape[axis], len(shape) + 1, axis)
    values = site.reshape(updates, (*places[:axis], 1, *places[axis:]))
    pairs = _Pairs(site.op("Equal", row, slots), values, axis + 1)
    made = _combined(site, region, pairs, inner)
    for dim, rest in reversed(rests):
        made = site.concat((made, rest), dim)
    _give(site, made, kind, inner)
    return True


def _scatter_nd(site: Site) -> bool:
    shape, places = site.shape(0), site.shape(1)
    kind = site.kind(0)
    if shape is None or places is None or kind not in _TYPES or not all((*shape, *places)):
        return False
    n_coordinates = places[-1]
    rows, row = prod(shape[:n_coordinates]), prod(shape[n_coordinates:])
    n_updates = prod(places[:-1])
    inner = _inner(site, kind)
    data, updates = (site.cast(site.input(i), inner) if kind != inner else site.input(i) for i in (0, 2))
    line = site.reshape(_linear(site, shape, places), (1, n_updates, 1))
    hit = site.op("Equal", line, _places(site, rows, 3, 0))
    pairs = _Pairs(hit, site.reshape(updates, (1, n_updates, row)), 1)
    made = _combined(site, site.reshape(data, (rows, row)), pairs, inner)
    _give(site, site.reshape(made, shape), kind, inner)
    return True


def _tensor_scatter(site: Site) -> bool:
    """Write rows of a cache, of each batch from its own row on; `circular` goes on at the first row after the last."""
    shape, written = site.shape(0), site.shape(1)
    kind = site.kind(0)
    if shape is None or written is None or kind not in _TYPES or not all((*shape, *written)):
        return False
    axis = int(site.option("axis", -2)) % len(shape)
    n_batches, n_rows, n_updates, inside = shape[0], shape[axis], written[axis], prod(shape[axis + 1 :])
    outside = prod(shape[1:axis])
    inner = _inner(site, kind)
    data, updates = (site.cast(site.input(i), inner) if kind != inner else site.input(i) for i in (0, 1))
    row = site.constant(np.arange(n_updates, dtype=np.int32).reshape(1, 1, 1, n_updates, 1))
    if site.input(2):
        first = site.reshape(site.cast(site.input(2), KIND.INT32), (n_batches, 1, 1, 1, 1))
        row = site.op("Add", first, row)
    if str(site.option("mode", "linear")) == "circular":
        row = site.op("Mod", row, site.scalar(n_rows, KIND.INT32))
    hit = site.op("Equal", row, _places(site, n_rows, 5, 2))
    pairs = _Pairs(hit, site.reshape(updates, (n_batches, outside, 1, n_updates, inside)), 3)
    made = _combined(site, site.reshape(data, (n_batches, outside, n_rows, inside)), pairs, inner)
    _give(site, site.reshape(made, shape), kind, inner)
    return True


def _inner(site: Site, kind: int) -> int:
    """Return the type in which updates meet: sums and products of f16 round once."""
    if kind == KIND.FLOAT16 and str(site.option("reduction", "none")) in ("add", "mul"):
        return KIND.FLOAT
    return KIND.INT32 if kind in _NARROW else kind


def _linear(site: Site, shape: Shape, places: Shape) -> str:
    """Return the row that every coordinate tuple means, of the rows of the leading dims."""
    total = ""
    for place in range(places[-1]):
        stride = prod(shape[place + 1 : places[-1]])
        part = _counted(site, site.slice(site.input(1), len(places) - 1, place, place + 1), shape[place])
        scaled = site.op("Mul", part, site.scalar(stride, KIND.INT32)) if stride != 1 else part
        total = site.op("Add", total, scaled) if total else scaled
    return total


def _counted(site: Site, indices: str, extent: int) -> str:
    """Return indices as i32, negative ones counted from the end."""
    narrow = site.cast(indices, KIND.INT32)
    below = site.op("Less", narrow, site.scalar(0, KIND.INT32))
    return site.op("Where", below, site.op("Add", narrow, site.scalar(extent, KIND.INT32)), narrow)


def _places(site: Site, extent: int, rank: int, axis: int) -> str:
    values = np.arange(extent, dtype=np.int32)
    return site.constant(values.reshape([extent if dim == axis else 1 for dim in range(rank)]))


def _combined(site: Site, data: str, pairs: _Pairs, kind: int) -> str:
    """Return data with all that hits it."""
    how = str(site.option("reduction", "none"))
    operator, join, start = {
        "none": ("ReduceMax", "", _lowest(kind)),
        "add": ("ReduceSum", "Add", 0),
        "mul": ("ReduceProd", "Mul", 1),
        "max": ("ReduceMax", "Max", _lowest(kind)),
        "min": ("ReduceMin", "Min", _highest(kind)),
    }[how]
    chosen = site.op("Where", pairs.hit, pairs.updates, site.scalar(start, kind))
    total = site.reduce(operator, chosen, [pairs.axis], keep=False)
    if how == "add" and kind in (KIND.FLOAT, KIND.FLOAT16, KIND.DOUBLE):
        # Where nothing hits, the sum is 0, which would make 0 of -0.
        total = site.op(
            "Where", site.op("Equal", total, site.scalar(0, kind)), site.scalar(-0.0, kind), total
        )
    if join:
        return site.op(join, data, total)
    counted = site.op("Where", pairs.hit, site.scalar(1, KIND.INT32), site.scalar(0, KIND.INT32))
    count = site.reduce("ReduceSum", counted, [pairs.axis], keep=False)
    return site.op("Where", site.op("Greater", count, site.scalar(0, KIND.INT32)), total, data)


def _lowest(kind: int) -> Any:
    dtype: np.dtype[Any] = np.dtype(_NUMPY[kind])
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(kind: int) -> Any:
    dtype: np.dtype[Any] = np.dtype(_NUMPY[kind])
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


_NUMPY: dict[int, Any] = {
    KIND.FLOAT: np.float32,
    KIND.FLOAT16: np.float16,
    KIND.DOUBLE: np.float64,
    KIND.INT32: np.int32,
    KIND.INT64: np.int64,
}


def _give(site: Site, made: str, kind: int, inner: int) -> None:
    if kind == inner:
        site.give(made)
    else:
        site.cast(made, kind, output=site.node.output[0])


RULES: dict[str, Rule] = {
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "TensorScatter": _tensor_scatter,
}
