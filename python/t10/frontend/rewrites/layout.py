"""Operators that only move elements."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from t10.frontend.rewrites.site import KIND, Rule, Site


def _space_to_depth(site: Site) -> bool:
    """Write blocks of b x b pixels as channels: (c, h b1 w b2) -> (b1 b2 c, h w), or (c b1 b2, h w) in mode CRD."""
    shape = site.shape(0)
    size = int(site.option("blocksize", 0))
    if shape is None or len(shape) != 4 or size < 1 or shape[2] % size or shape[3] % size:
        return False
    n, c, h, w = shape
    split = site.reshape(site.input(0), (n, c, h // size, size, w // size, size))
    is_crd = site.option("mode", "DCR") == "CRD"
    moved = site.transpose(split, (0, 1, 3, 5, 2, 4) if is_crd else (0, 3, 5, 1, 2, 4))
    site.reshape(moved, (n, c * size * size, h // size, w // size), output=site.node.output[0])
    return True


def _depth_to_space(site: Site) -> bool:
    """Write channels as blocks of b x b pixels: (b1 b2 c, h w) -> (c, h b1 w b2), (c b1 b2, h w) -> ... in mode CRD."""
    shape = site.shape(0)
    size = int(site.option("blocksize", 0))
    if shape is None or len(shape) != 4 or size < 1 or shape[1] % (size * size):
        return False
    n, c, h, w = shape
    c //= size * size
    is_crd = site.option("mode", "DCR") == "CRD"
    split = site.reshape(site.input(0), (n, c, size, size, h, w) if is_crd else (n, size, size, c, h, w))
    moved = site.transpose(split, (0, 1, 4, 2, 5, 3) if is_crd else (0, 3, 4, 1, 5, 2))
    site.reshape(moved, (n, c, h * size, w * size), output=site.node.output[0])
    return True


def _one_hot(site: Site) -> bool:
    """Write on where a place equals the index, a negative one counted from the end; off elsewhere and out of range."""
    shape, depth = site.shape(0), site.constant_input(1)
    kind = site.kind(2)
    if shape is None or depth is None or not kind or site.kind(0) == 0:
        return False
    n, rank = int(depth.reshape(())), len(shape) + 1
    axis = int(site.option("axis", -1)) % rank
    indices = site.cast(site.input(0), KIND.INT32)
    extents = (*shape[:axis], 1, *shape[axis:])
    row = site.reshape(indices, extents)
    below = site.op("Less", row, site.scalar(0, KIND.INT32))
    row = site.op("Where", below, site.op("Add", row, site.scalar(n, KIND.INT32)), row)
    places = site.constant(
        np.arange(n, dtype=np.int32).reshape([n if dim == axis else 1 for dim in range(rank)])
    )
    is_on = site.op("Equal", row, places)
    off = site.reshape(site.slice(site.input(2), 0, 0, 1), ())
    on = site.reshape(site.slice(site.input(2), 0, 1, 2), ())
    site.op("Where", is_on, on, off, output=site.node.output[0])
    return True


def _pad(site: Site) -> bool:
    """Write padding by a computed number as an Expand of it on either side; constants are lowered as they are."""
    shape, pads = site.shape(0), site.constant_input(1)
    if shape is None or pads is None or not site.input(2) or site.constant_input(2) is not None:
        return False
    if site.option("mode", "constant") != "constant" or (site.input(3) and site.constant_input(3) is None):
        return False
    axes = site.constant_input(3)
    chosen = [int(a) % len(shape) for a in axes] if axes is not None else list(range(len(shape)))
    filler, made, extents = site.reshape(site.input(2), ()), site.input(0), list(shape)
    for place, axis in enumerate(chosen):
        counts = int(pads[place]), int(pads[place + len(chosen)])
        start, end = (max(0, -count) for count in counts)
        if start or end:
            made = site.slice(made, axis, start, extents[axis] - end)
            extents[axis] -= start + end
        sides = [
            site.op("Expand", filler, site.constant([*extents[:axis], count, *extents[axis + 1 :]], np.int64))
            if count > 0
            else ""
            for count in counts
        ]
        if any(sides):
            made = site.concat([part for part in (sides[0], made, sides[1]) if part], axis)
        extents[axis] += sum(max(0, count) for count in counts)
    site.give(made)
    return True


def _moved_pad(site: Site) -> bool:
    """Write padding by the tensor's own elements as a gather at constant places per axis."""
    shape, pads, axes = site.shape(0), site.constant_input(1), site.constant_input(3)
    mode: Any = str(site.option("mode", "constant"))
    if (
        shape is None
        or pads is None
        or mode not in ("reflect", "edge", "wrap")
        or (site.input(3) and axes is None)
    ):
        return False
    chosen = [int(a) % len(shape) for a in axes] if axes is not None else list(range(len(shape)))
    made = site.input(0)
    for place, axis in enumerate(chosen):
        low, high = int(pads[place]), int(pads[place + len(chosen)])
        if not low and not high:
            continue
        places = np.arange(shape[axis])[max(0, -low) : shape[axis] - max(0, -high)]
        padded: Any = np.pad(places, (max(0, low), max(0, high)), mode)
        made = site.op("Gather", made, site.constant(padded.astype(np.int64)), axis=axis)
    site.give(made)
    return True


