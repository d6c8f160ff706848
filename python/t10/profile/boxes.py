"""Boxes drawn at random for a class of operators: what its model is fitted to and tested on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod
from random import Random

import numpy as np
from numpy.typing import NDArray

from t10.core.expression import AxisSizes
from t10.cost.classes import OperatorClass
from t10.cost.work import box_bytes
from t10.profile.shape_classes import shape_classes

LARGEST_EXTENT = 512
BOXES_PER_SHAPE_CLASS = 24
BOXES_PER_WAY = 40
SPARE_DRAWS = 12
"""For every box that is wanted so many more are drawn, to find those of rare shape classes among them."""
MOST_MISSES = 2000
WINDOWS = (1, 2, 3, 3, 5, 7)
LARGEST_BYTES = 1 << 18
MOST_POINTS = 1 << 20
EVEN = 8
PART_EVEN, PART_PAIRS = 7 / 8, 15 / 16
LEAST_POINTS = 16
PART_ONES = 1 / 4


def random_boxes(one: OperatorClass, seed: int, n: int) -> list[AxisSizes]:
    """Return about `n` different boxes whose operands fit a core, sizes of every magnitude.

    Axes along which operands are contiguous are mostly cut in whole words, as planners do: seven in eight are multiples
    of eight, half of the others of two. Of shape classes that hardly occur among the first `n` some more boxes are
    drawn, so that each of them can be fitted and tested.
    """
    rng = Random(f"{seed} {one.key}")
    drawn = list(dict.fromkeys(islice(_drawn(one, rng), (1 + SPARE_DRAWS) * n)))
    counts: dict[int, int] = {}
    result: list[AxisSizes] = []
    for number, (box, shape_class) in enumerate(zip(drawn, _class_numbers(one, drawn), strict=True)):
        if number < n or counts.get(shape_class, 0) < BOXES_PER_SHAPE_CLASS:
            result.append(box)
            counts[shape_class] = counts.get(shape_class, 0) + 1
    return result


def further_boxes(one: OperatorClass, seed: int, n: int) -> list[AxisSizes]:
    """Return boxes besides the `random_boxes`, of variants that can be taken for few of those: to fit, not to test."""
    known = random_boxes(one, seed, n)
    rng = Random(f"{seed} {one.key} further")
    drawn = islice(_drawn(one, rng, PART_ONES, 1), SPARE_DRAWS * n)
    seen = set(known)
    spare = [box for box in dict.fromkeys(drawn) if box not in seen]
    if not spare:
        return []
    counts = _possible(one, known).sum(axis=1)
    result: list[AxisSizes] = []
    for box, possible in zip(spare, _possible(one, spare).T, strict=True):
        if (counts[possible] < BOXES_PER_WAY).any():
            result.append(box)
            counts += possible
    return result


def _possible(one: OperatorClass, boxes: list[AxisSizes]) -> NDArray[np.bool_]:
    """Return which variants can be taken, shape (variants, boxes)."""
    variants = one.variants(np.array(boxes, np.int64))
    return np.stack(
        [np.broadcast_to(np.asarray(variant.when(), np.bool_), (len(boxes),)) for variant in variants]
    )


def _drawn(
    one: OperatorClass, rng: Random, part_ones: float = 0.0, least_points: int = LEAST_POINTS
) -> Iterator[AxisSizes]:
    """Yield boxes whose operands fit a core, some axes of one point on purpose; ends where hardly any fits."""
    spec = one.spec
    windows, lines = spec.window_positions, _line_axes(one)
    misses = 0
    while misses < MOST_MISSES:
        box = tuple(
            1
            if (one.step == "epilogue" and axis.kind == "reduction")
            or (part_ones and rng.random() < part_ones)
            else _extent(rng, a in windows, a in lines, len(spec.axes))
            for a, axis in enumerate(spec.axes)
        )
        if least_points <= prod(box) <= MOST_POINTS and box_bytes(spec, box) <= LARGEST_BYTES:
            misses = 0
            yield box
        else:
            misses += 1


def _class_numbers(one: OperatorClass, boxes: list[AxisSizes]) -> list[int]:
    """Return the number of every box's shape class."""
    if not boxes:
        return []
    conditions = [condition for _, condition in shape_classes(one, np.array(boxes, np.int64))]
    return np.argmax(np.stack([np.asarray(each, np.bool_) for each in conditions]), axis=0).tolist()


def _line_axes(one: OperatorClass) -> frozenset[int]:
    """Return the axes along which operands of a step are contiguous: their last dims."""
    spec = one.spec
    inputs = spec.epilogue_inputs if one.step == "epilogue" else spec.inputs
    last = (operand.dims[-1] for operand in (*inputs, spec.output) if operand.dims)
    return frozenset(dim.terms[0].axis for dim in last if dim.is_simple)


def _extent(rng: Random, is_window: bool, is_line: bool, n_axes: int) -> int:
    """Return a random extent: its magnitude evenly spread, small ones more often where there are many axes."""
    if is_window:
        return rng.choice(WINDOWS)
    size = LARGEST_EXTENT ** (rng.random() ** max(n_axes / 3, 1.0))
    extent = max(round(size), 1)
    if not is_line:
        return extent
    kind = rng.random()
    step = EVEN if kind < PART_EVEN else 2 if kind < PART_PAIRS else 1
    return max(extent // step, 1) * step
