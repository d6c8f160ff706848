"""How long the parts of an axis are under many partitions at once: arrays of what `t10.core.lengths` says of one."""

from __future__ import annotations

import numpy as np

from t10.core.arrays import Ints
from t10.core.expression import AxisSizes, OperatorSpec
from t10.core.lengths import LEAST_USEFUL, LINE_UNITS, line_axes


def part_lengths(extents: AxisSizes, lines: frozenset[int], f_op: Ints) -> Ints:
    """Return L_a without temporal factors under F_op of shape (n, axes) or (axes,), in that shape."""
    shortest: Ints = -(-np.array(extents) // f_op)
    most = (LEAST_USEFUL + 1) * np.array(extents) // (LEAST_USEFUL * f_op)
    is_line = np.array([axis in lines for axis in range(len(extents))])
    lengths = shortest
    for unit in reversed(LINE_UNITS):
        rounded = -(-shortest // unit) * unit
        lengths = np.where(is_line & (rounded <= most), rounded, lengths)
    return lengths


def whole_lengths(spec: OperatorSpec, f_op: Ints) -> Ints:
    """Return L_a of all axes of an operator where nothing rotates, as `part_lengths` does."""
    return part_lengths(spec.extents, line_axes(spec), f_op)
