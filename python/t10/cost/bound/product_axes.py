"""What the axes of a product's operands are to the matrix engine: columns, lines, windows of positions."""

from __future__ import annotations

import numpy as np

from t10.core.expression import AffineDim, AxisSizes, Operand, OperatorSpec
from t10.cost.bound.columns import Boxes, Column, product
from t10.cost.bound.walks import axis_order


def own_columns(spec: OperatorSpec, x: Operand, w: Operand) -> list[int]:
    """Return the axes of columns, as the output has them: those of the weights alone."""
    return [axis for axis in axis_order(spec.output) if axis in w.axes and axis not in x.axes]


def n_positions(dim: AffineDim, boxes: Boxes) -> Column:
    """Return how many different indices a dim has, at least."""
    if len(dim.terms) < 2:
        return product(boxes, dim.axes)
    far, near = sorted(dim.terms, key=lambda term: -term.coefficient)[:2]
    steps, extent = boxes[:, far.axis], boxes[:, near.axis]
    if near.coefficient != 1:
        return np.maximum(steps, extent)
    return steps * np.minimum(extent, far.coefficient) + np.maximum(extent - far.coefficient, 0)


def is_tangled(operand: Operand, reduced: frozenset[int]) -> bool:
    """Return whether an axis occurs in several dims, or several reduced axes in one: what roles they have is open."""
    axes = [axis for dim in operand.dims for axis in dim.axes]
    return len(axes) > len(set(axes)) or any(len(reduced.intersection(dim.axes)) > 1 for dim in operand.dims)


def window_of(dim: AffineDim, reduced: frozenset[int]) -> tuple[int, int] | None:
    """Return the axis of places and that of positions of a window whose positions are neighbours; None of no such."""
    if len(dim.terms) != 2:
        return None
    place, position = sorted(dim.terms, key=lambda term: term.axis in reduced)
    is_window = place.axis not in reduced and position.coefficient == 1
    return (place.axis, position.axis) if is_window else None


def last_axes(operand: Operand) -> AxisSizes:
    """Return the axes of an operand's last dim."""
    return next((dim.axes for dim in reversed(operand.dims) if dim.terms), ())


def line_axis(operand: Operand, spec: OperatorSpec) -> int | None:
    """Return the last reduced axis of an operand."""
    return next((axis for axis in reversed(axis_order(operand)) if axis in spec.reduction_axes), None)


def own_line(operand: Operand) -> int | None:
    """Return the axis of an operand's last dim, if it is one."""
    dims = [dim for dim in operand.dims if dim.terms]
    return dims[-1].terms[0].axis if dims and dims[-1].is_simple else None
