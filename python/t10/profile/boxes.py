"""Boxes drawn at random for a compute step: extents of every magnitude, even and odd."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from random import Random

from t10.core.expression import AxisSizes, OperatorSpec
from t10.cost.work import box_bytes
from t10.profile.compute_step import ComputeStep

MOST_MISSES = 2000
LARGEST_BYTES = 1 << 18
MOST_POINTS = 1 << 20
PART_ONES = 1 / 16
PART_WHOLE_WINDOWS = 3 / 4
LINE_STEPS = (8, 8, 8, 8, 8, 4, 2, 1)
"""Axes along which operands are contiguous are mostly cut in whole words, as planners do: multiples of these."""


def random_boxes(one: ComputeStep, rng: Random) -> Iterator[AxisSizes]:
    """Yield boxes whose operands fit a core, none twice in a row; ends where hardly any fits."""
    spec = one.spec
    windows, lines = spec.window_positions, _line_axes(one)
    last: AxisSizes = ()
    misses = 0
    while misses < MOST_MISSES:
        box = tuple(
            1
            if (one.is_end and axis.kind == "reduction") or rng.random() < PART_ONES
            else _extent(rng, axis.extent, a in windows, a in lines, len(spec.axes))
            for a, axis in enumerate(spec.axes)
        )
        if box != last and prod(box) <= MOST_POINTS and box_bytes(spec, box) <= LARGEST_BYTES:
            misses = 0
            last = box
            yield box
        else:
            misses += 1


def _line_axes(one: ComputeStep) -> frozenset[int]:
    """Return the axes along which operands of a step are contiguous: their last dims."""
    spec: OperatorSpec = one.spec
    inputs = spec.epilogue_inputs if one.is_end else spec.inputs
    last = (operand.dims[-1] for operand in (*inputs, spec.output) if operand.dims)
    return frozenset(dim.terms[0].axis for dim in last if dim.is_simple)


def _extent(rng: Random, largest: int, is_window: bool, is_line: bool, n_axes: int) -> int:
    """Return a random extent: its magnitude evenly spread, small ones more often where there are many axes."""
    if is_window:
        return largest if rng.random() < PART_WHOLE_WINDOWS else rng.randint(1, largest)
    extent = max(round(largest ** (rng.random() ** max(n_axes / 3, 1.0))), 1)
    step = rng.choice(LINE_STEPS) if is_line else 1
    return min(max(extent // step, 1) * step, largest)