def _cut_pad(site: Site) -> bool:
    """Write padding by a constant number of which some counts are negative as slices, padded by the other counts."""
    shape, pads, axes = site.shape(0), site.constant_input(1), site.constant_input(3)
    if shape is None or pads is None or (pads >= 0).all() or (site.input(3) and axes is None):
        return False
    if site.option("mode", "constant") != "constant":
        return False
    chosen = [int(a) % len(shape) for a in axes] if axes is not None else list(range(len(shape)))
    made = site.input(0)
    for axis, low, high in zip(chosen, pads[: len(chosen)], pads[len(chosen) :], strict=True):
        if low < 0 or high < 0:
            made = site.slice(made, axis, max(0, -int(low)), shape[axis] - max(0, -int(high)))
    if (pads > 0).any():
        more = [site.constant(np.maximum(pads, 0)), *site.node.input[2:]]
        made = site.op("Pad", made, *more, mode="constant")
    site.give(made)
    return True


def _any_pad(site: Site) -> bool:
    return _pad(site) or _cut_pad(site) or _moved_pad(site)


def _compress(site: Site) -> bool:
    """Write a choice by constant conditions as a gather at constant places; without an axis, of elements in a row."""
    shape, condition = site.shape(0), site.constant_input(1)
    if not shape or condition is None or not condition.any():
        return False
    axis, places = site.option("axis", None), np.flatnonzero(condition)
    if places[-1] >= (prod(shape) if axis is None else shape[axis]):
        return False
    x = site.input(0) if axis is not None else site.reshape(site.input(0), (-1,))
    chosen = site.constant(places, np.int64)
    site.op("Gather", x, chosen, output=site.node.output[0], axis=0 if axis is None else axis)
    return True


def _slice(site: Site) -> bool:
    """Write a slice that walks backwards as a gather at constant places."""
    shape = site.shape(0)
    starts, ends, steps = (site.constant_input(place) for place in (1, 2, 4))
    axes = site.constant_input(3)
    if shape is None or starts is None or ends is None or steps is None or (site.input(3) and axes is None):
        return False
    if all(step > 0 for step in steps):
        return False
    chosen = axes if axes is not None else range(len(starts))
    made = site.input(0)
    for axis, start, end, step in zip(chosen, starts, ends, steps, strict=True):
        dim = int(axis) % len(shape)
        places = np.arange(shape[dim])[_bounds(int(start), int(end), int(step), shape[dim])]
        made = site.op("Gather", made, site.constant(places.astype(np.int64)), axis=dim)
    site.give(made)
    return True


def _bounds(start: int, end: int, step: int, n: int) -> slice:
    """Return ONNX's bounds as Python's: counted from the end below 0, then clamped; -1 as an end means all."""
    low, high = (start + n if start < 0 else start), (end + n if end < 0 else end)
    if step > 0:
        return slice(min(max(low, 0), n), min(max(high, 0), n), step)
    last = min(max(high, -1), n - 1)
    return slice(min(max(low, 0), n - 1), None if last < 0 else last, step)


def _reverse_sequence(site: Site) -> bool:
    """Read sequences of computed lengths at `length - 1 - t`, and at t behind their ends; constants have gathers."""
    shape, axes = site.shape(0), (int(site.option("batch_axis", 1)), int(site.option("time_axis", 0)))
    is_computed = site.shape(1) is not None and site.constant_input(1) is None
    if shape is None or not is_computed or sorted(axes) != [0, 1] or len(shape) < 2 or not all(shape):
        return False
    (n, length), order = (shape[axis] for axis in axes), (*axes, *range(2, len(shape)))
    if site.shape(1) != (n,):
        raise ValueError(f"lengths of shape {site.shape(1)} for {n} sequences")
    times = site.constant(np.arange(length, dtype=np.int32)[None])
    lengths = site.reshape(site.cast(site.input(1), KIND.INT32), (n, 1))
    back = site.op("Sub", site.op("Sub", lengths, site.constant(np.int32(1))), times)
    places = site.op("Where", site.op("Less", times, lengths), back, times)
    places = site.reshape(site.cast(places, KIND.INT64), (n, length, 1))
    rows = site.input(0) if axes == (0, 1) else site.transpose(site.input(0), order)
    read = site.op("GatherND", rows, places, batch_dims=1)
    site.give(read if axes == (0, 1) else site.transpose(read, order))
    return True


RULES: dict[str, Rule] = {
    "Compress": _compress,
    "OneHot": _one_hot,
    "Pad": _any_pad,
    "ReverseSequence": _reverse_sequence,
    "Slice": _slice,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
