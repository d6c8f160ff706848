"""Windows written out: every place of a pooled tensor with all that its window covers, side by side.

MaxPool with places    the largest of a window, and where in the whole tensor it stands
Col2Im                 the sum of all that lies over a pixel
MaxUnpool              a scatter to the places that a MaxPool gave
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t10.frontend.pool_windows import windows_of
from t10.frontend.rewrites.site import KIND, Rule, Shape, Site

MOST_ENTRIES = 1 << 22
"""Most entries of a table of places: they are written down one by one."""


_POOLED: dict[int, int] = {
    KIND.FLOAT: KIND.FLOAT,
    KIND.FLOAT16: KIND.FLOAT16,
    KIND.INT8: KIND.FLOAT,
    KIND.UINT8: KIND.FLOAT,
}
"""Types that are pooled with places, and the type that their elements are compared in."""

_POOLED_SHAPE = "t10.pooled_shape"
_MOVES = frozenset(
    ("Cast", "Concat", "Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
)
"""What leaves the places of a pool as they are, but for where they stand."""
"""Metadata of the node that makes the places of a MaxPool: the extents of what it pools, in which they count."""


def _are_few(*groups: Shape) -> bool:
    """Return whether extents are those of tensors, and a table of all their combinations is small."""
    extents = [extent for group in groups for extent in group]
    return min(extents, default=1) >= 1 and prod(extents) <= MOST_ENTRIES


def _windows(
    spatial: Shape, kernel: Shape, strides: Shape, dilations: Shape, low: Shape, out: Shape
) -> NDArray[np.int64]:
    """Return the flat places (windows, taps) that windows cover; -1 lies outside."""
    axes: list[NDArray[Any]] = []
    for n, k, s, d, pad, m in zip(spatial, kernel, strides, dilations, low, out, strict=True):
        places = np.array([[window * s + tap * d - pad for tap in range(k)] for window in range(m)], np.int64)
        axes.append(np.where((places >= 0) & (places < n), places, -1))
    windows = list(product(*(range(m) for m in out)))
    taps = list(product(*(range(k) for k in kernel)))
    table = np.full((len(windows), len(taps)), -1, np.int64)
    for i, window in enumerate(windows):
        for j, tap in enumerate(taps):
            at = [axis[w, t] for axis, w, t in zip(axes, window, tap, strict=True)]
            if min(at) >= 0:
                table[i, j] = np.ravel_multi_index(at, spatial)
    return table


def _max_pool(site: Site) -> bool:
    """Write a MaxPool whose places are read, too."""
    shape, kernel = site.shape(0), site.option("kernel_shape", None)
    kind = site.kind(0)
    if shape is not None and kernel and not site.output(1) and kind == KIND.DOUBLE:
        return _max_pool_of_doubles(site, shape)
    if shape is None or not kernel or not site.output(1) or kind not in _POOLED:
        return False
    inner, rank = _POOLED[kind], len(kernel)
    if site.option("ceil_mode", 0) or site.option("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return False
    strides, dilations = (tuple(site.option(name, [1] * rank)) for name in ("strides", "dilations"))
    pads = list(site.option("pads", [0] * 2 * rank))
    spatial = shape[2:]
    out = tuple(
        (n + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate(spatial)
    )
    if not _are_few(strides, dilations) or not _are_few(out, tuple(kernel)) or min(pads) < 0:
        return False
    table = _windows(spatial, tuple(kernel), strides, dilations, tuple(pads[:rank]), out)
    n_places, is_inside = prod(spatial), table >= 0
    x = site.input(0) if inner == kind else site.cast(site.input(0), inner)
    flat = site.reshape(x, (shape[0], shape[1], n_places))
    taps = site.op("Gather", flat, site.constant(np.maximum(table, 0)), axis=2)
    lowest = site.scalar(-np.inf, inner)
    taps = site.op("Where", site.constant(is_inside), taps, lowest) if not is_inside.all() else taps
    largest = site.reduce("ReduceMax", taps, [3], keep=True)
    if site.output(0):
        whole = largest if inner == kind else site.cast(site.cast(largest, KIND.INT32), kind)
        site.reshape(whole, (*shape[:2], *out), output=site.output(0))
    places = site.constant(
        _stored(table, spatial, is_column_major=bool(site.option("storage_order", 0))), np.int32
    )
    beaten = site.op("Less", taps, largest)
    found = site.op("Where", beaten, site.scalar(2**31 - 1, KIND.INT32), places)
    first = site.reduce("ReduceMin", found, [3], keep=False)
    planes = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(*shape[:2], 1) * n_places
    whole = site.op("Add", first, site.constant(planes))
    site.reshape(site.cast(whole, KIND.INT64), (*shape[:2], *out), output=site.output(1))
    site.nodes[-1].metadata_props.add(key=_POOLED_SHAPE, value=_text(shape))
    return True


def _max_pool_of_doubles(site: Site, shape: Shape) -> bool:
    """Pad with -infinity first: torch-mlir pads with the least finite number, which is larger."""
    windows = windows_of(site.node, shape[2:])
    pads = [0, 0, *(axis.low for axis in windows), 0, 0, *(axis.reach for axis in windows)]
    if not any(pads) or min(pads) < 0:
        return False
    padded = site.op("Pad", site.input(0), site.constant(pads, np.int64), site.scalar(-np.inf, KIND.DOUBLE))
    site.op(
        "MaxPool", padded, output=site.node.output[0], kernel_shape=[axis.kernel for axis in windows],
        strides=[axis.stride for axis in windows], dilations=[axis.dilation for axis in windows],
    )  # fmt: skip
    return True


def _stored(table: NDArray[np.int64], spatial: Shape, *, is_column_major: bool) -> NDArray[np.int64]:
    """Return flat places in the order of storage that is asked for; those outside come last."""
    inside = np.where(table >= 0, table, 0)
    if is_column_major:
        inside = np.ravel_multi_index(np.unravel_index(inside, spatial), spatial, order="F").astype(np.int64)
    return np.where(table >= 0, inside, 2**31 - 1)


def _max_unpool(site: Site) -> bool:
    shape, kernel = site.shape(0), site.option("kernel_shape", None)
    wanted = site.constant_input(2)
    if shape is None or not kernel or (site.input(2) and wanted is None):
        return False
    rank = len(kernel)
    strides, pads = site.option("strides", [1] * rank), site.option("pads", [0] * 2 * rank)
    own = [(n - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i, n in enumerate(shape[2:])]
    inner = (*shape[:2], *own)
    extents = inner if wanted is None else tuple(int(n) for n in wanted)
    if not _are_few(inner) or not _are_few(extents):
        return False
    places = site.reshape(site.input(1), (prod(shape),))
    if extents != inner and not _are_places_in(site, extents):
        # Places count in the tensor that was pooled, which is smaller than what is asked for.
        table = np.arange(prod(extents)).reshape(extents)[tuple(slice(0, n) for n in inner)].reshape(-1)
        places = site.op("Gather", site.constant(table.astype(np.int64)), places, axis=0)
    empty = site.op("Expand", site.scalar(0, site.kind(0)), site.constant([prod(extents)], np.int64))
    values = site.reshape(site.input(0), (prod(shape),))
    made = site.op("ScatterElements", empty, places, values, axis=0)
    site.reshape(made, extents, output=site.node.output[0])
    return True


def _are_places_in(site: Site, extents: Shape) -> bool:
    """Return whether all places are those of a MaxPool, written out or not, of tensors whose rows have such extents."""
    makers = {name: node for node in site.graph.node for name in node.output}
    todo = [site.input(1)]
    while todo:
        node = makers.get(todo.pop())
        if node is None:
            return False
        pooled = _pooled_shape(site, node)
        if pooled is None and node.op_type in _MOVES:
            todo += node.input if node.op_type == "Concat" else node.input[:1]
        elif pooled is None or pooled[1:] != extents[1:]:
            return False
    return True


def _pooled_shape(site: Site, node: Any) -> Shape | None:
    """Return the shape of what a MaxPool pools that gives its places here, None of another node."""
    if node.op_type == "MaxPool":
        return site.facts.shapes.get(node.input[0])
    text = next((each.value for each in node.metadata_props if each.key == _POOLED_SHAPE), None)
    return None if text is None else tuple(map(int, text.split("x")))


def _text(extents: Shape) -> str:
    return "x".join(map(str, extents))


def _col2im(site: Site) -> bool:
    shape, image, block = site.shape(0), site.constant_input(1), site.constant_input(2)
    if shape is None or image is None or block is None or site.kind(0) not in (KIND.FLOAT, KIND.FLOAT16):
        return False
    spatial, kernel = tuple(int(n) for n in image), tuple(int(k) for k in block)
    rank = len(spatial)
    strides, dilations = (tuple(site.option(name, [1] * rank)) for name in ("strides", "dilations"))
    pads = list(site.option("pads", [0] * 2 * rank))
    out = tuple(
        (n + pads[i] + pads[i + rank] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate(spatial)
    )
    if (
        not _are_few(strides, dilations)
        or not _are_few(out, kernel)
        or not _are_few(spatial)
        or min(pads) < 0
    ):
        return False
    table = _windows(spatial, kernel, strides, dilations, tuple(pads[:rank]), out).T.reshape(-1)
    channels = shape[1] // prod(kernel)
    lists: list[list[int]] = [[] for _ in range(prod(spatial))]
    for source, place in enumerate(table):
        if place >= 0:
            lists[int(place)].append(source)
    depth = max(1, *(len(each) for each in lists))
    sources = np.array([each + [0] * (depth - len(each)) for each in lists], np.int64)
    counts = np.array([[1] * len(each) + [0] * (depth - len(each)) for each in lists], site.dtype(0))
    flat = site.reshape(site.input(0), (shape[0], channels, prod(kernel) * prod(out)))
    taken = site.op("Mul", site.op("Gather", flat, site.constant(sources), axis=2), site.constant(counts))
    total = site.reduce("ReduceSum", taken, [3], keep=False)
    site.reshape(total, (shape[0], channels, *spatial), output=site.node.output[0])
    return True


RULES: dict[str, Rule] = {"Col2Im": _col2im, "MaxPool": _max_pool, "MaxUnpool": _max_unpool}
